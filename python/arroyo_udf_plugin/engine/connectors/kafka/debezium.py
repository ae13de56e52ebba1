"""Debezium's JSON: changes of a table as rows, with the row before and after each of them.

    op               string: c (created), u (updated), d (deleted), r (read, in a snapshot), t (all rows are removed)
    before, after    struct: the columns of the table that the user has named; others are passed over
    ts_ms, source, ...    what else the user has named of an event

An event may be in an envelope that has its schema, too: `{"schema": ..., "payload": ...}`. The schema says what numbers
are: `io.debezium.time.MicroTimestamp`, and so on. Without it, columns of times are in the unit that the user has named.

Guarantees: each event is a row. A tombstone, which follows an event of a deletion, says nothing new, and is none. An
event that lacks what its operation has is refused.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import json
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....errors import InvalidArgument
from ..cells import decoded
from ..json_rows import parsed
from ..json_types import typed
from ..message_rows import Values, json_schema
from ..text_values import shortened
from .values import Columns, has_bytes

_is = pa.types
OPERATIONS = ("c", "u", "d", "r", "t")
_NEEDED = {"c": ("after",), "u": ("after",), "r": ("after",), "d": ("before",), "t": ()}
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_EPOCH = datetime.datetime(1970, 1, 1)
_DAY = 86_400
_TIMES = {
    "io.debezium.time.Timestamp": 1_000,
    "io.debezium.time.MicroTimestamp": 1_000_000,
    "io.debezium.time.NanoTimestamp": 1_000_000_000,
    "org.apache.kafka.connect.data.Timestamp": 1_000,
    "io.debezium.time.Time": 1_000,
    "io.debezium.time.MicroTime": 1_000_000,
    "io.debezium.time.NanoTime": 1_000_000_000,
    "org.apache.kafka.connect.data.Time": 1_000,
}
"""How many of a unit are in a second."""
_UNITS = {"unix_millis": 1_000, "unix_micros": 1_000_000}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_EXACT = Context(prec=100)
_Schema = Mapping[str, Any] | None


class DebeziumValues:
    """types: of the columns; `op`, and `before` or `after`, are among them. json_columns: those whose values are kept
    as JSON. timestamps: "unix_millis", "unix_micros" or "rfc3339". decimals: "bytes", or others. Both of events
    without a schema. Raises InvalidArgument."""

    keeps_tombstones = False

    def __init__(
        self,
        types: Mapping[str, pa.DataType],
        json_columns: Sequence[str],
        timestamps: str | None,
        decimals: str | None,
    ) -> None:
        check_columns("types", pa.schema(list(types.items())))
        self.schema = json_schema(types, json_columns)
        for name, type_ in types.items():
            if has_bytes(type_):
                raise InvalidArgument(
                    f"types: {name!r} is {type_}, and events have bytes in base64: name them as texts, and decode them "
                    "in a SELECT: decode(raw, 'base64')"
                )
        self._json = set(json_columns)
        unit = _UNITS.get(timestamps or "unix_millis")
        self._texts = _Texts(unit, decimals in (None, "bytes"))

    def preparation(self, values: Values) -> None:
        """Nothing."""

    def read(self, values: Values) -> Columns:
        refused: dict[int, str] = {}
        events: list[Mapping[str, Any]] = []
        schemas: list[Mapping[str, _Schema]] = []
        for at, value in enumerate(values):
            event, schema = _event(value)
            why = event if isinstance(event, str) else _trouble(event)
            if why is not None:
                refused[at] = f"the message {why}: {shortened((value or b'').decode(errors='replace'))!r}"
            events.append({} if why is not None else event)  # type: ignore[arg-type]
            schemas.append(schema)
        columns = []
        for field in self.schema:
            if field.name in self._json:
                texts = [None if event.get(field.name) is None else _encode(event[field.name]) for event in events]
                columns.append(pa.array(texts, pa.string()))
                continue
            cells = [
                self._texts.of(event.get(field.name), field.type, schema.get(field.name))
                for event, schema in zip(events, schemas, strict=True)
            ]
            done = typed(cells, field.type, "rfc3339")
            for at, (where, why) in done.refused.items():
                refused.setdefault(at, f"column {field.name + where!r}: {why}")
            columns.append(done.array)
        return columns, refused


def check_columns(what: str, schema: pa.Schema) -> None:
    """Whether they are those of changes. Raises InvalidArgument."""
    if missing := [name for name in ("op", "after") if name not in schema.names]:
        raise InvalidArgument(
            f"{what}: debezium_json has the columns op, before and after, and {', '.join(missing)} is missing: name "
            "op as text, and before and after as structs of the table's columns"
        )
    for name in ("before", "after"):
        if name in schema.names and not _is.is_struct(type_ := schema.field(name).type):
            raise InvalidArgument(f"{what}: {name!r} is {type_}, and must be a struct of the table's columns")
    if not _is.is_string(type_ := _plain(schema.field("op").type)) and not _is.is_large_string(type_):
        raise InvalidArgument(f"{what}: 'op' is {type_}, and must be text")


def _plain(type_: pa.DataType) -> pa.DataType:
    if isinstance(type_, pa.BaseExtensionType):
        return type_.storage_type
    return type_.value_type if _is.is_dictionary(type_) else type_


# ---- An event --------------------------------------------------------------------------------------------------------


def _event(value: bytes | None) -> tuple[Mapping[str, Any] | str, Mapping[str, _Schema]]:
    """The event, or what is wrong with it; and the schemas of its fields, as far as they are there."""
    found = parsed(value or b"")
    if isinstance(found, str) or "payload" not in found or not found.keys() <= {"schema", "payload"}:
        return found, {}
    payload = found["payload"]
    if not isinstance(payload, dict):
        return "has no object as payload", {}
    return payload, _fields(found.get("schema"))


def _fields(schema: Any) -> Mapping[str, _Schema]:
    """The schemas of a struct's fields, by name. What is not as expected says nothing."""
    fields = schema.get("fields") if isinstance(schema, dict) else None
    if not isinstance(fields, list):
        return {}
    return {field["field"]: field for field in fields if isinstance(field, dict) and type(field.get("field")) is str}


