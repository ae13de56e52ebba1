"""To go back to an older checkpoint.

    planned_restore(planned, store, 12)                     what becomes of the rows of later ones; changes nothing
    restore(planned, store, 12, doubles=["table"])          does it; then run as ever

Guarantees: it is done when one file has been created, and until then nothing has happened. What sinks have to do then,
the next start does if this process is killed. Later checkpoints are given up. Sinks that can neither take rows back nor
overwrite them refuse, unless their names are among `doubles`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import WrongCheckpoints
from ..connectors.interface import LaterRows, Rewindable, Sink
from .opening import Opening, epochs_of
from .planned import PlannedPipeline
from .retention import USUAL, Retention
from .store import Store

if TYPE_CHECKING:
    from .checkpoints import Epochs
    from .epoch_files import RestorableEpoch

_FATES = {
    "none": "{what}: nothing is doubled",
    "withdrawn": "{what}",
    "overwritten": "{what} when they come again",
    "doubled": "{what}, and come again",
}


@dataclass(frozen=True)
class Restoring:
    """epoch: to go back to. sinks: what becomes of their rows."""

    epoch: int
    sinks: tuple[LaterRows, ...]

    @property
    def doubled(self) -> list[LaterRows]:
        return [sink for sink in self.sinks if sink.fate == "doubled"]

    def lines(self) -> Iterator[str]:
        """For people."""
        yield f"back to checkpoint {self.epoch}; what came after it is given up"
        for sink in self.sinks:
            yield f"{sink.sink}: {_FATES[sink.fate].format(what=sink.what)}"


@dataclass(frozen=True)
class Restored:
    """epoch: that was gone back to. fence: the newest one now, from which the next engine goes on."""

    epoch: int
    fence: int
    sinks: tuple[LaterRows, ...]


def checkpoints_in(store: Store) -> list[RestorableEpoch]:
    """Those that are retained in a place, the oldest first, and what is wrong with them. Reads all of them."""
    from .epoch_files import EpochFiles

    return list(EpochFiles(store).checkpoints())


def planned_restore(
    planned: PlannedPipeline, store: Store, epoch: int | str, *, allow_changed_plugin: bool = False
) -> Restoring:
    """What `restore` would do. Raises InvalidArgument if the pipeline cannot go on from that checkpoint."""
    with _opened(planned, store, epoch, allow_changed_plugin) as (opening, epochs):
        results: list[Restoring] = []

        def look() -> None:
            opening.check(epochs, allow_changed_plugin)
            results[:] = [_restoring(epochs, opening.sinks)]

        epochs.ask(look)
        return results[0]


def restore(
    planned: PlannedPipeline,
    store: Store,
    epoch: int | str,
    *,
    doubles: Collection[str] = (),
    allow_changed_plugin: bool = False,
    at_least: int = 0,
    retention: Retention = USUAL,
    tell: Callable[[Restoring], None] = lambda restoring: None,
) -> Restored:
    """Goes back to a checkpoint, or to a savepoint by its name; the next run goes on from there. doubles: names of
    sinks that may have rows twice. at_least, retention: see `Epochs`.

    tell: called before anything is changed.
    Raises WrongCheckpoints for a sink that would have rows twice, and as `planned_restore` does. Then nothing
    is changed.
    """
    with _opened(planned, store, epoch, allow_changed_plugin, at_least, retention) as (opening, epochs):
        results: list[Restoring] = []

        def ask() -> None:
            restoring = _restoring(epochs, opening.sinks)
            _refuse_doubles(restoring, doubles)
            if [restoring] != results:
                tell(restoring)
            results[:] = [restoring]

        fence = opening.begin(epochs, allow_changed_plugin, ask)
        return Restored(results[0].epoch, fence.epoch, results[0].sinks)


@contextlib.contextmanager
def _opened(
    planned: PlannedPipeline,
    store: Store,
    epoch: int | str,
    allow_changed_plugin: bool,
    at_least: int = 0,
    retention: Retention = USUAL,
) -> Iterator[tuple[Opening, Epochs]]:
    epochs = epochs_of(
        planned,
        store,
        resume=True,
        at_least=at_least,
        retention=retention,
        restore=epoch,
        allow_changed_plugin=allow_changed_plugin,
    )
    opening = Opening(planned, epochs)
    try:
        opening.open()
        yield opening, epochs
    finally:
        for slice_ in opening.slices:
            for sink in slice_.sinks:
                sink.close()


def _restoring(epochs: Epochs, sinks: Sequence[Sink]) -> Restoring:
    epoch = epochs.gone_back_to
    return Restoring(epoch, tuple(_later_rows(epochs, sink, epoch) for sink in sinks))


def _later_rows(epochs: Epochs, sink: Sink, epoch: int) -> LaterRows:
    later = {
        number: None if rows is None else [own[sink.name] for own in rows if sink.name in own]
        for number, rows in epochs.later.items()
    }
    if isinstance(sink, Rewindable):
        return sink.later_rows(epoch, later)
    if all(rows == [] for rows in later.values()):
        return LaterRows(sink.name, "none", "has no later rows")
    return LaterRows(sink.name, "doubled", "later rows stay")


def _refuse_doubles(restoring: Restoring, accepted: Collection[str]) -> None:
    unknown = [name for name in accepted if name not in {sink.sink for sink in restoring.sinks}]
    if unknown:
        there = ", ".join(sink.sink for sink in restoring.sinks)
        raise WrongCheckpoints(f"there is no sink {unknown[0]} whose rows could come twice: the sinks are {there}")
    doubled = [sink for sink in restoring.doubled if sink.sink not in accepted]
    if doubled:
        reasons = "; ".join(f"{sink.sink}: {sink.what}, and come again" for sink in doubled)
        options = " ".join(f"--accept-doubles {sink.sink}" for sink in doubled)
        raise WrongCheckpoints(
            f"going back to checkpoint {restoring.epoch} would double rows: {reasons}. Nothing was changed. To go back "
            f"all the same: {options}"
        )
