"""One slice: a copy of the whole chain, over its share of the source, in a thread with an event loop.

    reading ──► operator ──► operator ──► sinks
                a turn moves what can be moved, from the first to the last

Guarantees: nothing polls; a slice wakes for rows, results, room and requests. It reads only while the first operator
wants input, and takes from an operator only while those that follow want input. Between two steps of the event loop no
rows are between two stages: what a partition gives is pushed, and what an operator gives is handed on, before anything
else runs. So a snapshot, which is one such step, is a moment of the whole chain. A step that has failed leaves rows
between two stages; after it there are no snapshots.
Assumes: its methods are called in one other thread, except that `seal` may be called in a third.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from ...errors import InvalidState
from ...host.runtime import Runtime
from ...host.started import Mode
from ...host.to_thread import to_thread
from ..connectors.interface import Gauge, Sealed, Sink, transactional
from ..operators.blocks import Block
from ..operators.operator import Operator
from ..operators.routes import Place, is_source, number_of_source, place_of_source
from ..operators.stages import AsyncStage, Dead, RunningStage
from ..operators.state_parts import StoredState
from ..operators.watermarks import Lowest, Watermark
from .checkpoint_statistics import SliceSpans
from .counters import NodeCounter, SliceNumbers
from .drift import Drift
from .planned import PlannedPipeline
from .reading import SourceReading
from .shares import Shares
from .snapshot import OperatorState, Snapshot, SourceSnapshot

if TYPE_CHECKING:
    from .exchange import Exchanges

Tell = Callable[[int, BaseException | Literal["quiet", "ended"]], None]

_LOST_AFTER = 1.0  # seconds without the last rows, before their plugin is asked for them


class Slice:
    """Slice `place`.

    exchanges: how rows get from one slice to another; None: they do not. drift: of all sources. letters: the sink of
    dead letters, one of `sinks`.
    tell: called in the slice's thread, with its place, and "quiet" as soon as there is nothing more to read and nothing
    under way, the error that ends the slice, "ended" at its end.
    read: called with the number of rows of each batch that was read. moved: called when something begins to move,
    and when it has moved.
    is_moving: rows are between two stages. A sink may keep them there for a while.
    close_errors: texts of Contexts whose `close` has failed, after the end.
    """

    def __init__(
        self,
        place: int,
        planned: PlannedPipeline,
        exchanges: Exchanges | None,
        drift: Drift,
        sinks: Sequence[Sink],
        letters: Sink | None,
        tell: Tell,
        read: Callable[[int], None],
        moved: Callable[[], None],
    ) -> None:
        self.place = place
        self.sinks = sinks
        self.operators = planned.operators()
        self._exchanges = {} if exchanges is None else exchanges.of(place, self.operators)
        self._entries = [self._exchanges.get(at, operator) for at, operator in enumerate(self.operators)]
        self._routes = planned.routes
        self.close_errors: list[str] = []
        self.is_moving = False
        self._planned, self.letters, self._tell, self._read, self._moved = planned, letters, tell, read, moved
        self._drift = drift
        self.outputs = [sink for sink in sinks if sink is not letters]
        self.numbers = SliceNumbers(len(planned.inputs), len(self.operators), len(self.outputs))
        self._readings: dict[Place, SourceReading] = {}  # by the places of their sources
        self._watermarks: Sequence[Sequence[int | None]] = ()  # of each source, in all slices of before
        self._merged = {at: Lowest(1 + len(beside)) for at, beside in self._routes.beside.items()}
        self._ended_inputs: set[tuple[int, int]] = set()  # of operators with several
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"arroyo-udf-slice-{place}")
        self._asked: set[Future[Snapshot]] = set()
        self._lock = threading.Lock()  # guards `_asked` and `_is_running`
        self._is_running = False

        self._wake = asyncio.Event()
        self._waits: dict[tuple[RunningStage | Runtime, str], asyncio.Task[None]] = {}
        self._late: set[AsyncStage] = set()
        self._is_draining = False
        self._is_quiet = False
        self._ending: Mode | None = None
        self._torn: BaseException | None = None

    # ---- Called by the coordinator ----

    def restore(
        self,
        watermarks: Sequence[Sequence[int | None]],
        states: Sequence[Sequence[StoredState]],
        allow_changed_plugin: bool,
    ) -> None:
        """Before `start`; may be called again. watermarks, states: see `Epochs.states`. Raises InvalidArgument."""
        self._watermarks = watermarks
        of_sources = _lowest_of(watermarks)
        bounds: list[float | None] = []  # of the watermarks behind each operator
        for place, (operator, own) in enumerate(zip(self.operators, states, strict=True)):
            before = [bounds[at] if at is not None and at >= 0 else of_sources for at in self._routes.inputs(place)]
            bound = None if None in before else min(time for time in before if time is not None)
            if place in self._exchanges:
                bound = self._exchanges[place].restore(own, allow_changed_plugin)
            else:
                bound = bound if self._exchanges else math.inf
                operator.restore(own, allow_changed_plugin=allow_changed_plugin, watermarks=bound)
            bounds.append(bound)

    def start(self, shares: Sequence[Shares]) -> None:
        """shares: of each source."""
        self._shares = shares
        self._loop = asyncio.new_event_loop()
        self._is_running = True
        self._thread.start()

    def seal(self, epoch: int) -> Future[Snapshot]:
        """Step 1 of an epoch. The stream goes on as soon as it is done."""
        future: Future[Snapshot] = Future()
        spans = SliceSpans()

        def answer() -> None:
            try:
                future.set_result(self._snapshot(epoch, spans))
            except Exception as error:
                self._torn = self._torn or error  # some sinks are sealed, and others not
                future.set_exception(error)
            with self._lock:
                self._asked.discard(future)

        with self._lock:
            if not self._is_running:
                future.set_exception(InvalidState(f"slice {self.place} has ended"))
            else:
                self._asked.add(future)
                self._loop.call_soon_threadsafe(answer)
        return future

    def drain(self) -> None:
        """Reads no more, and tells when nothing is under way. The operators stay as they are, to be resumed."""
        self._post(self._drain)

    def wake(self) -> None:
        """There is something to do. Any thread."""
        self._post(self._wake.set)

    def end(self, mode: Mode) -> None:
        """Stops the operators and ends the thread. "cancel": gives up what is under way."""

        def end() -> None:
            self._ending = mode
            self._wake.set()

        self._post(end)

    def join(self, seconds: float | None) -> bool:
        """Waits for the end of the thread. False: it has not ended, because a function blocks it."""
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _post(self, call: Callable[[], None]) -> None:
        with self._lock:
            if self._is_running:
                self._loop.call_soon_threadsafe(call)

    # ---- The thread ----

    def _run(self) -> None:
        failed: BaseException | None = None
        try:
            self._start_operators()
            self._loop.run_until_complete(self._work())
        except BaseException as error:
            failed = error
            self._tell(self.place, error)  # before anybody else finds the slice ended
        try:
            self._close(failed)
        except Exception as error:
            self._tell(self.place, error)
        self._tell(self.place, "ended")

    def _start_operators(self) -> None:
        watermarks = self._watermarks
        for operator in self.operators:
            operator.start()
        for number, (input, shares) in enumerate(zip(self._planned.inputs, self._shares, strict=True)):
            source, before = place_of_source(number), watermarks[number] if watermarks else ()
            reading = SourceReading(input, source, shares, self.place, self, before, self._drift)
            self._readings[source] = reading
            self.numbers.sources[number].watermark = reading.watermark

    def _close(self, failed: BaseException | None) -> None:
        with self._lock:
            self._is_running = False
            asked, self._asked = self._asked, set()
        for future in asked:
            future.set_exception(failed or InvalidState(f"slice {self.place} has ended"))
        for reading in self._readings.values():
            reading.close()
        for operator in self.operators:
            operator.close()
        self._loop.close()

    async def _work(self) -> None:
        for reading in self._readings.values():
            if self._routes.exchanging:
                reading.hand_on_watermark()  # nobody has kept it
            reading.begin()
        self._drift.begun()
        try:
            while self._ending is None:
                self._wake.clear()
                with self.moving():
                    is_ready = self._turn()
                    self._check_quiet()
                if is_ready:
                    await asyncio.sleep(0)  # readers and requests have their turn
                else:
                    self._await_results()
                    await self._wake.wait()
            if self._ending == "drain":
                await asyncio.gather(*(task for (_, what), task in self._waits.items() if what == "end"))
            for operator in self.operators:
                self.close_errors += operator.stop(self._ending)
        except BaseException as error:
            self._torn = error
            raise
        finally:
            tasks = [*(task for other in self._readings.values() for task in other.tasks), *self._waits.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # ---- What its sources ask ----

    def gauges(self, source: int) -> Sequence[Gauge]:
        """Of the source with this number. Any thread."""
        reading = self._readings.get(place_of_source(source))
        return () if reading is None else reading.gauges()

    @contextlib.contextmanager
    def moving(self) -> Iterator[None]:
        self.is_moving = True
        self._moved()
        try:
            yield
        finally:
            self.is_moving = False
            self._moved()

    def has_read(self, rows: int, dropped: int, dead_letters: int) -> None:
        self.numbers.rows_in += rows
        self.numbers.dropped += dropped
        self.numbers.dead_letters += dead_letters
        self._read(rows)
        self._wake.set()

    def has_failed(self, error: BaseException) -> None:
        self._torn = error

    def _drain(self) -> None:
        self._is_draining = True
        for reading in self._readings.values():
            reading.drain()
        self._wake.set()

    # ---- Moving ----

    def _turn(self) -> bool:
        """Moves what can be moved. Whether more can be moved at once."""
        is_ready = False
        self._check_ends()
        for number, reading in enumerate(self._readings.values()):
            reading.look()
            if reading.gave():
                self.numbers.sources[number].blocked.note(True)
        for place, operator in enumerate(self.operators):
            if place in self._exchanges:
                self._exchanges[place].receive()
            self._take(operator, place)
            self._end_inputs(place)
            if self._is_at_end(place) and not operator.is_finished:
                operator.finish()
            for stage in operator.ending:
                self._end_later(stage)
        for number, (source, reading) in enumerate(self._readings.items()):
            has_room = self.has_room_after(source)
            if has_room:
                reading.make_room()
            self.numbers.sources[number].blocked.note(not has_room and not reading.is_over)
        for place, operator in enumerate(self.operators):
            has_room = self.has_room_after(place)
            if has_room:
                self.numbers.operators[place].blocked.note(False)
            is_ready = is_ready or (operator.is_ready and has_room)
        return is_ready or any(exchange.is_ready for exchange in self._exchanges.values())

    def _take(self, operator: Operator, place: int) -> None:
        """Hands on what an operator has, if those that follow want it."""
        blocked = self.numbers.operators[place].blocked
        if not self.has_room_after(place):
            blocked.note(operator.held_rows > 0)
            return
        blocked.note(False)
        for item in operator.take():
            self.hand_on(item, place)
        blocked.note(operator.is_ready)  # while those behind it have their part of the turn

    def _end_later(self, stage: AsyncStage) -> None:
        """Stops a runtime that has had all rows for a while and still keeps some: if it has lost them, it says so."""
        if stage in self._late:
            return
        self._late.add(stage)

        def end() -> None:
            if stage.held_rows and stage.can_end and self._ending is None and not self._is_draining:
                self._await(stage.runtime, "end", partial(to_thread, stage.begin_end(), "arroyo-udf-end"))
                self._wake.set()

        self._loop.call_later(_LOST_AFTER, end)

    def _check_ends(self) -> None:
        for (_, what), task in self._waits.items():
            if what == "end" and task.done():
                task.result()  # raises what has failed

    def has_room_after(self, place: Place) -> bool:
        return all(self._entries[follower].wants_input for follower in self._routes.after(place))

    def _is_at_end(self, place: int) -> bool:
        """Whether nothing more is pushed to this operator."""
        if self._is_draining:
            return False
        is_own_end = all(map(self._has_ended, self._routes.inputs(place)))
        if not is_own_end or place not in self._exchanges:
            return is_own_end
        self._exchanges[place].end(is_last=True)
        return self._exchanges[place].is_over

    def _has_ended(self, place: Place) -> bool:
        """Whether nothing more comes from an operator, or a source."""
        if place is None or place < 0:
            return self._readings[place].is_over
        return self.operators[place].is_finished

    def _end_inputs(self, place: int) -> None:
        """Those of several that have ended hold no watermark back."""
        if place not in self._merged or self._is_draining:
            return
        for input, before in enumerate(self._routes.inputs(place)):
            if (place, input) not in self._ended_inputs and self._has_ended(before):
                self._ended_inputs.add((place, input))
                self._push_lowest(self._merged[place].end(input), place)

    def _all_read(self) -> bool:
        over = [reading.is_over for reading in self._readings.values()]  # each raises what has failed
        return all(over)

    def hand_on(self, item: Block | Watermark | Dead, place: Place) -> None:
        """What has left an operator, or a source, to those that follow."""
        own = self._counter(place)
        if isinstance(item, Dead):
            assert self.letters is not None, "a policy has dead letters, and there is no sink for them"
            self.letters.write(self._planned.letter(item))
        elif isinstance(item, Watermark):
            if item.time is not None or not is_source(place):
                own.watermark = item.time
            for follower, input in self._routes.entries(place):
                self._push_watermark(item.time, follower, input)
        else:
            self._hand_rows_on(self._planned.left(item, place), place, own)

    def _counter(self, place: Place) -> NodeCounter:
        if place is None or place < 0:
            return self.numbers.sources[number_of_source(place)]
        return self.numbers.operators[place]

    def _push_watermark(self, time: int | None, place: int, input: int) -> None:
        """To one input of an operator. It gets the lowest of them."""
        if place in self._merged:
            self._push_lowest(self._merged[place].after(input, time), place)
        else:
            self._entries[place].push_watermark(time)

    def _push_lowest(self, lowest: Watermark | None, place: int) -> None:
        if lowest is not None:
            self._entries[place].push_watermark(lowest.time)

    def _hand_rows_on(self, block: Block, place: Place, own: NodeCounter) -> None:
        rows, size = len(block), own.leave(block)
        for follower, input in self._routes.entries(place):
            self.numbers.operators[follower].come(rows, size)
            entered = self._planned.entered(block, follower, input) if follower in self._merged else block
            self._entries[follower].push(entered)
        sinks = self._routes.sinks_after(place)
        if not sinks:
            return
        self.numbers.rows_out += rows
        own.blocked.note(True)
        for sink in sinks:
            self.numbers.sinks[sink].come(rows, size)
            self.outputs[sink].write(block.rows)
        own.blocked.note(False)

    def _check_quiet(self) -> None:
        if self._is_quiet or not self._all_read():
            return
        if self._is_draining:
            self._is_quiet = self._has_drained()
        else:
            self._is_quiet = all(operator.is_finished for operator in self.operators)
        if self._is_quiet:
            self._tell(self.place, "quiet")

    def _has_drained(self) -> bool:
        """Whether nothing is under way, nor comes from other slices. Tells these as soon as nothing more goes there."""
        drained: list[bool] = []  # whether nothing more comes from each operator
        for place, operator in enumerate(self.operators):
            is_over = all(drained[at] for at in self._routes.inputs(place) if at is not None and at >= 0)
            if is_over and place in self._exchanges:
                self._exchanges[place].end(is_last=False)
                is_over = self._exchanges[place].is_over
            drained.append(is_over and operator.is_drained)
        return all(drained)

    # ---- Waiting ----

    def _await_results(self) -> None:
        """Wakes for results that can be handed on, and for room in runtimes that have refused rows."""
        for place, operator in enumerate(self.operators):
            if operator.held_rows and self.has_room_after(place):
                for stage in operator.waiting:
                    self._await(stage, "results", stage.wait_results)
                for runtime in operator.wanting_room:
                    self._await(runtime, "room", runtime.wait_room_async)

    def _await(self, waited: RunningStage | Runtime, what: str, wait: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = self._waits.get((waited, what))
        if task is not None and not task.done():
            return
        if task is not None:
            task.result()  # raises what has failed
        task = self._loop.create_task(wait())
        task.add_done_callback(lambda _: self._wake.set())
        self._waits[waited, what] = task

    # ---- A moment ----

    def _snapshot(self, epoch: int, spans: SliceSpans) -> Snapshot:
        if self._torn is not None:
            raise self._torn
        if self._ending is not None:
            raise InvalidState(f"slice {self.place} is ending")
        states: list[tuple[str, OperatorState | None]] = []
        for place, (operator, entry) in enumerate(zip(self.operators, self._entries, strict=True)):
            with spans.sync(("operator", place)):
                states.append((operator.name, entry.snapshot()))
        if self._exchanges:
            self._wake.set()  # what has come behind others' seals can be taken now
        sealed: dict[str, Sealed] = {}
        for sink in transactional(self.sinks):
            with spans.sync(("sink", sink.name)):
                if (rows := sink.seal(epoch)) is not None:
                    sealed[sink.name] = rows
        self.numbers.held_at_epoch = sum(operator.held_rows for operator in self.operators)
        sources: list[SourceSnapshot] = []
        for number, reading in enumerate(self._readings.values()):
            with spans.sync(("source", number)):
                sources.append(SourceSnapshot(reading.positions(), reading.watermark))
        first, *others = sources
        return Snapshot(first.positions, first.watermark, states, sealed, others, spans)


def _lowest_of(watermarks: Sequence[Sequence[int | None]]) -> float | None:
    """The lowest of all slices and sources, from which they go on; None: not all have one. One slice goes on with all
    that it has read itself."""
    if all(len(of_source) == 1 for of_source in watermarks):
        return math.inf
    known = [time for of_source in watermarks for time in of_source if time is not None]
    return min(known) if len(known) == sum(map(len, watermarks)) else None