def _trouble(event: Mapping[str, Any]) -> str | None:
    """What a change lacks; None: nothing."""
    operation = event.get("op")
    if type(operation) is not str or operation not in OPERATIONS:
        return f"has the op {shortened(_encode(operation))}, and must have one of {', '.join(OPERATIONS)}"
    for name in _NEEDED[operation]:
        if event.get(name) is None:
            hint = "" if name == "after" else ": let the database log it (REPLICA IDENTITY of PostgreSQL)"
            return f"has the op {operation!r} and no {name!r}{hint}"
    return None


class _Texts:
    """Values as `json_types` reads them: times and decimals as texts. unit: of times in numbers, in a second; None:
    they are texts. are_bytes: whether decimals are, in base64."""

    def __init__(self, unit: int | None, are_bytes: bool) -> None:
        self._unit, self._are_bytes = unit, are_bytes

    def of(self, value: Any, type_: pa.DataType, schema: _Schema) -> Any:
        if value is None:
            return None
        if _is.is_struct(type_):
            return self._struct(value, type_, schema)
        if _is.is_list(type_):
            items = schema.get("items") if schema else None
            items = items if isinstance(items, dict) else None
            own = type_.value_type
            return [self.of(item, own, items) for item in value] if type(value) is list else value
        name = schema.get("name") if schema else None
        if type(value) is int:
            return self._number(value, type_, name)
        if _is.is_decimal(type_):
            return self._decimal(value, type_, schema)
        return value

    def _struct(self, value: Any, type_: pa.DataType, schema: _Schema) -> Any:
        """Fields that the type lacks are passed over."""
        if type(value) is not dict:
            return value
        fields = _fields(schema) if schema else {}
        return {
            field.name: self.of(value[field.name], field.type, fields.get(field.name))
            for field in type_
            if field.name in value
        }

    def _number(self, value: int, type_: pa.DataType, name: Any) -> Any:
        """A time as a text; what it cannot be stays a number, and is refused."""
        known = _TIMES.get(name) if type(name) is str else None
        try:
            if _is.is_timestamp(type_) and (unit := known or self._unit):
                return _instant(value, unit)
            if _is.is_date(type_):
                return (_EPOCH + datetime.timedelta(value)).date().isoformat()
            if _is.is_time(type_) and known and 0 <= value < _DAY * known:
                return _instant(value, known).partition("T")[2].removesuffix("Z")
        except OverflowError:
            pass
        return value

    def _decimal(self, value: Any, type_: pa.DataType, schema: _Schema) -> Any:
        if type(value) is dict:  # io.debezium.data.VariableScaleDecimal
            return _unscaled(value.get("value"), value.get("scale"))
        if type(value) is not str:
            return value
        if schema and schema.get("name") == _DECIMAL:
            parameters = schema.get("parameters")
            return _unscaled(value, parameters.get("scale") if isinstance(parameters, dict) else None)
        return _unscaled(value, type_.scale) if self._are_bytes and not schema else value


