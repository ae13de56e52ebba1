"""The policy for failed rows (R3), applied to record batches. Touches no files.

    policy = Policy(error="null", timeout="dead_letter")
    decided = policy.apply(results, function)          results: of drain_results, or of a sync function's outcomes
    decided.results                                    the remaining rows
    decided.dead                                       the dead letters, see dead_letters.py

Guarantees: a row is kept, dropped or a dead letter, never two of them.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, fields
from typing import Literal, Protocol, get_args

import pyarrow as pa
import pyarrow.compute as pc

from ..abi import ERROR, TIMED_OUT, VALUE
from ..errors import InvalidArgument, RowError

Action = Literal["fail", "null", "drop", "dead_letter"]
ACTIONS: tuple[Action, ...] = get_args(Action)

OUTCOMES = ("value", "error", "timed_out", "cancelled")  # by number; see arroyo_udf.h

LETTER = pa.schema(
    [
        ("failed_row", pa.uint64()),
        ("failed_file", pa.string()),
        ("failed_outcome", pa.string()),
        ("failed_error", pa.string()),
        ("failed_attempts", pa.uint32()),
        ("failed_function", pa.string()),
        ("failed_plugin", pa.string()),
    ]
)
"""The columns of a dead letter after the row's own. The prefix keeps them apart from these."""

_NOLETTERS = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in LETTER], schema=LETTER)
_NOWHERE = pa.nulls(0, pa.int64())
_KEPT = 8192


class Answers(Protocol):
    """Whose results they are: a `Function`, or what else answers rows. where: for error texts."""

    @property
    def name(self) -> str: ...
    @property
    def where(self) -> str: ...
    @property
    def plugin_hash(self) -> str: ...


@dataclass(frozen=True)
class Decided:
    """Results after a policy.

    results: the remaining rows in their order; a failed row among them has the value null.
    kept: a mask over the original rows, true for those in `results`; None: all remain.
    dead: the dead letters, with the columns failed_row, failed_outcome, ...; may be empty.
    dead_at: the positions (int64) of the dead letters in the original rows, to take their arguments.
    failures: all rows that had failed before the policy, as dead letters are.
    nulled, dropped: the number of rows with null as their value, and of rows left out.
    timed_out: the number of failed rows that timed out.
    """

    results: pa.RecordBatch
    kept: pa.BooleanArray | None
    dead: pa.RecordBatch
    dead_at: pa.Int64Array
    failures: pa.RecordBatch
    nulled: int = 0
    dropped: int = 0
    timed_out: int = 0


