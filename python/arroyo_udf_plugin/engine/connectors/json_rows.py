"""Objects of JSON as rows of columns that are known.

    rows = JsonRows(schema, types, ["extra"], None, known=None)
    rows.of_text(b'{"a": 1}\n{"a": 2}')          None: not in native code, so:
    rows.of_objects([b'{"a": 1}', b'{"a": 2}'])   the batch, and the rows that were refused, by position: why

A row that is no JSON object, has an unknown key, or a value of another type, is refused.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from .cells import JSON_VALUE, CellType
from .json_blocks import NativeJson
from .json_types import Number, number, typed
from .json_values import JsonFunction
from .piece import KEPT
from .text_values import shortened

Read = tuple[pa.RecordBatch, dict[int, str]]
"""Rows, and those of them that were refused, by position: why."""

_HINT = "the first lines decide; --types can name another type"


class JsonRows:
    """schema: of the rows. types: of columns that the user has typed, by name. json_columns: those whose values are
    texts of JSON, as they are written there. timestamps: see `options.Reading`. known: the keys that there may be;
    None: any. what: an object, for error texts."""

    def __init__(
        self,
        schema: pa.Schema,
        types: Mapping[str, pa.DataType],
        json_columns: Sequence[str],
        timestamps: str | None,
        known: Collection[str] | None,
        what: str = "line",
    ) -> None:
        self._schema, self._types, self._timestamps, self._what = schema, types, timestamps, what
        self._known = None if known is None else set(known)
        self._json = {column: JsonFunction("json_get", (column,)) for column in json_columns}
        fields = [field for field in schema if field.name not in self._json]
        if self._json and known is not None:  # they have values of all kinds, which no schema says
            fields = []
        self._native = NativeJson(pa.schema(fields), types, timestamps, known is None)

    def of_text(self, text: bytes) -> Read | None:
        """text: whole lines. None: an object must be read by itself."""
        read = self._native.rows(text)
        if read is None:
            return None
        arrays, refused = read
        texts = self._texts(text.removesuffix(b"\n").split(b"\n"), {}) if self._json else None
        columns = [self._json[name](texts) if name in self._json else arrays[name] for name in self._schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema), refused

    def of_objects(self, objects: Sequence[bytes]) -> Read:
        """One by one."""
        refused: dict[int, str] = {}
        rows: list[dict[str, Any]] = []
        for object_ in objects:
            row = parsed(object_)
            if isinstance(row, str):
                refused[len(rows)] = f"the {self._what} {row}: {_excerpt(object_)}"
            elif self._known is not None and not self._known.issuperset(row):
                new = next(key for key in row if key not in self._known)
                refused[len(rows)] = (
                    f"the {self._what} has a key {new!r} that the first lines lack (name it in --types): "
                    f"{_excerpt(object_)}"
                )
            rows.append({} if len(rows) in refused else row)  # type: ignore[arg-type]
        texts = self._texts(objects, refused) if self._json else None
        arrays = [
            self._json[field.name](texts)
            if field.name in self._json
            else self._array([row.get(field.name) for row in rows], field, refused)
            for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema), refused

    def _array(self, values: list[Any], field: pa.Field, refused: dict[int, str]) -> pa.Array:
        """The values of a column. Adds those that are of another type to `refused`."""
        if field.name not in self._types:
            return array_of(values, field, refused)
        done = typed(values, field.type, self._timestamps)
        for at, (where, why) in done.refused.items():
            refused.setdefault(at, f"column {field.name + where!r}: {why}")
        return done.array

    def _texts(self, objects: Sequence[bytes], refused: Mapping[int, str]) -> pa.Array:
        read = [None if at in refused else object_ for at, object_ in enumerate(objects)]
        return pa.array(read, pa.binary()).cast(pa.string())


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


decode = json.JSONDecoder(parse_constant=_no_constant, parse_float=number).decode
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def parsed(line: bytes) -> dict[str, Any] | str:
    """The object; or what is wrong with the line."""
    try:
        row = decode(line.decode())
    except UnicodeDecodeError:
        return "is not UTF-8"
    except json.JSONDecodeError as error:
        return f"is not JSON: {error.msg} at column {error.colno}"
    except (ValueError, RecursionError) as error:
        return f"cannot be read as JSON: {error}"
    return row if isinstance(row, dict) else "is not a JSON object"


def _excerpt(line: bytes) -> str:
    return repr(line[: 4 * KEPT].decode(errors="replace")[:KEPT])


def array_of(values: list[Any], field: pa.Field, refused: dict[int, str]) -> pa.Array:
    """The values of a column. Adds those that are of another type to `refused`."""
    is_cell = isinstance(field.type, CellType)
    if is_cell:
        with contextlib.suppress(*_UNFIT):
            if _are(values, pa.string()):
                texts = pa.array(values, pa.string())
                if not pc.any(pc.starts_with(texts, JSON_VALUE)).as_py():
                    return pa.ExtensionArray.from_storage(field.type, texts)
        values = [value if type(value) is str and value[:1] != JSON_VALUE else _cell(value) for value in values]
    type_ = pa.string() if is_cell else field.type
    try:
        if not _are(values, type_):
            raise ValueError
        array = pa.array(values, type_)
    except _UNFIT:
        for at, value in enumerate(values):
            try:
                if not _are([value], type_):
                    raise ValueError
                pa.array([value], type_)
            except _UNFIT:
                refused.setdefault(at, f"column {field.name!r}: {_shown(value)} is not {type_} ({_HINT})")
                values[at] = None
        array = pa.array(values, type_)
    return pa.ExtensionArray.from_storage(field.type, array) if is_cell else array


_UNFIT = (pa.ArrowException, ValueError, TypeError, OverflowError)
_KINDS: dict[Any, set[type]] = {
    pa.bool_(): {bool},
    pa.int64(): {int},
    pa.float64(): {int, float, Number},
    pa.string(): {str},
}


def _are(values: list[Any], type_: pa.DataType) -> bool:
    """Whether values may have the type: pyarrow would make 2 of 2.5."""
    kinds = set(map(type, values)) - {type(None)}
    if pa.types.is_list(type_):
        return kinds <= {list} and all(_are(value, type_.value_type) for value in values if value is not None)
    return kinds <= _KINDS[type_]


def _cell(value: Any) -> str | None:
    return None if value is None else JSON_VALUE + (value.text if type(value) is Number else _encode(value))


def _shown(value: Any) -> str:
    return shortened(_encode(value).encode(errors="backslashreplace").decode())  # half a surrogate pair is no text