def _instant(value: int, unit: int) -> str:
    """Raises OverflowError."""
    seconds, rest = divmod(value, unit)
    return f"{(_EPOCH + datetime.timedelta(seconds=seconds)).isoformat()}.{rest:0{len(str(unit)) - 1}}Z"


def _unscaled(text: Any, scale: Any) -> Any:
    """A decimal whose digits are a number in two's complement; what is none stays as it is, and is refused."""
    try:
        unscaled = int.from_bytes(base64.b64decode(text, validate=True), signed=True)
        return f"{Decimal(unscaled).scaleb(-int(scale), _EXACT):f}"
    except (binascii.Error, ValueError, TypeError, ArithmeticError):
        return f"{shortened(str(text))} in base64" if text is not None else None


# ---- Rows as events --------------------------------------------------------------------------------------------------


def check_changes(name: str, batch: pa.RecordBatch) -> None:
    """Whether each row can be an event. Raises InvalidArgument."""
    operations = decoded(batch.column("op"))
    if _is.is_dictionary(operations.type):
        operations = operations.dictionary_decode()
    columns = {"before": None, "after": batch.column("after")}
    if "before" in batch.schema.names:
        columns["before"] = batch.column("before")
    known = pc.is_in(operations, pa.array(OPERATIONS, operations.type))
    if not pc.all(known).as_py():
        wrong = operations.filter(pc.invert(known))[0].as_py()
        raise InvalidArgument(f"{name}: op is {wrong!r}, and must be one of {', '.join(OPERATIONS)}")
    for operation, needed in _NEEDED.items():
        own = pc.equal(operations, operation)
        for column in needed:
            given = columns[column]
            if pc.any(own if given is None else pc.and_(own, given.is_null())).as_py():
                raise InvalidArgument(f"{name}: a row has the op {operation!r}, and {column!r} is null")


def with_bytes(array: pa.Array) -> pa.Array:
    """Decimals in base64, as Debezium has them, in structs, too. Raises InvalidArgument for those in lists."""
    type_ = array.type
    if _is.is_decimal(type_):
        return pa.array(
            [None if value is None else _base64(value, type_.scale) for value in array.to_pylist()], pa.string()
        )
    if not _is.is_struct(type_):
        return array
    children = [with_bytes(child) for child in array.flatten()]
    fields = [field.with_type(child.type) for field, child in zip(type_, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())


def bytes_type(type_: pa.DataType) -> pa.DataType:
    """Of what `with_bytes` returns. Raises InvalidArgument."""
    if _is.is_decimal(type_):
        return pa.string()
    if _is.is_struct(type_):
        return pa.struct([field.with_type(bytes_type(field.type)) for field in type_])
    if _is.is_nested(type_) and any(map(_has_decimals, _inner(type_))):
        raise InvalidArgument(f'decimals in {type_} cannot be bytes: write decimals = "string"')
    return type_


def _inner(type_: pa.DataType) -> list[pa.DataType]:
    return [type_.field(at).type for at in range(type_.num_fields)]


def _has_decimals(type_: pa.DataType) -> bool:
    return bool(_is.is_decimal(type_)) or (_is.is_nested(type_) and any(map(_has_decimals, _inner(type_))))


def _base64(value: Decimal, scale: int) -> str:
    unscaled = int(value.scaleb(scale, _EXACT))
    return base64.b64encode(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, signed=True)).decode()