@dataclass(frozen=True)
class Policy:
    """What happens to rows that ended with an error (or were cancelled), and to rows that timed out.

    "fail": raise RowError. "null": the value is null. "drop": the row is left out. "dead_letter": the row is left out
    and returned as a dead letter. Raises InvalidArgument for other actions.
    """

    error: Action = "fail"
    timeout: Action = "fail"

    def __post_init__(self) -> None:
        for field in fields(self):
            action = getattr(self, field.name)
            if action not in ACTIONS:
                raise InvalidArgument(f"{field.name}={action!r}; write one of {', '.join(map(repr, ACTIONS))}")

    @property
    def has_dead_letters(self) -> bool:
        return "dead_letter" in (self.error, self.timeout)

    def apply(
        self,
        results: pa.RecordBatch | pa.StructArray,
        function: Answers,
        first: int = 0,
        origin: pa.RecordBatch | None = None,
    ) -> Decided:
        """Applies the policy to results of `function`: `drain_results`, or a sync function's `outcomes`.

        origin: where each row comes from, its columns "file" and "row"; None: the field `id` numbers the rows, and
        without it (a sync function's outcomes) they count from `first`.
        Raises RowError if the action of a row is "fail": it names the first such row and has the texts of all.
        """
        if isinstance(results, pa.StructArray):
            results = pa.RecordBatch.from_struct_array(results)
        place = results.schema.get_field_index("outcome")
        if place < 0 or _are_values(outcomes := results.column(place)):
            return Decided(results, None, _NOLETTERS, _NOWHERE, _NOLETTERS)
        n_timed_out = pc.sum(pc.equal(outcomes, TIMED_OUT)).as_py()

        failed = self._positions(outcomes, "fail")
        if len(failed):
            letters = _letters(results, function, first, origin, failed)
            rows, texts = letters["failed_row"].to_pylist(), letters["failed_error"].to_pylist()
            file = letters["failed_file"][0].as_py()
            place = f"row {rows[0]}" if file is None else f"{file}, row {rows[0]}"
            raise RowError(f"{function.where}, {place}: {texts[0]}", dict(zip(rows, texts, strict=True)))

        nulled, dropped = len(self._positions(outcomes, "null")), len(self._positions(outcomes, "drop"))
        dead_at = self._positions(outcomes, "dead_letter")
        failed_at = pc.indices_nonzero(pc.not_equal(outcomes, VALUE)).cast(pa.int64())
        failures = _letters(results, function, first, origin, failed_at)
        kept = None
        dead = failures.filter(pc.is_in(failed_at, value_set=dead_at))
        if dropped or len(dead_at):
            kept = pc.invert(pc.is_in(outcomes, value_set=self._outcomes("drop", "dead_letter")))
            results = results.filter(kept)
        return Decided(results, kept, dead, dead_at, failures, nulled, dropped, n_timed_out)

    def _outcomes(self, *actions: Action) -> pa.Array:
        """The outcomes whose action is one of these. One that this host does not know is an error."""
        return _outcomes(self.error, self.timeout, actions)

    def _positions(self, outcomes: pa.Array, action: Action) -> pa.Array:
        return pc.indices_nonzero(pc.is_in(outcomes, value_set=self._outcomes(action))).cast(pa.int64())


def _are_values(outcomes: pa.UInt8Array) -> bool:
    """Whether no row has failed. `pyarrow.compute` would cost more than all else that becomes of a small batch."""
    n_rows = len(outcomes)
    if n_rows > _KEPT:
        return bool(pc.max(outcomes).as_py() == VALUE)
    return bool(outcomes.equals(_values().slice(0, n_rows)))


@functools.cache
def _values() -> pa.UInt8Array:
    return pa.repeat(pa.scalar(VALUE, pa.uint8()), _KEPT)


@functools.cache
def _outcomes(error: Action, timeout: Action, actions: tuple[Action, ...]) -> pa.Array:
    chosen = dict.fromkeys(range(VALUE + 1, 256), error) | {TIMED_OUT: timeout}
    return pa.array([outcome for outcome, action in chosen.items() if action in actions], pa.uint8())


def _letters(
    results: pa.RecordBatch, function: Answers, first: int, origin: pa.RecordBatch | None, positions: pa.Array
) -> pa.RecordBatch:
    """The columns failed_... of the results at `positions`."""
    n_rows, names = len(positions), results.schema.names
    if not n_rows:
        return _NOLETTERS
    chosen = results.take(positions)
    if origin is not None:
        rows, files = (origin.column(name).take(positions) for name in ("row", "file"))
    else:
        rows, files = chosen.column("id") if "id" in names else pc.add(positions, first), pa.nulls(n_rows)
    # The text begins with function and row, or position in the batch. Strip that prefix: both have their own columns.
    names_row = rf"^({re.escape(function.where)}|{re.escape(function.name)}), row \d+: "
    texts = pc.fill_null(pc.replace_substring_regex(chosen.column("error"), names_row, ""), "no text")
    attempts = chosen.column("attempts") if "attempts" in names else pa.repeat(1, n_rows)
    outcomes = chosen.column("outcome")
    outcomes = pc.if_else(pc.less(outcomes, len(OUTCOMES)), outcomes, pa.scalar(ERROR, pa.uint8()))
    columns = [
        rows,
        files,
        pa.array(OUTCOMES).take(outcomes),
        texts,
        attempts,
        pa.repeat(function.name, n_rows),
        pa.repeat(function.plugin_hash, n_rows),
    ]
    typed = [column.cast(type_) for column, type_ in zip(columns, LETTER.types, strict=True)]
    return pa.RecordBatch.from_arrays(typed, schema=LETTER)
