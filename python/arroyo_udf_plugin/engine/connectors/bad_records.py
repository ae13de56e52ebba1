"""What happens to a source's rows that could not be read.

    decided = decide(block.origin, "dead_letter")      None: all rows could be read
    block.filter(decided.kept), decided.dead           and block.take(decided.dead_at): the dead letters' rows

Such a row has lost values, so no function is called for it, and none could answer for it: its source's policy decides,
before the first operator.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from ...host.policy import LETTER

BadRecords = Literal["fail", "drop", "dead_letter"]


@dataclasses.dataclass(frozen=True)
class Admitted:
    """kept: a mask of the rows that could be read. failures: the others, as dead letters (`LETTER`).

    dead, dead_at: the dead letters by policy, and their positions; may be empty.
    """

    kept: pa.BooleanArray
    failures: pa.RecordBatch
    dead: pa.RecordBatch
    dead_at: pa.Int64Array


def decide(origin: pa.RecordBatch, policy: BadRecords) -> Admitted | None:
    """Applies a source's policy. origin: the rows' columns file, row and unread (why a row could not be read).

    None: all could. Raises InvalidArgument for "fail", naming the first such row.
    """
    unread = origin.column("unread")
    if unread.null_count == len(unread):
        return None
    kept = unread.is_null()
    positions = pc.indices_nonzero(unread.is_valid()).cast(pa.int64())
    bad = origin.take(positions)
    if policy == "fail":
        first = {name: bad.column(name)[0].as_py() for name in ("file", "row", "unread")}
        raise InvalidArgument(
            f"{first['file']}, row {first['row']}: {first['unread']} "
            '(bad_records = "drop" or "dead_letter" goes on without such rows; in SQL, the option is bad_data)'
        )
    failures = _letters(bad)
    n_dead = len(positions) if policy == "dead_letter" else 0
    return Admitted(kept, failures, failures[:n_dead], positions[:n_dead])


def _letters(bad: pa.RecordBatch) -> pa.RecordBatch:
    length = bad.num_rows
    columns = {
        "failed_row": bad.column("row"),
        "failed_file": bad.column("file"),
        "failed_outcome": pa.repeat("unread", length),
        "failed_error": bad.column("unread"),
        "failed_attempts": pa.repeat(pa.scalar(0, pa.uint32()), length),
        "failed_function": pa.nulls(length, pa.string()),
        "failed_plugin": pa.nulls(length, pa.string()),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in LETTER.names], schema=LETTER)
