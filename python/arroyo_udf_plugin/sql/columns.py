"""Functions of SQL that DataFusion lacks, in native code, over columns.

Guarantees: an answer for each row. A text that is no JSON answers null, and is no error. A hash depends on the values
and their types, and is the same in each process and in Arroyo.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ..abi import address, ffi
from ..errors import InvalidArgument

BY_KEYS = {
    "json_get": pa.string(),
    "json_get_json": pa.string(),
    "json_as_text": pa.string(),
    "json_get_str": pa.string(),
    "json_get_int": pa.int64(),
    "json_get_float": pa.float64(),
    "json_get_bool": pa.bool_(),
    "json_get_array": pa.list_(pa.string()),
    "json_length": pa.uint64(),
    "json_contains": pa.bool_(),
    "json_object_keys": pa.list_(pa.string()),
}
BY_PATH = {
    "get_first_json_object": pa.string(),
    "extract_json_string": pa.string(),
    "extract_json": pa.list_(pa.string()),
}


class JsonFunction:
    """A function with its path: keys and indices, or a JSONPath.

    last: the type of a further step that each row has itself: string, or int64; None: there is none.
    """

    def __init__(self, name: str, path: tuple[str | int, ...] | str, last: pa.DataType | None = None) -> None:
        """Raises InvalidArgument for a path that is not supported."""
        from .._native import json_answers, json_function

        try:
            self._function = json_function(name, path)
        except ValueError as error:
            raise InvalidArgument(str(error)) from None
        self.name, self.path = name, path
        self._answers = json_answers
        self._kind = "" if last is None else "index" if last == pa.int64() else "key"
        self.types = [pa.string()] if last is None else [pa.string(), last]
        self.returns = (BY_KEYS | BY_PATH)[name]

    def __call__(self, texts: pa.Array, last: pa.Array | None = None) -> pa.Array:
        """texts, last: of `types`."""
        if last is not None and len(last) != len(texts):
            raise InvalidArgument(f"{self.name} takes columns of one length")
        arrays = ffi.new("struct ArrowArray[3]")
        given, step, answers = (address(arrays + place) for place in range(3))
        texts._export_to_c(given)
        if last is not None:
            last._export_to_c(step)
        self._answers(self._function, given, step, self._kind, answers)
        return pa.Array._import_from_c(answers, self.returns)


class MultiHash:
    """128 bits of XXH3 over the values of a row."""

    returns = pa.binary(16)

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        """Raises InvalidArgument for types that are not supported."""
        self.types = [_without_view(type_) for type_ in types]
        try:
            self(*(pa.nulls(0, type_) for type_ in self.types))
        except ValueError as error:
            raise InvalidArgument(f"multi_hash does not take {error}: write its values") from None

    def __call__(self, *columns: pa.Array) -> pa.Array:
        """columns: of `types`, of one length."""
        from .._native import multi_hash

        if len(set(map(len, columns))) > 1:
            raise InvalidArgument("multi_hash takes columns of one length")
        arrays = ffi.new("struct ArrowArray[]", len(columns) + 1)
        schemas = ffi.new("struct ArrowSchema[]", len(columns))
        for place, column in enumerate(columns):
            column._export_to_c(address(arrays + place), address(schemas + place))
        answers = address(arrays + len(columns))
        multi_hash(address(arrays), address(schemas), len(columns), answers)
        return pa.Array._import_from_c(answers, self.returns)


def _without_view(type_: pa.DataType) -> pa.DataType:
    return {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(type_, type_)
