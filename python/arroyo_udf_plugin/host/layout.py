"""The structure of an ArrowArray, checked against its type before pyarrow reads it.

pyarrow checks numbers of buffers and children, and follows every pointer. This module also checks the pointers, lengths
and offsets, as far as C allows: that memory is as long as an array says cannot be checked.
"""

import struct
from typing import Any

import pyarrow as pa

from ..abi import ffi

FIELDS = struct.Struct("=5q5Q")
"""An ArrowArray: length, null_count, offset, n_buffers, n_children; buffers, children, dictionary, release, private."""

_read = FIELDS.unpack_from
_MOST_ROWS = 1 << 40  # far more than memory holds, far less than overflows when it is multiplied


class Broken(Exception):
    """The text says what is wrong."""


class Layout:
    """What an array of one type consists of.

    name: for texts. required: no row is null. variable: offsets lead to the data, so the structure alone does not
    prove that a value can be read.
    """

    __slots__ = ("children", "is_struct", "n_buffers", "name", "needs_data", "required", "variable")
    children: "list[Layout]"
    variable: bool

    def __init__(self, type_: pa.DataType, name: str, required: bool = False) -> None:
        is_text = pa.types.is_string(type_) or pa.types.is_large_string(type_)
        has_offsets = is_text or pa.types.is_binary(type_) or pa.types.is_large_binary(type_)
        self.name = name
        self.required = required
        self.is_struct = pa.types.is_struct(type_)
        fields = [type_.field(i) for i in range(type_.num_fields)]
        self.children = [Layout(field.type, f"{name}.{field.name or i}") for i, field in enumerate(fields)]
        self.n_buffers = 0 if pa.types.is_null(type_) else 1 if self.is_struct else 3 if has_offsets else 2
        self.needs_data = self.n_buffers > 1
        is_list = bool(self.children) and not self.is_struct
        self.variable = has_offsets or is_list or any(child.variable for child in self.children)

    def check(self, array: Any, least: int = 0) -> int:
        """The array's length. Raises Broken if its structure is not that of the type, or it is shorter than `least`."""
        if not array:
            raise Broken(f"{self.name} is NULL")
        length, nulls, offset, n_buffers, n_children, buffers, children, dictionary, release, _ = _read(
            ffi.buffer(array)
        )
        if not release:
            raise Broken(f"{self.name} is released")
        if length < 0 or offset < 0 or length + offset > _MOST_ROWS:
            raise Broken(f"{self.name} has the length {length} and the offset {offset}")
        if length < least:
            raise Broken(f"{self.name} has {length} rows, and {least} are needed")
        if not -1 <= nulls <= length:
            raise Broken(f"{self.name} has the null_count {nulls} with {length} rows")
        if n_buffers != self.n_buffers or n_children != len(self.children):
            raise Broken(
                f"{self.name} has {n_buffers} buffers and {n_children} children, and its type has {self.n_buffers} and "
                f"{len(self.children)}"
            )
        if dictionary:
            raise Broken(f"{self.name} has a dictionary, and its type has none")
        if (n_buffers and not buffers) or (n_children and not children):
            raise Broken(f"the {'buffers' if n_buffers and not buffers else 'children'} of {self.name} are NULL")
        if self.needs_data and length + offset and not array.buffers[1]:
            raise Broken(f"{self.name} has {length} rows, and the buffer of its data is NULL")
        if nulls and n_buffers:
            self._check_nulls(array, length, nulls, offset)
        for i, child in enumerate(self.children):
            child.check(array.children[i], length + offset if self.is_struct else 0)
        return int(length)

    def _check_nulls(self, array: Any, length: int, nulls: int, offset: int) -> None:
        bitmap = array.buffers[0]
        if not bitmap:
            if nulls > 0:
                raise Broken(f"{self.name} has {nulls} nulls, and its validity buffer is NULL")
        elif self.required and length:
            bits = int.from_bytes(ffi.buffer(ffi.cast("char *", bitmap), (length + offset + 7) // 8), "little")
            if nulls > 0 or ((bits >> offset) & ((1 << length) - 1)).bit_count() != length:
                raise Broken(f"{self.name} has nulls")
