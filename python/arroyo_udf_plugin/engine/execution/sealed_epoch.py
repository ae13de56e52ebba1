"""An epoch behind step 1 of checkpoints.py: what its slices have given, on its way into the store.

sealed = SealedEpoch(before, epoch, snapshots, files, steps)
sealed.stage()                                     step 2; can be repeated
sealed.whole                                       with what was staged: the epoch that is committed
sealed.keep() or sealed.discard()                  it was, or nobody will
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from ...errors import ArroyoUdfError
from ..connectors.interface import Discardable, Json, Sealed
from .checkpoint_statistics import CheckpointStatistics, CheckpointSteps
from .epoch_files import EpochFiles
from .manifest import Manifest, SliceState, StateFile, StoredRows
from .snapshot import Snapshot
from .staged_state import StagedState


class SealedEpoch:
    """before: the epoch before. epoch: this one, without states and rows. committed: with them; None: it is not."""

    def __init__(
        self,
        before: Manifest,
        epoch: Manifest,
        snapshots: Sequence[Snapshot],
        files: EpochFiles,
        steps: CheckpointSteps,
    ) -> None:
        self.before, self.snapshots, self.steps = before, snapshots, steps
        self.committed: Manifest | None = None
        self._epoch, self._files = epoch, files
        self._rows: list[dict[str, Json]] = [{} for _ in snapshots]  # what sinks have made durable, by name
        self._lists: Sequence[tuple[StateFile, bytes]] = ()
        number, parts = epoch.epoch, before.parts_files
        self._states = [
            [
                None
                if state is None
                else StagedState(
                    operator, state, parts, files.state_name(number, place, at), files.parts_name(number, place, at)
                )
                for at, (operator, state) in enumerate(snapshot.operators)
            ]
            for place, snapshot in enumerate(snapshots)
        ]

    @property
    def whole(self) -> Manifest:
        """The epoch, with what was staged so far."""
        slices = [
            SliceState(
                watermark=snapshot.watermark,
                operators=tuple(None if state is None else state.file for state in states),
                others=tuple(other.watermark for other in snapshot.others),
            )
            for snapshot, states in zip(self.snapshots, self._states, strict=True)
        ]
        rows = StoredRows(epoch=self._epoch.epoch, slices=tuple(map(dict, self._rows)))
        return self._epoch.model_copy(update={"slices": tuple(slices), "rows": rows})

    @property
    def is_unchanged(self) -> bool:
        """Whether it says nothing that the epoch before does not say."""
        has_new = any(snapshot.sealed for snapshot in self.snapshots) or any(state.has_new for state in self._each())
        return not has_new and _content(self.before) == _content(self.whole)

    def add_lists(self, epoch: Manifest, lists: Sequence[tuple[StateFile, bytes]]) -> None:
        """epoch: with lists of partitions that have been read. lists: those that are not stored yet."""
        self._epoch, self._lists = epoch, lists

    def stage(self) -> None:
        """Makes rows and states durable, all at once. Raises the first error."""
        jobs: list[Callable[[], None]] = []
        for rows, states, snapshot in zip(self._rows, self._states, self.snapshots, strict=True):
            for name, own in snapshot.sealed.items():
                if name not in rows:
                    jobs.append(snapshot.spans.timed(("sink", name), "Async", _storing(rows, name, own)))
            for place, state in enumerate(states):
                if state is not None:
                    jobs.append(snapshot.spans.timed(("operator", place), "Async", self._storing(state)))
        jobs += [partial(self._files.store.put, file.name, data) for file, data in self._lists]
        _side_by_side(jobs)

    def _storing(self, state: StagedState) -> Callable[[], None]:
        return lambda: state.store(self._files.store)

    def _each(self) -> Iterator[StagedState]:
        return (state for states in self._states for state in states if state is not None)

    def keep(self) -> None:
        """It is committed: the next epoch need not write its parts again."""
        for state in self._each():
            state.committed()

    def discard(self) -> None:
        """Removes what was staged. Whatever fails, the next start does."""
        for rows in (rows for snapshot in self.snapshots for rows in snapshot.sealed.values()):
            if isinstance(rows, Discardable):
                with contextlib.suppress(ArroyoUdfError, OSError):
                    rows.discard()
        own = [name for state in self._each() for name in state.own_names]
        for name in (*own, *(file.name for file, _ in self._lists)):
            self._files.remove(name)

    def statistics(self) -> CheckpointStatistics:
        """After all steps."""
        return self.steps.statistics(
            self._epoch.epoch,
            [
                (
                    snapshot.spans,
                    [0 if state is None else state.file.whole_size for state in states],
                    [0 if state is None else state.written for state in states],
                )
                for snapshot, states in zip(self.snapshots, self._states, strict=True)
            ],
        )


def _storing(stored: dict[str, Json], name: str, sealed: Sealed) -> Callable[[], None]:
    def store() -> None:
        stored[name] = sealed.store()

    return store


def _content(epoch: Manifest) -> tuple[Any, ...]:
    states = [(slice_.watermarks, list(map(_sums, slice_.operators))) for slice_ in epoch.slices]
    return states, epoch.positions, epoch.others, epoch.replayed


def _sums(state: StateFile | None) -> list[str] | None:
    return None if state is None else [file.sha256 for file in state.files]


def _side_by_side(jobs: Sequence[Callable[[], None]]) -> None:
    """Does all jobs at once. Raises the first error. (Threads of an executor would keep a process from ending.)"""
    errors: list[BaseException] = []

    def do(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=do, args=(job,), daemon=True, name="arroyo-udf-store") for job in jobs[1:]]
    for thread in threads:
        thread.start()
    for job in jobs[:1]:
        do(job)
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
