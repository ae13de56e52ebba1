"""Which pieces of sessions belong together: those of one key without a gap between them.

    found = numbered(keys, firsts, lasts, gap)
    found.order        the pieces, sorted by session
    found.session      of each piece in that order: 0, 1, ...
    found.starts       where in that order each session begins

    matching(keys, others)         which of the others have one of these keys

Everything is done by Arrow for all pieces at once; what it costs hardly depends on the number of keys.

Guarantees: within a session, pieces come by their first times. Keys of any type work, nulls are a key like others.
Assumes: times differ from the limits of 64 bits by `gap` at least.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

_LIMIT = 1 << 62  # of numbers that are packed


@dataclass(frozen=True)
class Numbered:
    """firsts, lasts: of each session."""

    order: pa.UInt64Array
    session: pa.Int64Array
    starts: pa.UInt64Array
    firsts: pa.Int64Array
    lasts: pa.Int64Array


def numbered(keys: Sequence[pa.Array], firsts: pa.Int64Array, lasts: pa.Int64Array, gap: int) -> Numbered:
    """Of at least one piece. lasts: may be the same array as `firsts`."""
    ids = _ids(keys, len(firsts))
    order = _order(ids, firsts)
    are_moments = lasts is firsts
    ids, firsts = ids.take(order), firsts.take(order)
    until = firsts if are_moments else _latest(ids, lasts.take(order))
    is_other = pc.not_equal(ids[1:], ids[:-1])
    is_behind = pc.less_equal(until[:-1], pc.subtract(firsts[1:], gap))
    begins = pa.concat_arrays([pa.array([True]), pc.or_(is_other, is_behind)])
    starts = pc.indices_nonzero(begins)
    ends = pa.concat_arrays([pc.subtract(starts[1:], pa.scalar(1, starts.type)), pa.array([len(ids) - 1], starts.type)])
    session = pc.subtract(pc.cumulative_sum(begins.cast(pa.int64())), 1)
    return Numbered(order, session, starts, firsts.take(starts), until.take(ends))


def _order(ids: pa.Int64Array, times: pa.Int64Array) -> pa.UInt64Array:
    """By number, and by time within a number."""
    if (packed := _packed(ids, times)) is not None:
        return pc.sort_indices(packed[0])
    return pc.sort_indices(pa.table([ids, times], ["id", "time"]), [("id", "ascending"), ("time", "ascending")])


def _latest(ids: pa.Int64Array, lasts: pa.Int64Array) -> pa.Int64Array:
    """The latest time of each key so far. ids: sorted."""
    if (packed := _packed(ids, lasts)) is not None:
        return pc.subtract(pc.cumulative_max(packed[0]), packed[1])
    order = pc.sort_indices(lasts)
    rank = pc.sort_indices(order).cast(pa.int64())  # where each position has gone
    return lasts.take(order).take(_latest(ids, rank))


def _packed(ids: pa.Int64Array, times: pa.Int64Array) -> tuple[pa.Int64Array, pa.Int64Array] | None:
    """Numbers and times in one integer each, which has the order of both; and what to subtract to have the time again.
    None: they do not fit into 64 bits."""
    bounds = pc.min_max(times)
    first, span = bounds["min"].as_py(), bounds["max"].as_py() - bounds["min"].as_py() + 1
    if (len(ids) + 1) * span > _LIMIT:
        return None
    steps = pc.subtract(pc.multiply(ids, span), first)
    return pc.add(steps, times), steps


def matching(keys: Sequence[pa.Array], others: Sequence[Sequence[pa.Array]]) -> pa.BooleanArray:
    """Which of the others have one of these keys, in one array for all of them. Each: columns, at least one."""
    own, *their = ([column for key in some for column in _flat(key)] for some in (keys, *others))
    columns = list(map(pa.chunked_array, zip(*their, strict=True)))
    masks = [_whole(pc.is_in(column, value_set=known)) for column, known in zip(columns, own, strict=True)]
    mask = functools.reduce(pc.and_, masks)
    if len(masks) == 1 or not mask.true_count:
        return mask
    # A combination of values that are among the keys may be another one.
    n_keys = len(own[0])
    both = [pa.concat_arrays([known, *column.filter(mask).chunks]) for known, column in zip(own, columns, strict=True)]
    ids = _ids(both, len(both[0]))
    return pc.replace_with_mask(mask, mask, pc.is_in(ids[n_keys:], value_set=ids[:n_keys]))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks)


def _ids(keys: Sequence[pa.Array], length: int) -> pa.Int64Array:
    """A number below `length` for each combination of keys."""
    columns = [column for key in keys for column in _flat(key)]
    encoded = [pc.dictionary_encode(column, null_encoding="encode") for column in columns]
    if not encoded:
        return pa.repeat(pa.scalar(0, pa.int64()), length)
    together, _ = functools.reduce(
        _combined, ((codes.indices.cast(pa.int64()), len(codes.dictionary)) for codes in encoded)
    )
    return together


def _combined(some: tuple[pa.Int64Array, int], others: tuple[pa.Int64Array, int]) -> tuple[pa.Int64Array, int]:
    """Numbers of combinations, below `length` again. Each: numbers, and how many there may be."""
    both = pc.dictionary_encode(pc.add(pc.multiply(some[0], others[1]), others[0]))
    return both.indices.cast(pa.int64()), len(both.dictionary)


def _flat(key: pa.Array) -> list[pa.Array]:
    """Columns that can be numbered."""
    if isinstance(key.type, pa.BaseExtensionType):
        return _flat(key.storage)
    if pa.types.is_struct(key.type):
        return [key.is_valid(), *(column for field in key.flatten() for column in _flat(field))]
    if pa.types.is_nested(key.type) or pa.types.is_dictionary(key.type):
        return [pa.array(map(repr, key.to_pylist()), pa.string())]
    return [key.cast(pa.float32()) if pa.types.is_float16(key.type) else key]
