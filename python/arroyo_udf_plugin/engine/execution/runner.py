"""The coordinator: starts the slices, takes checkpoints, stops, and tells.

    opening.py ──► slices start ──► epochs ... ──► last epoch ──► slices end

It waits in the caller's thread; slices work in theirs, and an epoch in another one. What these have to say comes
through one queue. In the main thread it waits for a second at most, so that signals come through: one that comes just
before a wait, or to another thread, does not end the wait, and until it has ended Python calls no handler.

Guarantees: the first error stops everything, and is raised with a note of what remains at risk. A stop has one deadline
for all its steps. Without checkpoints the sinks are finished only when all slices are at their end, dead letters first.
Assumes: a thread that a function blocks can be left behind, because the process ends soon.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ...errors import Fenced, InvalidArgument
from ..connectors.interface import Announcing, Holding
from ..operators.failures import together
from .checkpoint_statistics import CheckpointStatistics
from .opening import Beside, Opening, epochs_of
from .planned import PlannedPipeline
from .progress import CheckpointProgress, Ended, PipelineSummary, Progress, of_operators, of_sinks, of_sources
from .retention import USUAL, Retention
from .shares import Shares
from .stopping import Deadline, StopRequest
from .store import Store
from .ticker import Ticker

if TYPE_CHECKING:
    from .checkpoints import Epochs

_log = logging.getLogger(__name__)

_GIVE_UP = 10.0  # seconds for functions to end after an error
_CUT_OFF = 0.5  # and after a stop, or Ctrl-C
_PAUSES = (0.5, 2.0, 8.0)  # seconds before a checkpoint that has failed is tried again
_LOOK = 1.0  # seconds between two looks for signals
_FOR_DRAINING = 0.75  # of the time for a stop; the rest is for the last checkpoint


@dataclass(frozen=True)
class Interval:
    """When to take a checkpoint: so many seconds, or rows of the source, after the one before; None: not by it.

    pauses: seconds before one that has failed is tried again, at most so often; None: as long as usual."""

    seconds: float | None = 10.0
    rows: int | None = None
    pauses: Sequence[float] | None = None

    def __post_init__(self) -> None:
        for name in ("seconds", "rows"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidArgument(f"checkpoints every {value} {name}: write a number above 0")


def run(
    planned: PlannedPipeline,
    *,
    checkpoints: Store | None = None,
    interval: Interval = Interval(),
    resume: bool | None = None,
    at_least: int = 0,
    retention: Retention = USUAL,
    allow_changed_plugin: bool = False,
    replays: bool = False,
    stop: StopRequest | None = None,
    progress: Callable[[Progress], None] = lambda progress: None,
    progress_every: float | None = None,
    only_moves: bool = False,
) -> PipelineSummary:
    """Runs a pipeline to its end, or until it is stopped.

    checkpoints: where they are kept; None: without. resume: whether there must be some to go on from; None: it goes on
    if there are some, and else begins. at_least: an epoch that there was, so that it goes on from it or a later one.
    retention: which are kept. replays: see `Epochs`.
    progress: called at the start, after each checkpoint, every so many seconds, and at the end. only_moves: not while
    nothing moves, unless a source has gauges.
    Raises InvalidArgument for what does not fit, Fenced, RowError for a row whose policy is "fail", and what sources,
    functions and sinks raise. The source stays open.
    """
    if resume is not None and checkpoints is None:
        option = "--resume" if resume else "--fresh"
        raise InvalidArgument(f"{option} needs the place of the checkpoints: name it with --checkpoints")
    epochs = None
    if checkpoints is not None:
        epochs = epochs_of(
            planned,
            checkpoints,
            resume=resume,
            at_least=at_least,
            retention=retention,
            allow_changed_plugin=allow_changed_plugin,
            replays=replays,
        )
    coordinator = _Coordinator(planned, epochs, interval, stop or StopRequest(), progress, progress_every, only_moves)
    try:
        coordinator.open(allow_changed_plugin)
        coordinator.start()
        return coordinator.end(coordinator.steer())
    except BaseException as error:
        coordinator.give_up(error)
        raise
    finally:
        coordinator.close()


@dataclass(frozen=True)
class _SliceMessage:
    """By a slice: see `Slice`."""

    place: int
    what: BaseException | Literal["quiet", "ended"]


@dataclass(frozen=True)
class _EpochTaken:
    """By the thread of an epoch. statistics: None: nothing had changed."""

    statistics: CheckpointStatistics | None
    error: BaseException | None


_Message = _SliceMessage | _EpochTaken | Literal["stop", "rows", "moved"]


class _Coordinator:
    def __init__(
        self,
        planned: PlannedPipeline,
        epochs: Epochs | None,
        interval: Interval,
        stop: StopRequest,
        progress: Callable[[Progress], None],
        progress_every: float | None,
        only_moves: bool,
    ) -> None:
        self._planned, self._epochs, self._stop = planned, epochs, stop
        self._progress, self._only_moves = progress, only_moves
        self._messages: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._rows = _RowCount(interval.rows, lambda: self._messages.put("rows"))
        self._opening = Opening(planned, epochs, Beside(self._hear, self._rows.add, self._moved))
        self._slices = self._opening.slices
        self._begun = self._taken_at = time.monotonic()  # _taken_at: when the latest epoch began
        self._epoch_times = Ticker(None if epochs is None else interval.seconds, self._tell_move)
        self._report_times = Ticker(progress_every, self._tell_move)

        self._quiet: set[int] = set()
        self._taking: threading.Thread | None = None
        self._is_due = False  # by rows
        self._is_last = False  # the epoch that has begun is the last one
        self._pauses = _PAUSES if interval.pauses is None else interval.pauses
        self._failures = 0  # epochs that have failed, one after the other
        self._again: Deadline | None = None  # when the next one is tried
        self._checkpoint: CheckpointProgress | None = None
        self._stopping: Deadline | None = None
        self._draining: Deadline | None = None

    # ---- The start ----

    def open(self, allow_changed_plugin: bool) -> None:
        """Opens the sinks, and brings them to the latest epoch. From then on no older engine commits."""
        self._opening.open()
        if self._epochs is not None:
            fence = self._opening.begin(self._epochs, allow_changed_plugin)
            self._checkpoint = CheckpointProgress(fence.epoch, retained=self._epochs.retained)

    def start(self) -> None:
        width = len(self._slices)
        shares = [
            Shares(input.source, width, {} if self._epochs is None else self._epochs.positions_of(number))
            for number, input in enumerate(self._planned.inputs)
        ]
        for slice_ in self._slices:
            slice_.start(shares)
        self._stop.connect(lambda: self._messages.put("stop"))
        self._look_at_held()
        self._report()

    def _hear(self, place: int, what: BaseException | Literal["quiet", "ended"]) -> None:
        self._messages.put(_SliceMessage(place, what))

    def _moved(self) -> None:
        """A slice has moved something; in its thread."""
        self._epoch_times.moved()
        self._report_times.moved()

    def _tell_move(self) -> None:
        self._messages.put("moved")

    # ---- The stream ----

    def steer(self) -> Ended:
        """Takes checkpoints until all is done. Raises what a slice or an epoch raises."""
        while True:
            self._listen()
            if self._stopping is not None and not self._stopping.left:
                return "cut off"
            if self._stop.requests > 1 or (self._stop.requests and self._epochs is None):
                return "cut off"
            if self._taking is not None or (self._again is not None and self._again.left):
                continue
            if self._is_done():
                if self._epochs is None or self._is_last:
                    return "finished" if self._stopping is None else "resumable"
                self._is_last = True
                if self._stopping is None:  # else a later run goes on
                    for sink in self._holding():
                        sink.show_all()
                self._take()
            elif self._epoch_times.left == 0 or self._is_due or self._again is not None:
                self._take()

    def _holding(self) -> list[Holding]:
        return [sink for slice_ in self._slices for sink in slice_.sinks if isinstance(sink, Holding)]

    def _look_at_held(self) -> None:
        """A sink may show rows in a later epoch, although nothing moves until then."""
        if any(sink.holds for sink in self._holding()):
            self._epoch_times.moved()

    def _is_done(self) -> bool:
        """Whether all slices are quiet, or have had their time for it."""
        is_late = self._draining is not None and not self._draining.left
        return is_late or len(self._quiet) == len(self._slices)

    def _listen(self) -> None:
        """Waits for the next message, or the next time to do something."""
        message = self._next_message(self._seconds_to_wait())
        if isinstance(message, _SliceMessage):
            if isinstance(message.what, BaseException):
                raise message.what
            self._quiet.add(message.place)
        elif isinstance(message, _EpochTaken):
            self._note(message)
        elif message == "rows":
            self._is_due = self._epochs is not None
        elif message == "stop" and self._epochs is not None and self._stopping is None and not self._is_done():
            self._stopping = Deadline(self._stop.timeout)
            self._draining = Deadline(self._stop.timeout * _FOR_DRAINING)
            for slice_ in self._slices:
                slice_.drain()
        if self._report_times.left == 0:
            self._report()

    def _next_message(self, seconds: float) -> _Message | None:
        """None: none has come in so many seconds. It may be back earlier."""
        if threading.current_thread() is threading.main_thread():
            seconds = min(seconds, _LOOK)
        try:
            return self._messages.get(timeout=None if seconds == math.inf else seconds)
        except queue.Empty:
            return None

    def _seconds_to_wait(self) -> float:
        waits = [self._report_times.left]
        if self._again is not None:
            waits.append(self._again.left)
        elif self._taking is None:
            waits.append(self._epoch_times.left)
        if self._stopping is not None:
            waits.append(self._stopping.left)
        if self._draining is not None and self._draining.left:
            waits.append(self._draining.left)
        return min(waits)

    def _begin(self, times: Ticker) -> None:
        """Of a tick, before it looks at the slices."""
        times.begin()
        if any(slice_.is_moving or any(operator.held_rows for operator in slice_.operators) for slice_ in self._slices):
            times.moved()  # rows are on their way; time passes for them without a further move

    def _take(self) -> None:
        """Begins an epoch, in a thread of its own."""
        epochs = self._epochs
        assert epochs is not None
        self._taken_at, self._is_due, self._again = time.monotonic(), False, None
        self._begin(self._epoch_times)
        self._rows.begin()

        def take() -> None:
            try:
                taken = epochs.take(self._slices)
                self._announce(epochs)
            except BaseException as error:
                self._messages.put(_EpochTaken(None, error))
            else:
                self._messages.put(_EpochTaken(None if taken is None else epochs.statistics, None))

        self._taking = threading.Thread(target=take, daemon=True, name="arroyo-udf-epoch")
        self._taking.start()

    def _announce(self, epochs: Epochs) -> None:
        for number, input in enumerate(self._planned.inputs):
            if epochs.latest is not None and isinstance(input.source, Announcing):
                input.source.announce(epochs.latest.positions_of(number))

    def _note(self, message: _EpochTaken) -> None:
        self._taking = None
        if message.error is not None:
            self._note_failure(message.error)
            return
        self._failures = 0
        self._look_at_held()
        statistics = message.statistics
        if statistics is not None and self._checkpoint is not None:
            epochs, seconds = self._checkpoint.epochs + 1, statistics.end - statistics.start
            retained = () if self._epochs is None else self._epochs.retained
            self._checkpoint = CheckpointProgress(
                statistics.epoch, epochs, seconds, statistics.end, statistics, retained
            )
            self._report()

    def _note_failure(self, error: BaseException) -> None:
        """A place that fails for a moment ends no run: the same epoch is tried again. Raises the last error."""
        assert self._epochs is not None
        is_for_a_moment = isinstance(error, InvalidArgument | OSError) and self._epochs.is_unfinished
        if not is_for_a_moment or self._failures == len(self._pauses):
            raise error
        pause = self._pauses[self._failures]
        text = self._planned.hidden(str(error))
        _log.warning("the checkpoint has failed, and is tried again in %g s: %s", pause, text)
        self._failures += 1
        self._again, self._is_last = Deadline(pause), False

    # ---- The end ----

    def end(self, ended: Ended) -> PipelineSummary:
        """Ends the slices, and without checkpoints the sinks."""
        if ended != "finished":
            self._give_up_slices(_CUT_OFF)
        else:
            self._finish_slices()
            if self._epochs is None:
                for sinks in zip(*(slice_.sinks for slice_ in self._slices), strict=True):
                    for sink in sinks:
                        sink.finish()
        self._report()
        return self._summary(ended)

    def _finish_slices(self) -> None:
        """Closes the functions' Contexts, which may take their time; a stop limits it. Their rows have all left."""
        deadline: Deadline | None = None
        left = len(self._slices)
        for slice_ in self._slices:
            slice_.end("drain")
        while left and self._stop.requests < 2:
            if self._stop.requests and deadline is None:
                deadline = Deadline(self._stop.timeout)
            if deadline is not None and not deadline.left:
                return
            message = self._next_message(math.inf if deadline is None else deadline.left)
            if isinstance(message, _SliceMessage) and isinstance(message.what, BaseException):
                raise message.what
            if isinstance(message, _SliceMessage) and message.what == "ended":
                self._slices[message.place].join(None)  # it does nothing more, but may not be gone yet
                left -= 1

    def give_up(self, error: BaseException) -> None:
        """Ends the slices after an error, and notes what remains at risk."""
        self._give_up_slices(_GIVE_UP if isinstance(error, Exception) else _CUT_OFF)
        if self._epochs is None:
            error.add_note(
                "There are no checkpoints, so nothing can be resumed. Outputs that appear at the end do not appear."
            )
        elif self._epochs.withdraw():
            error.add_note("Nothing was committed: begin again.")
        elif not isinstance(error, Fenced) and self._epochs.latest is not None:
            error.add_note(
                f"Everything up to epoch {self._epochs.latest.epoch} is committed. To go on from there: --resume. Rows "
                "after it are read again."
            )

    def _give_up_slices(self, seconds: float) -> None:
        deadline = Deadline(seconds)
        for slice_ in self._slices:
            slice_.end("cancel")
        for slice_ in self._slices:
            slice_.join(deadline.left)
        if self._taking is not None and self._taking.is_alive():  # a signal may have come before it was started
            self._taking.join(deadline.left)

    def close(self) -> None:
        """Closes the sinks, unless a thread that was left behind uses them."""
        if self._taking is not None and self._taking.is_alive():
            return
        for slice_ in self._slices:
            if slice_.join(0.0):
                for sink in slice_.sinks:
                    sink.close()

    # ---- What it tells ----

    def _report(self) -> None:
        self._begin(self._report_times)
        progress = self._so_far()
        if not self._only_moves or any(source.gauges for source in progress.sources):
            self._report_times.moved()  # gauges rise while nothing moves
        self._progress(progress)

    def _so_far(self) -> Progress:
        numbers = [slice_.numbers for slice_ in self._slices]
        return Progress(
            seconds=time.monotonic() - self._begun,
            rows_in=sum(slice_numbers.rows_in for slice_numbers in numbers),
            rows_out=sum(slice_numbers.rows_out for slice_numbers in numbers),
            dropped=sum(slice_numbers.dropped for slice_numbers in numbers),
            dead_letters=sum(slice_numbers.dead_letters for slice_numbers in numbers),
            failures=together(input.failures.so_far for input in self._planned.inputs),
            total=self._total(),
            sources=tuple(of_sources(self._planned, self._slices)),
            operators=tuple(of_operators(self._planned, self._slices)),
            sinks=tuple(of_sinks(self._planned, self._slices)),
            checkpoint=self._checkpoint,
        )

    def _total(self) -> int | None:
        """The rows of all sources; None: unknown."""
        known = [rows for input in self._planned.inputs if (rows := input.source.rows) is not None]
        return sum(known) if len(known) == len(self._planned.inputs) else None

    def _summary(self, ended: Ended) -> PipelineSummary:
        progress = self._so_far()
        return PipelineSummary(
            pipeline=self._planned.name,
            ended=ended,
            progress=progress,
            rows_per_s=progress.rows_in / progress.seconds,
            in_flight=sum(slice_.numbers.held_at_epoch for slice_ in self._slices),
            close_errors=tuple(text for slice_ in self._slices for text in slice_.close_errors),
        )


class _RowCount:
    """Tells when slices have read so many rows since the last epoch began."""

    def __init__(self, limit: int | None, tell: Callable[[], None]) -> None:
        self._limit, self._tell = limit, tell
        self._lock = threading.Lock()
        self._count = 0

    def add(self, rows: int) -> None:
        if self._limit is None:
            return
        with self._lock:
            before, self._count = self._count, self._count + rows
        if before < self._limit <= before + rows:
            self._tell()

    def begin(self) -> None:
        with self._lock:
            self._count = 0
