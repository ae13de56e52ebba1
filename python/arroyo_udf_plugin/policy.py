"""What becomes of rows that did not end with a value: the host's policy per class (R3), and its dead letters.

    policy = Policy(error="null", timeout="dead_letter")
    with DeadLetters("dead.parquet", function) as letters:
        decided = policy.apply(results, function)          results: of drain_results, or of a sync function's outcomes
        decided.results                                    what goes on
        letters.write(decided.dead, arguments)             arguments: of the rows decided.dead_at

Guarantees: a row is kept, dropped or a dead letter, never two of them; the file of the dead letters appears when its
`with` block ends well, also if there were none, and not at all otherwise. It can be replayed: its first columns are the
arguments, with their names, in the types that the function takes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, get_args

import pyarrow as pa
import pyarrow.compute as pc

from ._errors import InvalidArgument, RowError
from .tables import ENDINGS, Writer, ending

if TYPE_CHECKING:
    from .host import Function

Action = Literal["fail", "null", "drop", "dead_letter"]
ACTIONS: tuple[Action, ...] = get_args(Action)

OUTCOMES = ("value", "error", "timed_out", "cancelled")  # by number; see arroyo_udf.h
ERROR, TIMED_OUT, CANCELLED = 1, 2, 3

# What a dead letter says besides its arguments. The prefix leaves the usual names to the arguments.
_LETTER = pa.schema(
    [
        ("failed_row", pa.uint64()),
        ("failed_outcome", pa.string()),
        ("failed_error", pa.string()),
        ("failed_attempts", pa.uint32()),
        ("failed_function", pa.string()),
        ("failed_plugin", pa.string()),
    ]
)
_NO_LETTERS = pa.RecordBatch.from_pylist([], _LETTER)
_NOWHERE = pa.array([], pa.int64())


@dataclass(frozen=True)
class Decided:
    """Results after a policy.

    results: those that go on, in their order; what failed and stays has the value null.
    kept: a mask over the rows before, true where they are in `results`; None where all are.
    dead: the dead letters, columns failed_row, failed_outcome, ... (no rows where there are none).
    dead_at: their positions (int64) in the rows before, to take the arguments by.
    nulled, dropped: how many rows got null for their value, and how many are gone.
    """

    results: pa.RecordBatch
    kept: pa.BooleanArray | None
    dead: pa.RecordBatch
    dead_at: pa.Int64Array
    nulled: int
    dropped: int


@dataclass(frozen=True)
class Policy:
    """What to do about a row that ended with an error (or was cancelled), and about one that timed out.

    fail: raise RowError. null: its value is null. drop: it is left out. dead_letter: it is left out, and handed over to
    be written to a file. Raises InvalidArgument for another word.
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

    def apply(self, results: pa.RecordBatch | pa.StructArray, function: Function, first: int = 0) -> Decided:
        """Applies the policy to results of `function`: fields value and, where not all are values, outcome and error.

        Rows are called by the field `id`; where there is none (a sync function's outcomes), they count from `first`.
        Raises RowError where the policy is "fail": it names the first such row, and has the texts of all.
        """
        if isinstance(results, pa.StructArray):
            results = pa.RecordBatch.from_struct_array(results)
        if "outcome" not in results.schema.names:
            return Decided(results, None, _NO_LETTERS, _NOWHERE, 0, 0)
        outcomes = results.column("outcome")

        failed = self._positions(outcomes, "fail")
        if len(failed):
            letters = _letters(results, function, first, failed)
            rows, texts = letters["failed_row"].to_pylist(), letters["failed_error"].to_pylist()
            raise RowError(f"row {rows[0]}: {function.name}: {texts[0]}", dict(zip(rows, texts, strict=True)))

        nulled, dropped = len(self._positions(outcomes, "null")), len(self._positions(outcomes, "drop"))
        dead_at = self._positions(outcomes, "dead_letter")
        kept = None
        dead = _letters(results, function, first, dead_at)
        if dropped or len(dead_at):
            kept = pc.invert(pc.is_in(outcomes, value_set=self._outcomes("drop", "dead_letter")))
            results = results.filter(kept)
        return Decided(results, kept, dead, dead_at, nulled, dropped)

    def _outcomes(self, *actions: Action) -> pa.Array:
        """The outcomes that have one of these actions."""
        chosen = {ERROR: self.error, TIMED_OUT: self.timeout, CANCELLED: self.error}
        return pa.array([outcome for outcome, action in chosen.items() if action in actions], pa.uint8())

    def _positions(self, outcomes: pa.Array, action: Action) -> pa.Array:
        return pc.indices_nonzero(pc.is_in(outcomes, value_set=self._outcomes(action))).cast(pa.int64())


