"""Which slice works on a row: rows of one key are in one of 128 key groups, and each slice has some of these.

    groups = KeyGroups(grouping, schema)
    groups.of(rows)                                 the group of each row; None: all are in the first one
    GroupRange.of(slice=1, width=3)                 the groups of a slice, one behind the other

States name the groups that they are of. So another number of slices shares them out anew.

Guarantees: rows that a query puts together are in one group: those with equal keys, and of a join those that can meet.
A group depends on the values alone, and is the same in each process and version.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from ..connectors.cells import CellType, decoded
from ..datafusion.columns import MultiHash
from ..datafusion.tokens import Token, tokens
from .collecting import Collecting
from .first_rows import KNOWN_KEYS, FirstRows, known_keys_within
from .group_ranges import COUNT, GroupRange
from .grouping import Grouping
from .join_query import SIDES, Joining
from .kept import KeptPart, KeptRows
from .look_back import LookBackRows
from .spans import nanoseconds
from .updating_rows import FollowedRows, JoiningRows, NetRows, Updates, UpdatingRows

BYTES = MultiHash.returns.byte_width

Asked = Grouping | Joining | Collecting | FirstRows | LookBackRows | Updates
Keys = Callable[[pa.RecordBatch], Sequence[pa.Array]]
"""The columns of keys of some rows."""


class KeyGroups:
    """Of rows with this schema."""

    def __init__(self, asked: Asked, schema: pa.Schema) -> None:
        """schema: what is asked is asked of such rows; also of what is kept of them, which has the same keys."""
        self.asked, self._keys = asked, _keys_of(asked, schema)
        self._are_known_by_hash = isinstance(asked, FirstRows)
        columns = self._columns(pa.RecordBatch.from_arrays([pa.nulls(0, t) for t in schema.types], schema=schema))
        self._chosen = [place for place, column in enumerate(columns) if _is_hashed(column.type)]
        types = [columns[place].type for place in self._chosen]
        self._hash = MultiHash(types) if types else None

    @property
    def is_one(self) -> bool:
        """Whether all rows are in the first group."""
        return self._hash is None

    def of(self, rows: pa.RecordBatch) -> pa.UInt8Array | None:
        """The group of each row. None: all are in the first one."""
        if self._hash is None:
            return None
        columns = self._columns(rows)
        return groups_of(self._hash(*(columns[place] for place in self._chosen)))

    def within(self, part: KeptRows, range_: GroupRange) -> KeptRows:
        """Of what windows have kept, some key groups."""
        rows = part.rows
        if self._hash is None:
            return part.chosen(pa.repeat(range_.first == 0, rows.num_rows))
        if KNOWN_KEYS in rows.schema.names and rows.column(KNOWN_KEYS).null_count < rows.num_rows:
            known = known_keys_within(rows, lambda hashes: range_.mask(groups_of(hashes)))
            return KeptRows(KeptPart(known))
        return part.chosen(range_.mask(self.of(rows)))

    def _columns(self, rows: pa.RecordBatch) -> list[pa.Array]:
        keys = [] if self._keys is None else self._keys(rows)
        if self._are_known_by_hash:
            return list(map(decoded, keys))
        return [part for key in keys for part in key_parts(key)]


def groups_of(hashes: pa.Array) -> pa.UInt8Array:
    """hashes: of `MultiHash`."""
    n_rows, data = len(hashes), memoryview(hashes.buffers()[1])[hashes.offset * BYTES :]
    first = pa.py_buffer(bytes(data[: n_rows * BYTES : BYTES]))
    return pc.bit_wise_and(pa.Array.from_buffers(pa.uint8(), n_rows, [None, first]), pa.scalar(COUNT - 1, pa.uint8()))


def _keys_of(asked: Asked, schema: pa.Schema) -> Keys | None:
    """None: all rows are needed together."""
    if isinstance(asked, Joining):
        return _keys_of_join(asked, schema)
    if isinstance(asked, JoiningRows):
        columns = [tuple(f"{number}.{name}" for number, name in enumerate(pair)) for pair in asked.keys]
        return lambda rows: [pc.coalesce(*(decoded(rows.column(name)) for name in pair)) for pair in columns]
    names: Sequence[str | None] = ()
    of_keys = FirstRows | UpdatingRows | FollowedRows | NetRows
    if isinstance(asked, of_keys) or (isinstance(asked, Grouping) and not asked.by_row):
        names = asked.keys
    elif isinstance(asked, LookBackRows):
        names = [_name_of(tokens(key), {asked.table}) for key in asked.keys]
    known = [name for name in names if name is not None and name in schema.names]
    return (lambda rows: [rows.column(name) for name in known]) if known else None


def _keys_of_join(joining: Joining, schema: pa.Schema) -> Keys | None:
    """Rows that meet have the same values in the columns of both sides that the condition compares. Those of one time
    have at least that."""
    pairs = []
    for names in _compared(joining):
        left, right = (side + name for side, name in zip(SIDES, names, strict=True))
        if {left, right} <= set(schema.names) and schema.field(left).type == schema.field(right).type:
            pairs.append((left, right))
    if pairs:
        return lambda rows: [pc.coalesce(*(decoded(rows.column(name)) for name in pair)) for pair in pairs]
    if joining.within is None:
        return lambda rows: [nanoseconds(rows.column(joining.time))]
    return None


def _compared(joining: Joining) -> Iterator[tuple[str, str]]:
    """The columns of the left and the right side that must be equal for rows to meet."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens(joining.on):
        depth -= token.text == ")"
        if not depth and token.word in ("or", "between", "case"):
            return  # not all that meet are equal
        if not depth and token.word == "and":
            parts.append([])
        else:
            parts[-1].append(token)
        depth += token.text == "("
    for part in parts:
        sides = part[:3], part[4:]
        if len(part) == 7 and part[3].text == "=":
            for left, right in (sides, sides[::-1]):
                names = _name_of(left, {joining.tables[0]}), _name_of(right, {joining.tables[1]})
                if names[0] is not None and names[1] is not None:
                    yield names[0], names[1]


def _name_of(part: Sequence[Token], tables: Collection[str]) -> str | None:
    """Of the column that an expression is, with or without its table in front. None: it is none."""
    if len(part) == 3 and part[1].text == "." and part[0].name in tables:
        part = part[2:]
    return part[0].name if len(part) == 1 else None


def key_parts(key: pa.Array, has_one_nan: bool = True) -> list[pa.Array]:
    """Columns that are equal where the keys are. has_one_nan: all that is no number is the same; DataFusion's groups
    know a NaN with a sign, too."""
    if isinstance(key.type, pa.BaseExtensionType):
        return key_parts(decoded(key) if isinstance(key.type, CellType) else key.storage, has_one_nan)
    if pa.types.is_struct(key.type):
        return [key.is_valid(), *(part for field in key.flatten() for part in key_parts(field, has_one_nan))]
    if pa.types.is_dictionary(key.type):
        return key_parts(key.dictionary_decode(), has_one_nan)
    if pa.types.is_floating(key.type):  # 0 is -0
        number = pc.add(key, pa.scalar(0.0, key.type))
        return [pc.if_else(pc.is_nan(key), pa.scalar(float("nan"), key.type), number) if has_one_nan else number]
    return [key]


def _is_hashed(type_: pa.DataType) -> bool:
    """Rows may share a group whose keys differ in other columns alone, such as lists."""
    try:
        MultiHash([type_])
    except InvalidArgument:
        return False
    return True
