"""A pipeline whose source is its own dead letters: what the engine runs to replay them.

    letters ──► those that wait, in the order of their rows ──► the pipeline's operators ──► its sinks

A row is known by its origin, file and number. It waits if there are more letters of it than were replayed: a row that
fails again is a new letter, which waits for the next replay. What was replayed is a position, and so becomes durable
with the rows that came of it, or not at all.

Guarantees: a row that was replayed is replayed again only if its origin is chosen by name. Watermarks stay where they
were: windows that have ended stay closed, and none ends because of a replay. The source's own positions stay, too.
Assumes: all letters fit into memory.
"""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...errors import InvalidArgument
from ..connectors.interface import Json
from ..connectors.options import BATCH_ROWS
from ..connectors.source import Rows
from ..operators.blocks import Block, Columns
from ..operators.event_time import EventClock, StillTime
from ..operators.group_stage import LATE, WINDOW_OF
from ..operators.stages import Dead
from .edits import Edits, Origin, edited
from .inputs import OpenInput
from .plan import Planned

_ALL = "dead letters"
"""The only partition."""
_LOOKS = 3600.0  # seconds between two looks for partitions; none are found
_ROW = re.compile(r"(.+):(\d+)(?:-(\d+))?", re.DOTALL)
_INSTEAD = "make them the source of a pipeline with sinks of its own instead"


@dataclasses.dataclass(frozen=True)
class Choice:
    """Which rows are replayed. rows: by file, numbers from the first to the second; none: all that wait.

    again: those that were replayed before, too. edits: what their columns have instead.
    """

    rows: Sequence[tuple[str, int, int]] = ()
    again: bool = False
    edits: Edits = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, texts: Sequence[str], again: bool) -> Choice:
        """texts: "FILE:NUMBER" or "FILE:FIRST-LAST". Raises InvalidArgument."""
        rows = []
        for text in texts:
            match = _ROW.fullmatch(text)
            if match is None:
                raise InvalidArgument(f"{text!r} is no row: write FILE:NUMBER or FILE:FIRST-LAST, such as a.csv:7")
            rows.append((match[1], int(match[2]), int(match[3] or match[2])))
        if again and not rows:
            raise InvalidArgument("rows that were replayed come twice if they are replayed again: name them with --row")
        return cls(rows, again)

    def has(self, origin: Origin) -> bool:
        file, number = origin
        return not self.rows or any(file == other and first <= number <= last for other, first, last in self.rows)

    def check(self, origins: Iterable[Origin], place: str) -> None:
        """Raises InvalidArgument if a row was chosen of which there is no letter, or one was changed and not chosen."""
        known = set(origins)
        for file, first, last in self.rows:
            if not any(file == other and first <= number <= last for other, number in known):
                what = f"row {first}" if first == last else f"row from {first} to {last}"
                files = sorted({other for other, _ in known})[:3]
                hint = f"; there are some of {', '.join(files)}" if files else ""
                raise InvalidArgument(f"{place}: there is no dead letter of {file}, {what}{hint}")
        for file, number in self.edits:
            if (file, number) not in known or not self.has((file, number)):
                raise InvalidArgument(f"{place}: {file}:{number} has new values, and is no row that is replayed")


@dataclasses.dataclass
class ReplayCounts:
    """letters: in the sink. replayed_before: rows that were left out because they had been replayed. unread: that could
    not be read, and so have lost values. of_windows: results of windows, which come from many rows. late: whose windows
    were over, and still are."""

    letters: int = 0
    replayed_before: int = 0
    unread: int = 0
    of_windows: int = 0
    late: int = 0


class LetterSource:
    """The letters that wait. read: all that the sink has shown. ended: called when all of them have been read."""

    resumable = True
    side_by_side = False
    watch: float | None = _LOOKS
    rows: int | None = None

    def __init__(
        self,
        name: str,
        schema: pa.Schema,
        read: Callable[[], pa.Table],
        choice: Choice,
        ended: Callable[[], None],
        counts: ReplayCounts,
    ) -> None:
        self.name, self.schema = name, schema
        self._read, self._choice, self._ended, self._counts = read, choice, ended, counts

    def partitions(self) -> Sequence[str]:
        return [_ALL]

    def check(self, positions: Mapping[str, Json]) -> None:
        letters = self._read()
        origins = _origins(letters)
        self._choice.check(origins, self.name)
        self._edited(letters, origins)

    def open(self, partition: str, position: Json | None) -> Letters:
        letters = self._read()
        replayed = _Replayed.read(position or {})
        self._counts.letters = len(letters)
        latest: dict[Origin, int] = {}
        there: collections.Counter[Origin] = collections.Counter()
        outcomes = letters.column("failed_outcome").to_pylist()
        for at, origin in enumerate(_origins(letters)):
            if not self._choice.has(origin):
                continue
            if origin[0].startswith(WINDOW_OF):
                self._counts.of_windows += 1
            elif outcomes[at] == "unread":
                self._counts.unread += 1
            elif outcomes[at] == LATE:
                self._counts.late += 1
            else:
                latest[origin] = at
                there[origin] += 1
        waiting = sorted(row for row in there if self._choice.again or there[row] > replayed.times(row))
        self._counts.replayed_before = len(there) - len(waiting)
        rows = letters.take(pa.array([latest[row] for row in waiting], pa.int64())).combine_chunks()
        return Letters(self._edited(rows, waiting), [(row, there[row]) for row in waiting], replayed, self._ended)

    def _edited(self, letters: pa.Table, origins: Sequence[Origin]) -> pa.Table:
        return edited(letters, Columns(self.schema), origins, self._choice.edits)

    def close(self) -> None: ...


