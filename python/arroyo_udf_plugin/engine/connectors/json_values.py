"""JSON in columns of texts, in native code.

Guarantees: an answer for each row. A text that is no JSON answers null, and is no error.
"""

from __future__ import annotations

import functools

import pyarrow as pa
import pyarrow.compute as pc

from ...abi import address, ffi
from ...errors import InvalidArgument

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
        from ..._native import json_answers, json_function

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


def as_json(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Each text as JSON has it on one line, without spaces between; and which texts are no JSON: they are null."""
    values = _whole()(texts.cast(pa.string()))
    return values, pc.and_(texts.is_valid(), values.is_null())


@functools.cache
def _whole() -> JsonFunction:
    return JsonFunction("get_first_json_object", "$")