def _letters(results: pa.RecordBatch, function: Function, first: int, positions: pa.Array) -> pa.RecordBatch:
    """The columns failed_... of the results at `positions`."""
    n_rows, names = len(positions), results.schema.names
    if not n_rows:
        return _NO_LETTERS
    chosen = results.take(positions)
    rows = chosen.column("id") if "id" in names else pc.add(positions, first)
    # The text begins with the function and a row, in its batch or by id; both stand beside it here.
    names_row = rf"^({re.escape(function.where)}|{re.escape(function.name)}), row \d+: "
    texts = pc.fill_null(pc.replace_substring_regex(chosen.column("error"), names_row, ""), "no text")
    attempts = chosen.column("attempts") if "attempts" in names else pa.repeat(1, n_rows)
    columns = [
        rows,
        pa.array(OUTCOMES).take(chosen.column("outcome")),
        texts,
        attempts,
        pa.repeat(function.name, n_rows),
        pa.repeat(function.plugin_hash, n_rows),
    ]
    typed = [column.cast(type_) for column, type_ in zip(columns, _LETTER.types, strict=True)]
    return pa.RecordBatch.from_arrays(typed, schema=_LETTER)


class DeadLetters:
    """The file of one function's dead letters, .parquet, .arrow, .feather or .arrows.

    columns: the arguments' names in the file, one per argument; default the function's own. A column that is given for
    two arguments is written once.
    Raises InvalidArgument for a file that cannot be written, or names that cannot stand side by side.
    """

    def __init__(self, path: str | os.PathLike[str], function: Function, columns: Sequence[str] | None = None) -> None:
        path = Path(path)
        if ending(path) == ".csv":
            typed = ", ".join(suffix for suffix in ENDINGS if suffix != ".csv")
            raise InvalidArgument(f"{path}: dead letters keep their types, so the file must end in one of {typed}")
        names = list(function.arguments.names if columns is None else columns)
        arguments: dict[str, pa.DataType] = {}
        self._positions: list[int] = []  # of the arguments that are written
        for position, (name, type_) in enumerate(zip(names, function.arguments.types, strict=True)):
            if name in _LETTER.names:
                raise InvalidArgument(
                    f"{path}: dead letters have a column {name!r} of their own: rename the argument's"
                )
            if name not in arguments:
                arguments[name] = type_
                self._positions.append(position)
            elif arguments[name] != type_:
                raise InvalidArgument(
                    f"{path}: column {name!r} is an argument as {arguments[name]} and as {type_}, and there is room "
                    "for one in dead letters: give the function two columns"
                )
        self._schema = pa.schema([*arguments.items(), *_LETTER])
        self._writer = Writer(path, self._schema)

    def write(self, dead: pa.RecordBatch, arguments: Sequence[pa.Array]) -> None:
        """Adds dead letters (`Decided.dead`) with their arguments, one array per argument of the function."""
        columns = [arguments[position] for position in self._positions]
        self._writer.write(pa.RecordBatch.from_arrays([*columns, *dead.columns], schema=self._schema))

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, trace)
