"""Stories for the engine: a source whose items may be crashes, and a world that keeps what sinks have shown.

    source = StorySource({"a": [[1, 2], CRASH, [3]]})         rows 1 and 2, a crash (once), row 3
    world = World()
    run(Story(source, world), checkpoints=store)              raises Crashed
    run(Story(source, world), checkpoints=store, resume=True)
    assert world.shown() == [1, 2, 3]

A position is the number of the next item, so a source goes on behind the end or crash that it had.
"""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

import pyarrow as pa

from arroyo_udf_plugin.engine.connectors.interface import Json, Sealed, Stage, TransactionalSink
from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.execution.store import AlreadyThere
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns
from arroyo_udf_plugin.engine.operators.calls import Call, CallPlan
from arroyo_udf_plugin.engine.operators.event_time import EventClock
from arroyo_udf_plugin.engine.operators.failures import Failures
from arroyo_udf_plugin.engine.operators.operator import Operator
from arroyo_udf_plugin.engine.operators.routes import Routes
from arroyo_udf_plugin.engine.operators.stages import Dead
from arroyo_udf_plugin.engine.operators.watermarks import DriftBound
from arroyo_udf_plugin.host.function import Function
from arroyo_udf_plugin.host.policy import Policy

SCHEMA = pa.schema([("n", pa.int64())])


class Crashed(Exception):
    """What an item CRASH raises."""


class Marker:
    """EOF: the source ends here, this time. CRASH: it raises, once."""


EOF, CRASH = Marker(), Marker()


class Gate:
    """An item at which a source waits until it is opened."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_open = False
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self.reached = threading.Event()

    def open(self) -> None:
        with self._lock:
            self._is_open = True
            for loop, event in self._waiting:
                loop.call_soon_threadsafe(event.set)

    async def passed(self) -> None:
        waiting = asyncio.get_running_loop(), asyncio.Event()
        with self._lock:
            if not self._is_open:
                self._waiting.add(waiting)
            else:
                waiting[1].set()
        self.reached.set()
        try:
            await waiting[1].wait()
        finally:
            with self._lock:  # who opens it later must not find a loop that is closed
                self._waiting.discard(waiting)


Item = Sequence[int] | Marker | Gate | Callable[[], None] | pa.RecordBatch


class StorySource:
    """Partitions with items: rows, EOF, CRASH, a gate, or a function to call. opened: (partition, position)."""

    name = "story"
    resumable = True
    watch: float | None = None
    rows = None

    def __init__(
        self, items: Mapping[str, Sequence[Item]], schema: pa.Schema = SCHEMA, side_by_side: bool = False
    ) -> None:
        self.items = dict(items)
        self.schema = schema
        self.side_by_side = side_by_side
        self.opened: list[tuple[str, Json | None]] = []
        self.crashed: set[tuple[str, int]] = set()
        self.looked = threading.Event()

    def partitions(self) -> Sequence[str]:
        self.looked.set()
        return sorted(self.items)

    def open(self, partition: str, position: Json | None) -> StoryPartition:
        self.opened.append((partition, position))
        return StoryPartition(self, partition, 0 if position is None else position["next"])

    def check(self, positions: Mapping[str, Json]) -> None: ...

    def close(self) -> None: ...


class StoryPartition:
    def __init__(self, source: StorySource, name: str, at: int) -> None:
        self._source, self._name, self._at = source, name, at

    async def read(self) -> Rows | None:
        items = self._source.items[self._name]
        while self._at < len(items):
            item, at = items[self._at], self._at
            if isinstance(item, Gate):
                await item.passed()
            self._at += 1
            if item is EOF:
                return None
            if item is CRASH:
                if (self._name, at) not in self._source.crashed:
                    self._source.crashed.add((self._name, at))
                    raise Crashed
            elif isinstance(item, pa.RecordBatch):
                return Rows(self._name, 1, item)
            elif isinstance(item, Sequence):
                return Rows(self._name, 1, pa.record_batch([pa.array(item, pa.int64())], schema=SCHEMA))
            elif callable(item):
                item()
        return None

    def position(self) -> Json:
        return {"next": self._at}

    def close(self) -> None: ...


def batches(first: int, stop: int, size: int = 10) -> list[list[int]]:
    return [list(range(n, min(n + size, stop))) for n in range(first, stop, size)]


# ---- Sinks -----------------------------------------------------------------------------------------------------------


class World:
    """What sinks have shown, in order, and what is staged. It outlives engines. seals: how often one was sealed."""

    def __init__(self) -> None:
        self.tables: dict[str, list[pa.RecordBatch]] = {}
        self.staged: dict[str, list[pa.RecordBatch]] = {}
        self.applied: list[str] = []
        self.cleared: list[int] = []
        self.closed = self.seals = 0
        self.on_write: Callable[[pa.RecordBatch], None] = lambda batch: None
        self.on_apply: Callable[[], None] = lambda: None
        self.on_store: Callable[[], None] = lambda: None

    def shown(self, sink: str = "out", column: int | str = 0) -> list[Any]:
        return [value for batch in self.tables.get(sink, []) for value in batch.column(column).to_pylist()]


class WorldSink:
    def __init__(self, world: World, name: str, slice: int, is_staged: bool) -> None:
        self.name = name
        self._world, self._slice, self._is_staged = world, slice, is_staged
        self._rows: list[pa.RecordBatch] = []
        self._fence = 0

    def write(self, batch: pa.RecordBatch) -> None:
        assert batch.num_rows
        self._rows.append(batch)
        self._world.on_write(batch)

    def seal(self, epoch: int) -> Sealed | None:
        self._world.seals += 1
        rows, self._rows = self._rows, []
        return _Sealed(self._world, f"{self.name}/{self._slice}/{epoch}/{self._fence}", rows) if rows else None

    def apply(self, epoch: int, stored: Json) -> None:
        self._world.on_apply()
        key = stored["key"]
        if key not in self._world.applied:
            self._world.tables.setdefault(self.name, []).extend(self._world.staged.pop(key))
            self._world.applied.append(key)

    def check(self, committed: int, epoch: int, waiting: Sequence[Json]) -> None: ...

    def clear(self, committed: int) -> None:
        self._fence = committed
        self._world.cleared.append(committed)
        for key in list(self._world.staged):
            if int(key.rsplit("/", 1)[1]) < committed:
                del self._world.staged[key]

    def finish(self) -> None:
        assert not self._is_staged
        self._world.tables.setdefault(self.name, []).extend(self._rows)

    def close(self) -> None:
        self._world.closed += 1


@dataclass
class _Sealed:
    world: World
    key: str
    rows: list[pa.RecordBatch]

    def store(self) -> Json:
        self.world.on_store()
        self.world.staged[self.key] = self.rows
        return {"key": self.key}


# ---- A pipeline ------------------------------------------------------------------------------------------------------


@dataclass
class Story:
    """A pipeline of the test's own making. functions: an operator for each."""

    source: StorySource
    world: World
    functions: Sequence[tuple[Function, Sequence[str]]] = ()
    parallelism: int = 1
    name: str = "story"
    fingerprint: Mapping[str, Any] = field(default_factory=lambda: {"source": "story"})
    policy: Policy = field(default_factory=Policy)
    options: Mapping[str, Any] = field(default_factory=dict)
    time_column: str | None = None
    idle_seconds: float | None = None
    sink_names: Sequence[str] = ("out",)
    drifts: Sequence[DriftBound] = ()
    plan: CallPlan = field(init=False)
    failures: Failures = field(default_factory=Failures)

    def __post_init__(self) -> None:
        self._columns = Columns(self.source.schema)
        calls = [Call.of(function, columns) for function, columns in self.functions]
        self.plan = CallPlan(calls, self._columns, typed=True)

    def hidden(self, text: str) -> str:
        return text

    @property
    def plugin_hashes(self) -> Mapping[str, str]:
        return {stage.call.name: stage.call.function.plugin_hash for stage in self.plan.stages}

    def operators(self) -> list[Operator]:
        return [Operator(stage.call.name, [stage], self.policy, self.options) for stage in self.plan.stages]

    def event_time(self) -> EventClock | None:
        return None if self.time_column is None else EventClock(self._columns.schema, self.time_column)

    def sinks(self, slice: int, stage: Stage | None) -> list[TransactionalSink]:
        return [WorldSink(self.world, name, slice, stage is not None) for name in self.sink_names]

    def letters(self, slice: int, stage: Stage | None) -> TransactionalSink | None:
        return WorldSink(self.world, "letters", slice, stage is not None) if self.policy.has_dead_letters else None

    @property
    def inputs(self) -> Sequence[Story]:
        return [self]

    def entered(self, block: Block, place: int, input: int) -> Block:
        return block

    def admit(self, rows: Rows) -> Sequence[Block | Dead]:
        return [self._columns.block(rows)]

    @property
    def routes(self) -> Routes:
        return Routes.in_a_row(len(self.functions), len(self.sink_names))

    def left(self, block: Block, place: int | None) -> Block:
        is_last = place == (len(self.functions) - 1 if self.functions else None)
        return Block(self.plan.output(block), block.origin) if is_last else block

    def letter(self, dead: Dead) -> pa.RecordBatch:
        return dead.letters


