"""Values in Avro: of a schema registry, or bare datums of one schema.

Guarantees: a value is decoded with the schema with which it was written. What cannot be decoded to its end, has an id
that the registry does not know, or has a schema that does not fit the columns, is refused.
"""

from __future__ import annotations

import base64
import datetime
import io
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ....errors import InvalidArgument
from ..cells import decoded
from ..location import location_of
from ..message_rows import VALUE, Refused, Values, typed_schema
from ..text_values import shortened
from .avro_types import Array, Unfit, converter, form, in_units, plain_type, schema_of
from .schema_registry import FoundSchema, RegistryClient, framed, id_of, payload_of
from .values import Columns

_Record = dict[str, Any]
_LARGE = pa.large_binary()
_UNFIT = (pa.ArrowException, ValueError, TypeError, OverflowError, ArithmeticError)


def library() -> Any:
    """fastavro. Raises InvalidArgument."""
    try:
        import fastavro
    except ModuleNotFoundError as error:
        raise InvalidArgument("Avro needs fastavro: pip install 'arroyo_udf_plugin[kafka]'") from error
    return fastavro


def text_of(path: str) -> bytes:
    """A file with a schema. Raises InvalidArgument."""
    place = location_of(path).admitted()
    if place.path is None:
        raise InvalidArgument(f"schema_file: {path}: name a file on this machine")
    try:
        return place.path.read_bytes()
    except OSError as error:
        raise InvalidArgument(f"schema_file: {path}: {error.strerror}") from None


class AvroValues:
    """types: of the columns. registry: has the schemas; None: `schema_file` is the only one. unstructured: the only
    column, `value`, has each record as JSON. Raises InvalidArgument."""

    keeps_tombstones = True

    def __init__(
        self,
        types: Mapping[str, pa.DataType],
        registry: RegistryClient | None,
        schema_file: str | None,
        unstructured: bool,
    ) -> None:
        if unstructured and dict(types) not in ({}, {VALUE: pa.string()}):
            raise InvalidArgument(f"types: unstructured has one column, {VALUE!r}, a text: leave out types")
        self.schema = pa.schema([(VALUE, pa.string())]) if unstructured else typed_schema(types)
        self._registry, self._unstructured = registry, unstructured
        self._known: dict[int, _Known | str] = {}  # by id; or why no message with it can be read
        if registry is None:
            own = text_of(schema_file or "").decode(errors="replace")
            made = self._made(FoundSchema("AVRO", own, {}))
            if isinstance(made, str):
                raise InvalidArgument(f"schema_file: {schema_file}: {made}")
            self._known[0] = made
        else:
            library()

    def _made(self, found: FoundSchema) -> _Known | str:
        try:
            return _Known(found, self.schema, self._unstructured)
        except Unfit as error:
            return str(error)

    def _id(self, value: bytes) -> int | str:
        return 0 if self._registry is None else id_of(value)

    def preparation(self, values: Values) -> Callable[[], None] | None:
        ids = {self._id(value) for value in values if value is not None}
        new = [id for id in ids if isinstance(id, int) and id not in self._known]
        return (lambda: self._learn(new)) if new else None

    def _learn(self, ids: Sequence[int]) -> None:
        """Raises InvalidArgument, Unreachable."""
        assert self._registry is not None
        for id in ids:
            found = self._registry.schema(id)
            if found is None:
                self._known[id] = f"{self._registry.name} has no schema with the id {id}"
            else:
                self._known[id] = self._made(found)

    def read(self, values: Values) -> Columns:
        """Assumes that what `preparation` has returned was called."""
        refused: Refused = {}
        places: dict[int | None, list[int]] = {}  # by schema; None: there is no record
        records: list[_Record | None] = []
        for at, value in enumerate(values):
            id, record = None, None
            if value is not None:
                id, record = self._decoded(value, refused, at)
            places.setdefault(id, []).append(at)
            records.append(record)
        if len(places) == 1:
            (id,) = places
            return self._columns(id, records, range(len(values)), refused), refused
        parts = [
            pa.RecordBatch.from_arrays(self._columns(id, [records[at] for at in own], own, refused), schema=self.schema)
            for id, own in places.items()
        ]
        order = [0] * len(values)
        for place, at in enumerate(at for own in places.values() for at in own):
            order[at] = place
        return list(pa.Table.from_batches(parts).combine_chunks().take(order).combine_chunks().to_batches()[0]), refused

    def _decoded(self, value: bytes, refused: Refused, at: int) -> tuple[int | None, _Record | None]:
        id = self._id(value)
        known = id if isinstance(id, str) else self._known[id]
        if isinstance(known, str):
            refused[at] = f"the message {known}" if isinstance(id, str) else f"the message: {known}"
            return None, None
        try:
            return id, known.decoded(value if self._registry is None else payload_of(value))  # type: ignore[return-value]
        except Exception as error:  # of all kinds: the bytes may be any
            refused[at] = f"the message is not of its schema in Avro: {shortened(str(error) or type(error).__name__)}"
            return None, None

    def _columns(
        self, id: int | None, records: list[_Record | None], places: Sequence[int], refused: Refused
    ) -> list[pa.Array]:
        if id is None:
            return [pa.nulls(len(records), field.type) for field in self.schema]
        known = self._known[id]
        assert isinstance(known, _Known)
        wrong: Refused = {}
        columns = known.columns(records, wrong)
        for at, why in wrong.items():
            refused.setdefault(places[at], why)
        return columns


