"""Messages as rows: values by a format, and columns of what else is known about them.

    rows = MessageRows("json", {"n": "int"}, {"sent": "timestamp"}, {"timestamp": (TIMES,)})
    columns, refused = rows.of([b'{"n": 1}'], lambda key, type_: pa.array([...], type_))

Guarantees: each message is a row. One without a value has nulls in the columns of its value. A value that does not fit
is a refused row, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import pyarrow as pa

from ...errors import InvalidArgument, nearest
from .json_rows import JsonRows, Read
from .json_types import check
from .text_lines import no_text
from .type_names import type_named

MessageFormat = Literal["json", "raw_string", "raw_bytes"]
VALUE = "value"
TIMES = pa.timestamp("ms", "UTC")
Values = Sequence[bytes | None]
Refused = dict[int, str]
"""Why a message was refused, by its position."""


class MessageRows:
    """format: of values. types: of the columns of JSON, by name, and of metadata that is to have another type.
    metadata: a key for the name of each column. known: the types that a key may have, the first one by default.
    json_columns, timestamps: see `options.Reading`. what: a message, for error texts.

    schema: of the rows. Raises InvalidArgument.
    """

    def __init__(
        self,
        format: MessageFormat,
        types: Mapping[str, str],
        metadata: Mapping[str, str],
        known: Mapping[str, Sequence[pa.DataType]],
        json_columns: Sequence[str] = (),
        timestamps: str | None = None,
        what: str = "message",
    ) -> None:
        named = {name: type_named(type_) for name, type_ in types.items()}
        self._what, self._keys = what, list(metadata.values())
        self._fields = [metadata_field(name, key, known, named.pop(name, None), what) for name, key in metadata.items()]
        value = json_schema(named, json_columns, what) if format == "json" else plain_schema(format, named)
        self._json = None if format != "json" else JsonRows(value, named, json_columns, timestamps, None, what)
        self._value = value
        self.schema = with_metadata(value, self._fields)

    def of(self, values: Values, known: Callable[[str, pa.DataType], pa.Array]) -> Read:
        """values: at least one. known: what else is known about each of them, for a key and a type."""
        if self._json is not None:
            columns, refused = json_objects(self._json, values)
        else:
            column, refused = plain(values, self._value.types[0], self._what)
            columns = [column]
        own = [known(key, field.type) for key, field in zip(self._keys, self._fields, strict=True)]
        return pa.RecordBatch.from_arrays([*columns, *own], schema=self.schema), refused


def json_objects(json: JsonRows, values: Values) -> tuple[list[pa.Array], Refused]:
    """Columns of objects; a message without a value has nulls."""
    objects = [b"{}" if value is None else value for value in values]
    text = b"\n".join(objects)
    are_lines = text.count(b"\n") == len(objects) - 1 and all(objects)
    batch, refused = (json.of_text(text) if are_lines else None) or json.of_objects(objects)
    return batch.columns, refused


def plain(values: Values, type_: pa.DataType, what: str) -> tuple[pa.Array, Refused]:
    """Bytes, or texts: those that are not UTF-8 are refused."""
    column = pa.array(values, pa.binary())
    if type_ == pa.binary():
        return column, {}
    try:
        return column.cast(pa.string()), {}
    except pa.ArrowInvalid:
        wrong = {at: text for at, value in enumerate(values) if value is not None and (text := no_text(value))}
        kept = [None if at in wrong else value for at, value in enumerate(values)]
        refused = {at: f"the {what} {text}: {values[at][:100]!r}" for at, text in wrong.items()}  # type: ignore[index]
        return pa.array(kept, pa.binary()).cast(pa.string()), refused


def plain_schema(format: str, types: Mapping[str, pa.DataType]) -> pa.Schema:
    """The only column of raw_string or raw_bytes. Raises InvalidArgument."""
    if types:
        raise InvalidArgument(f"types: {format} has one column, {VALUE!r}, of its own type: leave out types")
    return pa.schema([(VALUE, pa.string() if format == "raw_string" else pa.binary())])


def typed_schema(types: Mapping[str, pa.DataType], what: str = "message") -> pa.Schema:
    """Of columns that the user has named. Raises InvalidArgument if there are none."""
    if not types:
        raise InvalidArgument(f'types: name the columns of each {what} with their types, such as {{"id" = "int"}}')
    return pa.schema(list(types.items()))


def json_schema(types: Mapping[str, pa.DataType], json_columns: Sequence[str], what: str = "message") -> pa.Schema:
    """Of columns that JSON can have. Raises InvalidArgument."""
    schema = typed_schema(types, what)
    for column, type_ in types.items():
        try:
            check(type_)
        except InvalidArgument as error:
            raise InvalidArgument(f"types: column {column!r}: {error}") from None
    for column in json_columns:
        if types.get(column) != pa.string():
            raise InvalidArgument(f"json_columns: {column!r} needs the type str in types")
    return schema


def with_metadata(values: pa.Schema, fields: Sequence[pa.Field]) -> pa.Schema:
    """Columns of values, and further ones. Raises InvalidArgument."""
    for field in fields:
        if field.name in values.names:
            raise InvalidArgument(f"metadata: there is a column {field.name!r} already: choose another name")
    return pa.schema([*values, *fields])


def metadata_field(
    name: str, key: str, known: Mapping[str, Sequence[pa.DataType]], type_: pa.DataType | None, what: str = "message"
) -> pa.Field:
    """type_: that the user wants. Raises InvalidArgument."""
    if key not in known:
        raise InvalidArgument(f"metadata: a {what} has no {key!r}: {nearest(key, known)}")
    is_other_time = TIMES in known[key] and type_ is not None and pa.types.is_timestamp(type_)
    if type_ is not None and type_ not in known[key] and not is_other_time:
        listed = " or ".join(map(str, known[key]))
        raise InvalidArgument(f"types: {name!r} is the {key} of a {what}: it is {listed}, not {type_}")
    return pa.field(name, type_ or known[key][0])
