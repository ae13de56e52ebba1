"""The start of an engine: its slices, and their sinks, brought to the latest epoch.

    opening = Opening(planned, epochs, beside)
    opening.open()                                 opens the sinks
    opening.check(...)                             whoever refuses to go on does so now; nothing is changed
    opening.begin(...)                             check ──► fence ──► apply ──► clear ──► withdraw

Guarantees: what refuses to go on does so before anything is changed, so that it can be mended and tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ...errors import InvalidArgument, WrongCheckpoints
from ..connectors.interface import Sink, transactional
from .drift import Drift
from .planned import PlannedPipeline
from .retention import USUAL, Retention
from .slice import Slice, Tell
from .store import Store

if TYPE_CHECKING:
    from .checkpoints import Epochs
    from .exchange import Exchanges
    from .manifest import Manifest


def epochs_of(
    planned: PlannedPipeline,
    place: Store,
    *,
    resume: bool | None = None,
    at_least: int = 0,
    retention: Retention = USUAL,
    restore: int | str | None = None,
    allow_changed_plugin: bool = False,
    replays: bool = False,
) -> Epochs:
    """The checkpoints of a pipeline: see `Epochs`. Raises InvalidArgument if it cannot have some, or others."""
    for source in (input.source for input in planned.inputs if not input.source.resumable):
        raise InvalidArgument(
            f"the source {source.name} cannot be read again, so it has no checkpoints: leave out "
            "--checkpoints and --resume, or read a file"
        )
    from .checkpoints import Epochs  # here, because a run without checkpoints needs no pydantic
    from .manifest import PipelineIdentity

    return Epochs(
        place,
        PipelineIdentity.of(planned.name, planned.fingerprint, planned.plugin_hashes),
        resume=resume,
        allow_changed_plugin=allow_changed_plugin,
        at_least=at_least,
        retention=retention,
        restore=restore,
        replays=replays,
    )


def _exchanges(planned: PlannedPipeline, wakes: Sequence[Callable[[], None]]) -> Exchanges | None:
    if not planned.routes.exchanging:
        return None
    from .exchange import Exchanges  # here, because a run without windows needs none of what makes them

    may_idle = any(input.idle_seconds is not None for input in planned.inputs)
    return Exchanges(planned.routes, wakes, may_idle)


def _nothing(*_: object) -> None: ...


@dataclass(frozen=True)
class Beside:
    """Whom slices tell what they do: see `Slice`."""

    tell: Tell = _nothing
    read: Callable[[int], None] = _nothing
    moved: Callable[[], None] = _nothing


class Opening:
    """epochs: None: without checkpoints."""

    def __init__(self, planned: PlannedPipeline, epochs: Epochs | None, beside: Beside = Beside()) -> None:
        self.slices: list[Slice] = []
        self._planned, self._epochs, self._beside = planned, epochs, beside

    def open(self) -> None:
        """Raises InvalidArgument for a sink that cannot have checkpoints."""
        planned, beside = self._planned, self._beside
        stage = None if self._epochs is None else self._epochs.rows
        wakes = [partial(self._wake, place) for place in range(planned.parallelism)]
        exchanges = _exchanges(planned, wakes)
        drift = Drift(planned.drifts, planned.parallelism)
        for place in range(planned.parallelism):
            sinks, letters = planned.sinks(place, stage), planned.letters(place, stage)
            every = sinks if letters is None else [letters, *sinks]  # no output without its dead letters
            if self._epochs is not None:
                list(transactional(every))
            slice_ = Slice(place, planned, exchanges, drift, every, letters, beside.tell, beside.read, beside.moved)
            self.slices.append(slice_)

    def _wake(self, place: int) -> None:
        self.slices[place].wake()

    @property
    def sinks(self) -> Sequence[Sink]:
        """Of the first slice."""
        return self.slices[0].sinks

    def check(self, epochs: Epochs, allow_changed_plugin: bool) -> None:
        """Asks sinks, sources and operators whether they can go on."""
        waiting = epochs.waiting
        has_new_letters = epochs.latest is not None and epochs.latest.fingerprint.get("dead letters") is None
        for sink in transactional(self.sinks):
            stored = [by_sink[sink.name] for by_sink in waiting.slices if sink.name in by_sink]
            is_new = has_new_letters and sink is self.slices[0].letters  # whatever is there is of another run
            sink.check(1 if is_new else epochs.next, waiting.epoch, stored)
        if epochs.latest is not None:
            for number, input in enumerate(self._planned.inputs):
                input.source.check(epochs.positions_of(number))
        self._restore(epochs, allow_changed_plugin)

    def begin(self, epochs: Epochs, allow_changed_plugin: bool, ask: Callable[[], None] = lambda: None) -> Manifest:
        """From then on no older engine commits. ask: refuses, too, what does not fit. Returns the fence."""

        def check() -> None:
            self.check(epochs, allow_changed_plugin)
            ask()

        epochs.ask(check)
        number = epochs.next
        fence = epochs.fence()
        if fence.epoch != number:  # an older engine has gone on meanwhile
            self._restore(epochs, allow_changed_plugin)
        epochs.settle(self.slices)
        return fence

    def _restore(self, epochs: Epochs, allow_changed_plugin: bool) -> None:
        if epochs.latest is None or not epochs.latest.slices:
            return
        width, shared = len(self.slices), self._planned.routes.exchanging
        for place, slice_ in enumerate(self.slices):
            states = epochs.states(place, width, shared)
            try:
                slice_.restore(*states, allow_changed_plugin)
            except InvalidArgument as error:  # they were read, and do not fit
                raise WrongCheckpoints(str(error)) from error