class _Known:
    """A schema with which messages were written. Raises Unfit if it does not fit the columns."""

    def __init__(self, found: FoundSchema, columns: pa.Schema, unstructured: bool) -> None:
        fastavro = library()
        if found.kind != "AVRO":
            raise Unfit(f"its schema is one of {found.kind}, not of AVRO")
        try:
            texts = [*found.references.values(), found.text]
            schemas = [json.loads(text) for text in texts]
            named: dict[str, Any] = {}
            for schema in schemas:
                parsed = fastavro.parse_schema(schema, named)
            bare: dict[str, Any] = {}
            for schema in schemas:
                self._bare = fastavro.parse_schema(_without_logical(schema), bare)
        except Exception as error:  # of all kinds: the text may be any
            raise Unfit(f"its schema is none of Avro: {shortened(str(error))}") from None
        self._read, self._columns = fastavro.schemaless_reader, list[tuple[pa.Field, Array]]()
        self._unstructured = unstructured
        if unstructured:
            self._bare = parsed
            return
        if not isinstance(parsed, dict) or parsed["type"] != "record":
            raise Unfit("its schema is not that of a record")
        fields = {field["name"]: field["type"] for field in parsed["fields"]}
        for field in columns:
            try:
                self._columns.append((field, converter(fields.get(field.name, "null"), named, field.type)))
            except Unfit as error:
                raise Unfit(f"column {field.name!r}: {error}") from None

    def decoded(self, datum: bytes) -> Any:
        """Raises exceptions of all kinds."""
        stream = io.BytesIO(datum)
        record = self._read(stream, self._bare)
        if stream.tell() != len(datum):
            raise ValueError(f"{len(datum) - stream.tell()} bytes are left over")
        return [_json(record)] if self._unstructured else record

    def columns(self, records: list[Any], refused: Refused) -> list[pa.Array]:
        if self._unstructured:
            return [pa.array([None if record is None else record[0] for record in records], pa.string())]
        return [self._column(field, array_of, records, refused) for field, array_of in self._columns]

    def _column(self, field: pa.Field, array_of: Array, records: list[Any], refused: Refused) -> pa.Array:
        values = [None if record is None else record.get(field.name) for record in records]
        try:
            return array_of(values)
        except _UNFIT:
            pass
        for at, value in enumerate(values):
            try:
                array_of([value])
            except _UNFIT as error:
                refused.setdefault(at, f"column {field.name!r}: {shortened(str(error))}")
                values[at] = None
        return array_of(values)


def _without_logical(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_logical(branch) for branch in schema]
    if isinstance(schema, dict):
        keys = {key: value for key, value in schema.items() if key != "logicalType"}
        return {
            key: _without_logical(value) if key in ("type", "items", "values", "fields") else value
            for key, value in keys.items()
        }
    return schema