class Letters:
    """Those that are replayed, one after the other. origins: of each, and how many letters there are of it."""

    def __init__(
        self,
        rows: pa.Table,
        origins: Sequence[tuple[Origin, int]],
        replayed: _Replayed,
        ended: Callable[[], None],
    ) -> None:
        self._batches = iter(rows.to_batches(BATCH_ROWS))
        self._origins, self._replayed, self._ended = collections.deque(origins), replayed, ended

    async def read(self) -> Rows | None:
        await asyncio.sleep(0)
        batch = next((batch for batch in self._batches if batch.num_rows), None)
        if batch is None:
            self._ended()
            return None
        for _ in range(batch.num_rows):
            self._replayed.add(*self._origins.popleft())
        return Rows(_ALL, 1, batch)

    def position(self) -> Json:
        return self._replayed.position()

    def close(self) -> None: ...


class _Replayed:
    """How many letters of a row had been written when it was replayed last. As JSON: {file: {letters: [numbers]}}."""

    def __init__(self) -> None:
        self._times: dict[Origin, int] = {}

    @classmethod
    def read(cls, position: Json) -> _Replayed:
        replayed = cls()
        for file, times in position.items():
            for n_times, numbers in times.items():
                replayed._times |= {(file, number): int(n_times) for number in numbers}
        return replayed

    def times(self, origin: Origin) -> int:
        return self._times.get(origin, 0)

    def add(self, origin: Origin, times: int) -> None:
        self._times[origin] = times

    def position(self) -> Json:
        positions: dict[str, dict[str, list[int]]] = {}
        for (file, number), times in self._times.items():
            positions.setdefault(file, {}).setdefault(str(times), []).append(number)
        return positions


def _origins(letters: pa.Table) -> list[Origin]:
    return list(zip(*(letters.column(name).to_pylist() for name in ("failed_file", "failed_row")), strict=True))


@dataclasses.dataclass(frozen=True)
class LetterInput(OpenInput):
    """Instead of an input of the pipeline. instead_of: that one."""

    instead_of: OpenInput

    @property
    def idle_seconds(self) -> None:
        return None

    def event_time(self) -> EventClock | None:
        return None if self.declaration.event_time is None else StillTime()

    def admit(self, rows: Rows) -> list[Block | Dead]:
        block = self.columns.block(rows)
        own = [block.rows.column(at) for at in self.columns.own]
        block = block.with_rows(pa.RecordBatch.from_arrays(own, schema=self.instead_of.columns.schema))
        return [block.with_keys(pa.nulls(len(block), pa.binary()))]  # calls have the keys of the row's own origin

    def fingerprint(self, described: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.instead_of.fingerprint(described)


def replaying(planned: Planned, choice: Choice, ended: Callable[[], None]) -> tuple[Planned, ReplayCounts]:
    """The pipeline with its dead letters as source. ended: called when all of them have been read.

    Raises InvalidArgument for a pipeline whose letters do not say all that a replay must know.
    """
    _check(planned)
    model, (like,) = planned.resolved.dead_letters, planned.inputs
    assert model is not None
    name = f"the dead letters of {planned.name}"
    schema, counts = planned.letter_schema, ReplayCounts()

    def read() -> pa.Table:
        return pa.Table.from_batches(model.shown(schema), schema)

    source = LetterSource(name, schema, read, choice, ended, counts)
    replayed = LetterInput(source, Columns(schema), like.declaration, like.secrets, like.failures, like)
    return dataclasses.replace(planned, inputs=[replayed]), counts


def _check(planned: Planned) -> None:
    why = next(_reasons(planned), None)
    if why is not None:
        raise InvalidArgument(f"the dead letters of {planned.name} cannot be replayed: {why}")


def _reasons(planned: Planned) -> Iterator[str]:
    pipeline, routes = planned.resolved, planned.routes
    if pipeline.dead_letters is None:
        yield 'it has none: add [dead_letters], and on_error = "dead_letter" to an operator'
    if not pipeline.has_checkpoints:
        yield (
            "without checkpoints nothing says which of them were replayed: name its checkpoints with --checkpoints. If "
            f"it has none, {_INSTEAD}"
        )
    if pipeline.sources:
        yield "it has several sources, so they do not have the columns of their rows: mend the files, and run it anew"
    for place in (None, *range(len(pipeline.operators))):
        if len(routes.entries(place)) + bool(routes.sinks_after(place)) > 1:
            yield f"its rows go several ways, and a dead letter does not say on which of them it failed: {_INSTEAD}"
    if any(described.is_over_all_rows for described in pipeline.operators):
        yield f"a query over all rows has answered without them: {_INSTEAD}"
    if getattr(pipeline.dead_letters, "key", ()):
        yield "a table with a key has one letter of a row, however often it failed: leave out the key"
    several = False
    for at, operator in enumerate(pipeline.operators):
        if several and "dead_letter" in (getattr(operator, name, None) for name in ("on_error", "on_timeout")):
            yield (
                f"in front of operators[{at}] a row may become several, and a dead letter does not say which of them "
                f"failed: {_INSTEAD}"
            )
        several = several or operator.makes_several
