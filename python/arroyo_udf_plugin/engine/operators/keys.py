"""Idempotency keys (R10): 24 bytes for each row that say where it comes from. 16 are a hash, 8 a number.

    a row of a source          the name of its file; its number there
    a part of a row            what UNNEST and lookups make of it: the row's key, and which part it is. The first part
                               has the row's key
    a row of a union           the row's key, and which input it came by. The first input's rows keep theirs
    a result of windows        the operator, bounds and keys of its window; of a window function, the row's values, and
                               which of those that have the same
    of a query over all rows   the operator, and the row's values, as above
    a call within one          the operator and the function, and the arguments' values, as above
    a joined row               the operator, and the keys of both sides' rows

None of them depends on when a row arrives, on batches or on slices. A call's key is that of its row, changed for each
pipeline, operator and function.

Guarantees: rows of an operator have different keys, unless a hash of 128 bits is the same for two.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ..connectors.cells import CellType, decoded

BYTES = 24
KEY = "$key"
"""In states: a column of keys, or the end of its name. It is binary, of which nulls, as most rows have, need few
bytes."""

_HASH = 16
_PARTS = b"parts"


def hashed(*parts: object) -> bytes:
    """16 bytes. parts: with one text each, in any process: numbers, texts, bytes."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=_HASH).digest()


def array(keys: bytes | bytearray | memoryview) -> pa.Array:
    """One behind the other."""
    n_rows = len(keys) // BYTES
    return pa.Array.from_buffers(pa.binary(), n_rows, [None, _offsets(n_rows).buffers()[1], pa.py_buffer(keys)])


def of_array(keys: pa.Array) -> memoryview:
    """keys: without nulls. Raises ArrowInvalid for values of other lengths."""
    fixed = keys.cast(pa.binary(BYTES))
    return memoryview(fixed.buffers()[1])[fixed.offset * BYTES : (fixed.offset + len(fixed)) * BYTES]


def of_origins(files: pa.Array, rows: pa.Array, keys: pa.Array, mask: bytes = bytes(_HASH)) -> memoryview:
    """Of rows, each of which is known by its key, or, if that is null, by its file and its number there.

    mask: 16 bytes, which change all keys.
    """
    if not keys.null_count:
        return memoryview(_masked(of_array(keys), mask)) if any(mask) else of_array(keys)
    numbered = _numbered(files, rows, mask)
    if keys.null_count == len(keys):
        return memoryview(numbered)
    masked = array(_masked(of_array(keys.fill_null(bytes(BYTES))), mask))
    return of_array(pc.if_else(keys.is_valid(), masked, array(numbered)))