def _json(record: Any) -> str:
    """Raises ValueError for a number that JSON does not have."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), default=_text, allow_nan=False)


def _text(value: Any) -> Any:
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Decimal | uuid.UUID):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} is not JSON")


# ---- Rows as values --------------------------------------------------------------------------------------------------


class AvroWriter:
    """name: of the sink, for error texts. registry: where the rows' schema is registered for the subject; None: they
    are written with the schema in `schema_file`. Raises InvalidArgument."""

    def __init__(
        self, name: str, schema: pa.Schema, registry: RegistryClient | None, subject: str, schema_file: str | None
    ) -> None:
        self._library, self._name, self._registry, self._subject = library(), name, registry, subject
        self._own = pa.schema([field.with_type(_stored(field.type)) for field in schema])
        self._units, self._plain = ([of(field.type) for field in self._own] for of in (in_units, plain_type))
        self._id: int | None = None
        self._given = None if registry is not None else text_of(schema_file or "").decode(errors="replace")
        try:
            self._made("Row")
        except Unfit as error:
            raise InvalidArgument(f"{name}: {error}") from None

    def _made(self, record: str) -> dict[str, Any]:
        """The schema of the rows; with `_parsed`, as they are encoded. Raises Unfit."""
        own = schema_of(record, self._own)
        written = own
        if self._given is not None:
            try:
                given = json.loads(self._given)
            except ValueError as error:
                raise Unfit(f"schema_file: it is not JSON: {error}") from None
            written = self._checked(given, own)
        self._parsed = self._library.parse_schema(_without_times(written), {})
        return written

    def _checked(self, given: Any, own: dict[str, Any]) -> Any:
        """The schema in the file, if it says of each column what the rows' own does. Raises Unfit."""
        if not isinstance(given, dict) or given.get("type") != "record":
            raise Unfit("schema_file: it is not the schema of a record")
        named: dict[str, Any] = {}
        self._library.parse_schema(given, named)
        theirs = {field["name"]: field for field in given["fields"]}
        for field in own["fields"]:
            if (there := theirs.pop(field["name"], None)) is None:
                raise Unfit(f"schema_file: it has no field {field['name']!r}, so the column would be lost")
            if form(there["type"], named) != form(field["type"], {}):
                raise Unfit(
                    f"schema_file: its field {field['name']!r} is {json.dumps(there['type'])}, and the column would be "
                    f"{json.dumps(field['type'])}: cast the column, or correct the file"
                )
        for name, field in theirs.items():
            if "default" not in field:
                raise Unfit(f"schema_file: it has a field {name!r} without a default, and the rows have no such column")
        return given

    def check(self) -> None:
        """Whether the registry takes the schema. Raises InvalidArgument, Unreachable."""
        if self._registry is not None:
            self._registry.check(self._subject, self._text(), "AVRO")

    def _text(self) -> str:
        """The schema. Its record has the name that those of the subject have: others could not read it otherwise."""
        assert self._registry is not None
        record = "Row"
        if (latest := self._registry.latest(self._subject)) is not None:
            found = json.loads(latest)
            if isinstance(found, dict) and found.get("type") == "record":
                space = found.get("namespace")
                record = f"{space}.{found['name']}" if space and "." not in found["name"] else found["name"]
        return json.dumps(self._made(record))

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """Raises InvalidArgument, Unreachable."""
        if self._id is None and self._registry is not None:
            self._id = self._registry.register(self._subject, self._text(), "AVRO")
        columns = [
            [_value(value, plain) for value in decoded(column).cast(units).cast(plain).to_pylist()]
            if pa.types.is_nested(plain)
            else decoded(column).cast(units).cast(plain).to_pylist()
            for column, units, plain in zip(batch.columns, self._units, self._plain, strict=True)
        ]
        write, schema = self._library.schemaless_writer, self._parsed
        values: list[bytes | None] = []
        for row in zip(*columns, strict=True):
            stream = io.BytesIO()
            try:
                write(stream, schema, dict(zip(self._own.names, row, strict=True)))
            except (ValueError, TypeError, OverflowError) as error:
                raise InvalidArgument(f"{self._name}: a row does not fit the schema: {error}") from None
            values.append(stream.getvalue())
        return pa.array(values if self._id is None else framed(self._id, values), _LARGE)


def _stored(type_: pa.DataType) -> pa.DataType:
    """Of columns that are decoded."""
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def _value(value: Any, type_: pa.DataType) -> Any:
    """With maps as dictionaries."""
    if value is None or not pa.types.is_nested(type_):
        return value
    if pa.types.is_struct(type_):
        return {field.name: _value(value[field.name], field.type) for field in type_}
    if pa.types.is_map(type_):
        items = {key: _value(item, type_.item_type) for key, item in value}
        if len(items) < len(value):
            raise InvalidArgument("a map of Avro has each key once: remove the others in a SELECT")
        return items
    return [_value(item, type_.value_type) for item in value]


def _without_times(schema: Any) -> Any:
    """Values are numbers then; those of decimals stay decimals."""
    if isinstance(schema, list):
        return [_without_times(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    is_time = schema.get("logicalType", "decimal") not in ("decimal", "uuid")
    return {
        key: _without_times(value) if key in ("type", "items", "values", "fields") else value
        for key, value in schema.items()
        if not (is_time and key == "logicalType")
    }
