"""The structure of an ArrowArray, checked against its type before pyarrow reads it.

pyarrow checks numbers of buffers and children, and follows every pointer. This module also checks the pointers, lengths
and offsets, as far as C allows: that memory is as long as an array says cannot be checked.
"""

import struct
from typing import TypeAlias

import pyarrow as pa

from ..abi import ffi

FIELDS = struct.Struct("=5q5Q")
"""An ArrowArray: length, null_count, offset, n_buffers, n_children; buffers, children, dictionary, release, private."""

_BASE = 1
MEMORY = memoryview(ffi.buffer(ffi.cast("char *", _BASE), 2**63 - 1 - _BASE))
"""All memory from address _BASE on: to read numbers at an address takes one call, without making pointers."""

_read = FIELDS.unpack_from
_pointer = struct.Struct("=Q").unpack_from
Checked: TypeAlias = tuple[int, int, int, int]
"""Of an array: length, offset, null_count, and the address of its second buffer, 0 without one."""

_MOST_ROWS = 1 << 40  # far more than memory holds, far less than overflows when it is multiplied


class Broken(Exception):
    """The text says what is wrong."""


class Layout:
    """What an array of one type consists of.

    name: for texts. required: no row is null. deep: `check` also checks the children. is_flat: there is data and no
        child. variable: offsets lead to the data, so the structure alone does not prove that a value can be read.
    """

    __slots__ = (
        "children",
        "deep",
        "is_flat",
        "is_struct",
        "n_buffers",
        "n_children",
        "name",
        "needs_data",
        "pointers",
        "required",
        "variable",
    )
    children: "list[Layout]"
    variable: bool

    def __init__(self, type_: pa.DataType, name: str, required: bool = False, deep: bool = True) -> None:
        is_text = pa.types.is_string(type_) or pa.types.is_large_string(type_)
        has_offsets = is_text or pa.types.is_binary(type_) or pa.types.is_large_binary(type_)
        self.name = name
        self.required = required
        self.deep = deep
        self.is_struct = pa.types.is_struct(type_)
        fields = [type_.field(i) for i in range(type_.num_fields)]
        self.children = [Layout(field.type, f"{name}.{field.name or i}") for i, field in enumerate(fields)]
        self.pointers = struct.Struct(f"={len(fields)}Q").unpack_from  # of the children
        self.n_children = len(fields)
        self.n_buffers = 0 if pa.types.is_null(type_) else 1 if self.is_struct else 3 if has_offsets else 2
        self.needs_data = self.n_buffers > 1
        self.is_flat = self.needs_data and not fields
        is_list = bool(self.children) and not self.is_struct
        self.variable = has_offsets or is_list or any(child.variable for child in self.children)

    def check(self, array: int, least: int = 0) -> Checked:
        """What pyarrow may read at this address. Raises Broken if it does not fit the type, or has too few rows."""
        if not array:
            raise Broken(f"{self.name} is NULL")
        length, nulls, offset, n_buffers, n_children, buffers, children, dictionary, release, _ = _read(
            MEMORY, array - _BASE
        )
        if (
            not release
            or dictionary
            or offset < 0
            or not least <= length <= _MOST_ROWS - offset
            or not -1 <= nulls <= length
            or n_buffers != self.n_buffers
            or n_children != self.n_children
            or (n_buffers and not buffers)
            or (n_children and not children)
        ):
            raise Broken(f"{self.name} {self._explained(array, least)}")
        data = 0
        if self.needs_data:
            (data,) = _pointer(MEMORY, buffers + 8 - _BASE)
            if not data and length + offset:
                raise Broken(f"{self.name} has {length} rows, and the buffer of its data is NULL")
        if nulls and n_buffers and (nulls > 0 or self.required):
            self._check_nulls(pointer_at(buffers), length, nulls, offset)
        if n_children and self.deep:
            self.check_children(children, length + offset if self.is_struct else 0)
        return length, offset, nulls, data

    def check_children(self, pointers: int, least: int) -> list[Checked]:
        addresses = self.pointers(MEMORY, pointers - _BASE)
        return [child.check(address, least) for child, address in zip(self.children, addresses, strict=True)]

    def _explained(self, array: int, least: int) -> str:
        length, nulls, offset, n_buffers, n_children, buffers, _, dictionary, release, _ = _read(MEMORY, array - _BASE)
        if not release:
            return "is released"
        if length < 0 or offset < 0 or length + offset > _MOST_ROWS:
            return f"has the length {length} and the offset {offset}"
        if length < least:
            return f"has {length} rows, and {least} are needed"
        if not -1 <= nulls <= length:
            return f"has the null_count {nulls} with {length} rows"
        if n_buffers != self.n_buffers or n_children != self.n_children:
            own = f"{self.n_buffers} and {self.n_children}"
            return f"has {n_buffers} buffers and {n_children} children, and its type has {own}"
        if dictionary:
            return "has a dictionary, and its type has none"
        return f"has {'children' if buffers or not n_buffers else 'buffers'} that are NULL"

    def _check_nulls(self, bitmap: int, length: int, nulls: int, offset: int) -> None:
        if not bitmap:
            if nulls > 0:
                raise Broken(f"{self.name} has {nulls} nulls, and its validity buffer is NULL")
        elif self.required and length:
            bits = int.from_bytes(at(bitmap, (length + offset + 7) // 8), "little") >> offset
            if nulls > 0 or (bits & ((1 << length) - 1)).bit_count() != length:
                raise Broken(f"{self.name} has nulls")


def at(address: int, n_bytes: int) -> memoryview:
    """The bytes at an address, which must be allocated as long as they are read."""
    return MEMORY[address - _BASE : address - _BASE + n_bytes]


def pointer_at(address: int) -> int:
    """The pointer that is stored at an address."""
    (pointer,) = _pointer(MEMORY, address - _BASE)
    return pointer  # type: ignore[no-any-return]