def once(stop: StopRequest) -> None:
    if not stop.requests:
        stop.request()


# ---- Stores ----------------------------------------------------------------------------------------------------------


class MemoryStore:
    """A store. before: called with verb and name before each access, to fail or to let another engine run."""

    place = "memory"

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.log: list[tuple[str, str]] = []
        self.before: Callable[[str, str], None] = lambda verb, name: None
        self._lock = threading.Lock()

    def _note(self, verb: str, name: str) -> None:
        self.log.append((verb, name))
        self.before(verb, name)

    def put(self, name: str, data: bytes) -> None:
        self._note("put", name)
        self.files[name] = data

    def write(self, name: str, write: Callable[[IO[bytes]], None]) -> None:
        file = io.BytesIO()
        write(file)
        self.put(name, file.getvalue())

    def create(self, name: str, data: bytes) -> None:
        self._note("create", name)
        with self._lock:
            if name in self.files:
                raise AlreadyThere(name)
            self.files[name] = data

    def get(self, name: str) -> bytes:
        self._note("get", name)
        if name not in self.files:
            raise FileNotFoundError(name)
        return self.files[name]

    load = get

    def names(self, prefix: str) -> list[str]:
        self._note("names", prefix)
        return sorted(name for name in self.files if name.startswith(prefix))

    def delete(self, name: str) -> None:
        self._note("delete", name)
        self.files.pop(name, None)

    def wrote(self) -> list[tuple[str, str]]:
        """The accesses that change it, without those that only look."""
        return [(verb, name) for verb, name in self.log if verb in ("put", "create", "delete")]


def epochs_in(names: Iterable[str]) -> list[int]:
    return [int(name[7:-5]) for name in sorted(names) if name.startswith("epochs/0") and name.endswith(".json")]


def epochs_of(store: MemoryStore) -> int:
    return epochs_in(store.files)[-1]