def of_numbers(prefix: bytes, numbers: pa.Array) -> bytearray:
    """prefix: 16 bytes. numbers: uint64, without nulls."""
    n_rows = len(numbers)
    keys = bytearray((prefix + bytes(BYTES - _HASH)) * n_rows)
    little = bytes(memoryview(numbers.buffers()[1])[numbers.offset * 8 : (numbers.offset + n_rows) * 8])
    largest = pc.max(numbers).as_py() or 0
    for place in range((largest.bit_length() + 7) // 8):
        keys[BYTES - 1 - place :: BYTES] = little[place::8]
    return keys


def _numbered(files: pa.Array, rows: pa.Array, mask: bytes) -> bytearray:
    rows = rows.fill_null(0) if rows.null_count else rows
    if len(files) and not files.null_count and files.equals(pa.repeat(files[0], len(files))):  # as from a source
        return of_numbers(_xor(_of_file(files[0].as_py()), mask), rows)
    names = files.dictionary_encode()
    prefixes = [_xor(_of_file(name), mask) for name in names.dictionary.to_pylist()]
    keys = of_numbers(bytes(_HASH), rows)
    several = pa.array(prefixes, pa.binary(_HASH)).take(names.indices.fill_null(0))
    own = bytes(memoryview(several.buffers()[1])[: _HASH * len(several)])
    for place in range(_HASH):
        keys[place::BYTES] = own[place::_HASH]
    return keys


@functools.lru_cache(maxsize=64)
def _of_file(name: str) -> bytes:
    return hashed("file", name)


def masked(keys: memoryview, mask: bytes) -> pa.Array:
    return array(_masked(keys, mask))


def _masked(keys: memoryview, mask: bytes) -> bytes:
    """Keys with 16 bytes more in their hashes."""
    n_rows = len(keys) // BYTES
    return _xor(keys, (mask + bytes(BYTES - _HASH)) * n_rows)


def _xor(data: bytes | memoryview, other: bytes) -> bytes:
    return (int.from_bytes(data, "little") ^ int.from_bytes(other, "little")).to_bytes(len(other), "little")


class RowParts:
    """Which part of its row each one is, in batches of parts of one block. operator: makes its parts its own."""

    def __init__(self, operator: bytes) -> None:
        self._operator = operator
        self._last: tuple[int | None, int] = None, 0  # the row of the last part, and its number

    def keys(self, rows: Callable[[], memoryview], of: pa.Array) -> pa.Array | None:
        """rows: gives the keys of the rows. of: the row of each part, rising. None: each is the first of its row."""
        last, number = self._last
        if of[0].as_py() != last and pc.all(pc.not_equal(of[1:], of[:-1])).as_py() is not False:
            self._last = of[-1].as_py(), 0
            return None
        part_keys, keys = bytearray(), rows()
        for row in of.to_pylist():
            number = number + 1 if row == last else 0
            last = row
            key = keys[row * BYTES : (row + 1) * BYTES]
            part_keys += _masked(key, _part(self._operator, number)) if number else key
        self._last = last, number
        return array(part_keys)


@functools.lru_cache(maxsize=4096)
def _part(operator: bytes, number: int) -> bytes:
    return hashed(_PARTS, operator, number)


class OfResults:
    """The keys of results of one operator's windows, which are over together: of as many batches as there are."""

    def __init__(self, operator: bytes, are_rows: bool) -> None:
        """are_rows: each result is a row: several may be the same."""
        self._operator, self._are_rows = operator, are_rows
        self._known: Counter[bytes] = Counter()

    def keys(self, columns: Sequence[pa.Array]) -> pa.Array:
        """columns: those that tell results apart."""
        hashes = [hashed(self._operator, *values) for values in zip(*map(_plain, columns), strict=True)]
        if not self._are_rows:
            return array(b"".join(key + bytes(BYTES - _HASH) for key in hashes))
        numbered = bytearray()
        for key in hashes:
            numbered += key + self._known[key].to_bytes(BYTES - _HASH, "big")
            self._known[key] += 1
        return array(numbered)


def of_calls(operator: bytes, function: str) -> Callable[[pa.RecordBatch], memoryview]:
    """Of the calls of a function within a query over all rows, in whatever order it makes them."""
    results = OfResults(hashed(operator, function), are_rows=True)
    return lambda rows: of_array(results.keys(rows.columns))


def of_pairs(operator: bytes, left: pa.Array, right: pa.Array) -> pa.Array:
    """Of joined rows. left, right: the keys of both sides; null: it has none."""
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    return array(b"".join(hashed(operator, *pair) + bytes(BYTES - _HASH) for pair in pairs))


def _plain(column: pa.Array) -> Iterable[object]:
    """Values with a text of their own, the same in any process."""
    if isinstance(column.type, CellType):
        return _plain(decoded(column))
    if isinstance(column.type, pa.BaseExtensionType):
        return _plain(column.storage)
    type_ = column.type
    if pa.types.is_struct(type_):
        return list(zip(column.is_valid().to_pylist(), *map(_plain, column.flatten()), strict=True))
    if pa.types.is_dictionary(type_):
        return _plain(column.dictionary_decode())
    if pa.types.is_temporal(type_) and type_.bit_width in (32, 64):
        column = column.view(pa.int32() if type_.bit_width == 32 else pa.int64())
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        items = iter(_plain(column.flatten()))  # without those of nulls
        lengths = pc.list_value_length(column).to_pylist()
        return [None if length is None else list(itertools.islice(items, length)) for length in lengths]
    return column.to_pylist()  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=64)
def _offsets(n_rows: int) -> pa.Array:
    return pa.array(range(0, BYTES * (n_rows + 1), BYTES), pa.int32())
