"""Arrow C Data arrays that are described field by field, valid or not; what a function must make of them; and memory
for them whose end no reader can cross.

The rules are those of native/runtime/src/arrow/check.rs, written a second time and without looking at speed.
"""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import dataclass
from typing import Any

from arroyo_udf_plugin._cdef import ffi

MOST_ROWS = (2**63 - 1) // 16 - 1  # offset and length together
MOST_MADE = 300  # rows of an array whose buffers are made; a longer one must be refused before they are read
WIDTHS = {"c": 1, "C": 1, "s": 2, "S": 2, "i": 4, "I": 4, "f": 4, "l": 8, "L": 8, "g": 8, "b": 0}
OFFSETS = {"u": 4, "z": 4, "U": 8, "Z": 8, "+l": 4, "+L": 8}
FIELDS = ("length", "offset", "null_count", "n_buffers", "n_children")


@dataclass(frozen=True)
class Type:
    format: str
    children: tuple[Type, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of buffers and children."""
        if self.format in ("u", "z", "U", "Z"):
            return 3, 0
        return (1, len(self.children)) if self.format == "+s" else (2, len(self.children))


@dataclass
class Node:
    """One array: what its struct says, and the content of its buffers."""

    length: int
    offset: int
    null_count: int
    n_buffers: int
    n_children: int
    buffers: list[bytes | None] | None
    children: list[Node | None] | None
    slack: int = 0  # bytes between a buffer's end and the guard page: moves it off its alignment
    released: bool = False
    dictionary: bool = False

    def to_json(self) -> dict[str, Any]:
        plain = {name: value for name, value in vars(self).items() if name not in ("buffers", "children")}
        buffers = self.buffers and [buffer if buffer is None else buffer.hex() for buffer in self.buffers]
        children = self.children and [child and child.to_json() for child in self.children]
        return {**plain, "buffers": buffers, "children": children}

    @staticmethod
    def from_json(plain: dict[str, Any]) -> Node:
        buffers = plain["buffers"] and [
            buffer if buffer is None else bytes.fromhex(buffer) for buffer in plain["buffers"]
        ]
        children = plain["children"] and [child and Node.from_json(child) for child in plain["children"]]
        return Node(**{**plain, "buffers": buffers, "children": children})

    @property
    def end(self) -> int:
        return self.offset + self.length

    def offset_at(self, type_: Type, i: int) -> int:
        width = OFFSETS[type_.format]
        buffer = self.buffers and self.buffers[1]
        assert buffer is not None
        return int.from_bytes(buffer[i * width : (i + 1) * width], "little", signed=True)

    def is_null(self, row: int) -> bool:
        if self.null_count == 0 or not self.buffers or self.buffers[0] is None:
            return False
        i = self.offset + row
        return not self.buffers[0][i // 8] >> i % 8 & 1


def resize(node: Node, type_: Type, filler: bytes) -> None:
    """Makes buffers as long as the struct says, which no check can tell: too short ones are filled up."""
    for child, child_type in zip(node.children or [], type_.children, strict=False):
        if child:
            resize(child, child_type, filler)
    if not node.buffers or node.length < 0 or node.offset < 0 or node.end > MOST_MADE:
        return

    def fit(i: int, size: int) -> None:
        buffer = node.buffers[i] if node.buffers and i < len(node.buffers) else None
        if buffer is not None and node.buffers:
            node.buffers[i] = (buffer + filler * (size // len(filler) + 1))[:size]

    fit(0, (node.end + 7) // 8)
    if type_.format in WIDTHS:
        width = WIDTHS[type_.format]
        fit(1, node.end * width if width else (node.end + 7) // 8)
    elif type_.format in OFFSETS and len(node.buffers) > 1 and node.buffers[1] is not None:
        fit(1, (node.end + 1) * OFFSETS[type_.format] if node.length else 0)
        if type_.shape[0] == 3 and node.length:
            # Larger offsets cannot be backed by memory; a test has no use for them.
            last = node.offset_at(type_, node.end)
            if last > 1 << 14:
                width = OFFSETS[type_.format]
                node.buffers[1] = node.buffers[1][: node.end * width] + (9).to_bytes(width, "little")
                last = 9
            fit(2, max(0, last))


# ---- What must come of it ------------------------------------------------------------------------------------------


def why_refused(node: Node | None, type_: Type, needed: int = 0) -> str:
    """Why the array cannot be taken; empty if it can. `needed`: the rows that its parent needs."""
    if node is None:
        return "no array"
    if node.released:
        return "released"
    if (node.n_buffers, node.n_children) != type_.shape or node.dictionary:
        return "shape"
    if node.buffers is None or (type_.children and node.children is None):
        return "lists"
    if node.length < 0 or node.offset < 0 or node.end > MOST_ROWS:
        return "extent"
    if node.null_count > 0 and node.buffers[0] is None:
        return "validity"
    last = 0
    if node.length > 0 and type_.shape[0] > 1:
        if node.buffers[1] is None:
            return "values"
        if type_.format in OFFSETS:
            last = node.offset_at(type_, node.end)
            if last < 0 or (last > 0 and type_.shape[0] == 3 and node.buffers[2] is None):
                return "last offset"
    of_children = node.end if type_.format == "+s" else last
    for child, child_type in zip(node.children or [], type_.children, strict=False):
        why = why_refused(child, child_type, of_children)
        if why:
            return why
    return "too short" if node.length < needed else ""


class UnreadableError(Exception):
    """The row is an error."""


def value(node: Node, type_: Type, row: int, sees_nulls: bool, whole: bool = False) -> Any:
    """The value of a row. `sees_nulls`: pyarrow reads it, so offsets of null items count, too. `whole`: as part of
    whole arrays, so where no items begin counts, too."""
    if node.is_null(row):
        if sees_nulls:
            check_offsets(node, type_, row)
        return None
    i = node.offset + row
    assert node.buffers is not None
    if type_.format in WIDTHS:
        buffer = node.buffers[1]
        assert buffer is not None
        width = WIDTHS[type_.format]
        if not width:
            return bool(buffer[i // 8] >> i % 8 & 1)
        return ffi.unpack(ffi.cast(_C_TYPES[type_.format], ffi.from_buffer(buffer[i * width :])), 1)[0]
    if type_.format == "+s":
        return [
            value(child, child_type, i, sees_nulls, whole)
            for child, child_type in zip(node.children or [], type_.children, strict=True)
            if child
        ]
    start, end = span(node, type_, row)
    if type_.format in ("+l", "+L"):
        items = (node.children or [])[0]
        assert items is not None
        if whole and start == end and items.length > 0 and type_.children[0].format in OFFSETS:
            first, last = (items.offset_at(type_.children[0], i) for i in (items.offset + start, items.end))
            if not 0 <= first <= last:
                raise UnreadableError
        return [value(items, type_.children[0], item, sees_nulls, whole) for item in range(start, end)]
    content = (node.buffers[2] or b"")[start:end]
    if type_.format in ("u", "U"):
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise UnreadableError from None
    return content


def check_offsets(node: Node, type_: Type, row: int) -> None:
    """The offsets of a row and of its items, whether null or not."""
    items = range(node.offset + row, node.offset + row + 1)
    if type_.format in OFFSETS:
        items = range(*span(node, type_, row))
    for child, child_type in zip(node.children or [], type_.children, strict=True):
        assert child is not None
        for item in items:
            check_offsets(child, child_type, item)


def span(node: Node, type_: Type, row: int) -> tuple[int, int]:
    """Where a row begins and ends. Raises UnreadableError."""
    start, end, last = (node.offset_at(type_, node.offset + i) for i in (row, row + 1, node.length))
    if not 0 <= start <= end <= last:
        raise UnreadableError
    return start, end


_C_TYPES = {
    **{"c": "int8_t *", "C": "uint8_t *", "s": "int16_t *", "S": "uint16_t *", "i": "int32_t *", "I": "uint32_t *"},
    **{"l": "int64_t *", "L": "uint64_t *", "f": "float *", "g": "double *"},
}


# ---- Memory --------------------------------------------------------------------------------------------------------

_libc = ctypes.CDLL(None, use_errno=True)
_PAGE = mmap.PAGESIZE


class Regions:
    """Pieces of memory, each of which ends at a page that cannot be read."""

    PAGES = 5

    def __init__(self) -> None:
        self.free: list[int] = []
        self._maps: list[mmap.mmap] = []

    def take(self) -> int:
        if self.free:
            return self.free.pop()
        memory = mmap.mmap(-1, (self.PAGES + 1) * _PAGE)
        self._maps.append(memory)
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        assert _libc.mprotect(ctypes.c_void_p(start + self.PAGES * _PAGE), ctypes.c_size_t(_PAGE), 0) == 0
        return start


class Exported:
    """A node as C structs. The plugin may release `array`, or move it; all else stays as it is until `free`."""

    released: int = 0

    def __init__(self, node: Node, regions: Regions) -> None:
        self._regions, self._taken, self._kept = regions, list[int](), list[Any]()
        self._key = ffi.new_handle(self)
        self.array = ffi.new("struct ArrowArray *", self._struct(node)[0])
        self._image = self.image()

    def _struct(self, node: Node) -> Any:
        struct = ffi.new("struct ArrowArray *")
        self._kept.append(struct)
        for name in FIELDS:
            setattr(struct, name, getattr(node, name))
        if node.buffers is not None:
            struct.buffers = self._keep("void const *[]", [self._place(buffer, node.slack) for buffer in node.buffers])
        if node.children is not None:
            children = [self._struct(child) if child else ffi.NULL for child in node.children]
            struct.children = self._keep("struct ArrowArray *[]", children)
        if node.dictionary:
            struct.dictionary = struct
        struct.release = ffi.NULL if node.released else _release
        struct.private_data = self._key
        return struct

    def _keep(self, type_: str, values: list[Any]) -> Any:
        self._kept.append(ffi.new(type_, [*values, ffi.NULL]))  # one more, so that no list is empty
        return self._kept[-1]

    def _place(self, content: bytes | None, slack: int) -> Any:
        if content is None:
            return ffi.NULL
        self._taken.append(self._regions.take())
        address = self._taken[-1] + Regions.PAGES * _PAGE - slack - len(content)
        ctypes.memmove(address, content, len(content))
        return ffi.cast("void *", address)

    def image(self) -> bytes:
        """The bytes of the structs: a refusal leaves them as they are."""
        structs = [self.array, *self._kept]
        return b"".join(bytes(ffi.buffer(struct)) for struct in structs)

    def is_untouched(self) -> bool:
        return self.released == 0 and self.image() == self._image

    def is_moved(self) -> bool:
        return self.array.release == ffi.NULL

    def free(self) -> None:
        self._regions.free += self._taken
        self._taken = []


@ffi.callback("void(struct ArrowArray *)")
def _release(array: Any) -> None:
    ffi.from_handle(array.private_data).released += 1
    array.release = ffi.NULL
