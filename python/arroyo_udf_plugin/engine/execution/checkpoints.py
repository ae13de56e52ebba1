"""Epochs: how the work of an engine becomes durable, and who may go on with it.

An epoch is a moment of the whole pipeline. It takes five steps:

 1 sealed     in one turn each slice notes its source's positions and its operators' rows, and ends its sinks' rows of
              this epoch. No rows are between two stages then. The stream goes on at once.
 2 staged     the sealed rows and the operators' states are durable.
 3 committed  `epochs/<number>.json` is created, if it does not exist. From now on the epoch has happened.
 4 applied    the sinks show the staged rows to the world. This can be repeated, until `epochs/<number>.applied` says
              that they have: from then on nobody needs to find the rows where they were shown.
 5 cleaned    what only the oldest epoch needed is removed: the last few are retained, to go back to.

    crash after   what a resumed engine finds, and does
    1             the epoch before: reads and calls the rows of this one again
    2             the same; sinks remove what was staged (`Sink.clear`), and step 5 the states
    3, within 4   this epoch: applies its rows (again), goes on from its positions and states
    4, within 5   the same; applying changes nothing

An engine first commits a *fence*: an epoch without work of its own, which repeats the state it goes on from. It fails
if another engine was faster, and makes each older engine fail that still runs: the next number of that one is taken. So
a fence is never removed. It is looked at again after it was created: an engine that fell asleep before could have
created a number that the running one had cleaned.

To go back to an older epoch, a fence repeats the state of that one instead, and says which epochs are given up: their
numbers stay taken, and sinks take their rows back. Its states are copies, because an older engine may still remove
those of epochs that it no longer retains.

Guarantees: of all engines over one place only the newest commits, and applies its own rows. The others raise `Fenced`.
Epochs without any change are not written.
Assumes: one thread at a time; that sinks keep `interface.Sink`'s promises.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import IO, Any

from ... import failpoints
from ...errors import Fenced, InvalidArgument, WrongCheckpoints
from ..connectors.interface import Json, Rewindable, transactional
from ..connectors.unnamed import Data
from ..operators.state_parts import StoredState
from .checkpoint_statistics import CheckpointStatistics, CheckpointSteps, SliceSpans
from .epoch_files import EpochFiles, RetainedEpoch
from .finished import Folded, fold, listed
from .manifest import Manifest, PipelineIdentity, SliceState, StateFile, StoredRows
from .retention import USUAL, Retention
from .savepoints import Savepoints
from .sealed_epoch import SealedEpoch
from .snapshot import Sealable, Snapshot, WithSinks
from .store import AlreadyThere, Store

_ROWS = "rows/"
_TRIES = 100  # to create a fence, while another engine commits epochs


class RowsStage:
    """A `Stage` in the store."""

    def __init__(self, store: Store, history: str) -> None:
        self._store, self.history = store, history

    def put(self, name: str, data: bytes) -> None:
        self._store.put(_ROWS + name, data)

    def write(self, name: str, write: Callable[[IO[bytes]], None]) -> None:
        self._store.write(_ROWS + name, write)

    def get(self, name: str) -> bytes:
        return self._store.get(_ROWS + name)

    def names(self, prefix: str) -> list[str]:
        return [name.removeprefix(_ROWS) for name in self._store.names(_ROWS + prefix)]

    def delete(self, name: str) -> None:
        self._store.delete(_ROWS + name)


class Epochs:
    """The epochs of a pipeline, as one engine goes on with them.

        epochs = Epochs(store, identity)                    looks, and changes nothing
        epochs.ask(check)                                   whoever refuses to go on does so now
        epochs.fence()                                      from here on no older engine commits
        epochs.settle(slices)                               what the last engine had committed
        epochs.take(slices)                                 again and again

    resume: whether there must be epochs; None: it goes on from them if there are some. at_least: one that there was:
    without it, or a later one, this is not the place. retention: which are kept.
    restore: the epoch to go back to, or the name of a savepoint. replays: the first source are the pipeline's dead
    letters, with positions of their own.
    latest: the last epoch that was committed; None before the fence of the first engine. statistics: of the last one
    that this engine has taken. later: see `GoneBack`.
    Raises WrongCheckpoints, InvalidArgument for a place that does not fit.
    """

    def __init__(
        self,
        store: Store,
        identity: PipelineIdentity,
        *,
        resume: bool | None = None,
        allow_changed_plugin: bool = False,
        at_least: int = 0,
        retention: Retention = USUAL,
        restore: int | str | None = None,
        replays: bool = False,
    ) -> None:
        self._replays = replays
        self._store, self._identity, self._allow = store, identity, allow_changed_plugin
        self._files, self._retention, self._restore = EpochFiles(store), retention, restore
        self._retained: dict[int, RetainedEpoch] = {}
        self._states: dict[StateFile, StoredState] = {}  # that were read for the start
        self.gone_back_to = 0
        self.later: Mapping[int, Sequence[Mapping[str, Json]] | None] = {}
        self._engine = secrets.token_hex(16)
        self._has_staged = False
        self._unfinished: SealedEpoch | None = None
        self.statistics: CheckpointStatistics | None = None
        self.latest = self._find()
        if self.latest is None and resume:
            option = "--resume" if restore is None else "--restore"
            raise WrongCheckpoints(f"{store.place} has no checkpoints: begin without {option}, or name another place")
        if self.latest is not None and resume is False:
            raise InvalidArgument(
                f"{store.place} has checkpoints already: go on from there without --fresh, or name another place"
            )
        if at_least > (newest := 0 if self.latest is None else self.latest.epoch):
            has = "has no checkpoints" if self.latest is None else f"ends with checkpoint {newest}"
            raise WrongCheckpoints(
                f"{store.place} {has}, and checkpoint {at_least} was taken: mount the folder, or bring back what was "
                "there; to begin anew without it, discard the state"
            )
        self.rows = RowsStage(store, secrets.token_hex(16) if self.latest is None else self.latest.history)

    @property
    def retained(self) -> tuple[int, ...]:
        """Epochs that one can go back to."""
        return tuple(sorted(self._retained))

    # ---- The start ----

    @property
    def next(self) -> int:
        """The number of the fence, unless another engine is faster."""
        return 1 if self.latest is None else self.latest.epoch + 1

    @property
    def waiting(self) -> StoredRows:
        """The rows that are still to be applied."""
        return StoredRows(epoch=0, slices=()) if self.latest is None else self._files.waiting(self.latest)

    def ask(self, check: Callable[[], None]) -> None:
        """Calls `check`, which refuses what does not fit to `latest` and changes nothing.

        It is called again if another engine has gone on meanwhile, and has taken away what it was to find.
        """
        for _ in range(_TRIES):
            asked = self.latest
            try:
                return check()
            except (InvalidArgument, Fenced):
                if asked is None:
                    raise
                self.latest = self._find()
                if self.latest is None or self.latest.epoch == asked.epoch:
                    raise
        raise self._too_fast()

    def fence(self) -> Manifest:
        """Commits the fence. Returns it: the state to go on from."""
        is_first = self.latest is None
        for _ in range(_TRIES):
            if not is_first:
                self.latest = self._find()
            number = 1 if self.latest is None else self.latest.epoch + 1
            fence = self._fence(number)
            with contextlib.suppress(AlreadyThere):
                self._store.create(self._files.name(number), fence.written())
                if self._files.numbers()[-1] == number:
                    self.latest, self._restore = fence, None
                    self._retained = self._files.clean(fence, self._retention)
                    return fence
            if is_first:
                raise InvalidArgument(
                    f"{self._store.place}: another engine has begun this pipeline in this moment: leave it to that one"
                )
        raise self._too_fast()

    def _too_fast(self) -> InvalidArgument:
        return InvalidArgument(f"{self._store.place}: another engine commits epochs all the time: stop it, then resume")

    def withdraw(self) -> bool:
        """Removes the fence of a first engine that could not begin: the place is as it was. False: it had begun."""
        is_unused = self.latest is not None and self.latest.epoch == 1 and self.latest.engine == self._engine
        if is_unused and not self._has_staged:
            self._files.remove(self._files.name(1))
        return is_unused and not self._has_staged

    def states(
        self, place: int, width: int, shared: Collection[int] = ()
    ) -> tuple[list[tuple[int | None, ...]], list[tuple[StoredState, ...]]]:
        """What slice `place` of `width` goes on from: for each source the watermarks of slices before, and for each
        operator their states.

        Slice i of before goes to i mod width. Operators that are `shared` out by keys get the states of all slices.
        Watermarks are those of all slices before: each may read now what another one has left.
        Raises InvalidArgument for a damaged state, Fenced.
        """
        assert self.latest is not None
        slices = self.latest.slices
        states = []
        for at in range(len(slices[0].operators) if slices else 0):
            taken = slices if at in shared else slices[place::width]
            files = [file for state in taken if (file := state.operators[at]) is not None]
            states.append(tuple(map(self._state_once, files)))
        return list(zip(*(state.watermarks for state in slices), strict=True)), states

    def settle(self, slices: Sequence[WithSinks]) -> None:
        """Behind the fence: brings sinks to it. They show the rows of its epoch, and give up those of all others that
        are not shown yet; of epochs that are given up, also those that are."""
        assert self.latest is not None
        self._states.clear()
        self.apply(slices)
        for sink in (sink for slice_ in slices for sink in transactional(slice_.sinks)):
            sink.clear(self.latest.epoch)
        for rewindable in slices[0].sinks if self.latest.given_up else ():
            if isinstance(rewindable, Rewindable):
                rewindable.withdraw(self.latest.given_up)
                failpoints.reached("withdrawn")

    def _fence(self, number: int) -> Manifest:
        before = self.latest
        if before is not None:
            update = {
                "epoch": number,
                "engine": self._engine,
                "fence": True,
                "fingerprint": self._identity.fingerprint,
                "plugins": self._identity.plugins,
                "rows": self._files.waiting(before),
            }
            if self._restore is not None:
                update |= {
                    "slices": self._copied(before.slices, number),
                    "finished": self._copied_lists(before.finished, number),
                }
            return before.model_copy(update=update)
        return Manifest(
            epoch=number,
            history=self.rows.history,
            engine=self._engine,
            fence=True,
            **self._identity.model_dump(),
            positions={},
            slices=(),
            rows=StoredRows(epoch=number, slices=()),
        )

    def _copied(self, slices: Sequence[SliceState], number: int) -> tuple[SliceState, ...]:
        """The same, with states of their own, which no engine but this one writes."""

        def copied(file: StateFile | None, slice: int, operator: int) -> StateFile | None:
            name = self._files.state_name(number, slice, operator, self._engine)
            parts_name = partial(self._files.parts_name, number, slice, operator, engine=self._engine)
            return file and self._copy(file, name, parts_name)

        return tuple(
            state.model_copy(
                update={"operators": tuple(copied(file, i, at) for at, file in enumerate(state.operators))}
            )
            for i, state in enumerate(slices)
        )

    def _copied_lists(self, finished: Sequence[Sequence[StateFile]], number: int) -> tuple[tuple[StateFile, ...], ...]:
        return tuple(
            tuple(
                self._copy(file, self._files.list_name(number, source, self._engine, at))
                for at, file in enumerate(lists)
            )
            for source, lists in enumerate(finished)
        )

    def _copy(self, file: StateFile, name: str, parts_name: Callable[[int], str] = str) -> StateFile:
        with self._errors(file):
            return self._files.copied(file, name, parts_name)

    def _find(self) -> Manifest | None:
        """The newest epoch, or the one to go back to as the newest, checked."""
        for _ in range(_TRIES):
            with contextlib.suppress(FileNotFoundError):  # another engine has gone on meanwhile
                manifest = self._newest() if self._restore is None else self._gone_back(self._restore)
                if manifest is not None:
                    self._identity.check(manifest, self._store.place, self._allow)
                return manifest
        raise self._too_fast()

    def _newest(self) -> Manifest | None:
        numbers = self._files.numbers()
        return self._files.read(numbers[-1]) if numbers else None

    def _gone_back(self, to: int | str) -> Manifest | None:
        if isinstance(to, str):
            gone_back = self._files.back_to_copy(to, Savepoints(self._store).read(to))
        else:
            gone_back = self._files.back_to(to)
        if gone_back is None:
            return None
        self.later, self.gone_back_to = gone_back.later, gone_back.epoch
        return gone_back.manifest

    def _state_once(self, file: StateFile) -> StoredState:
        """Of a state that several slices read."""
        if file not in self._states:
            self._states[file] = self._state(file)
        return self._states[file]

    def _state(self, file: StateFile) -> StoredState:
        with self._errors(file):
            return self._files.state(file)

    @contextlib.contextmanager
    def _errors(self, file: StateFile) -> Iterator[None]:
        """Of reading a state."""
        try:
            yield
        except FileNotFoundError as error:
            if self.latest is not None and max(self._files.numbers(), default=0) > self.latest.epoch:
                raise self._fenced(self.latest.epoch) from error
            raise self._files.missing(file) from error

    def _fenced(self, epoch: int) -> Fenced:
        return Fenced(
            f"{self._store.place}: another engine has resumed this pipeline after epoch {epoch}. This one stops; its "
            "rows since then are not applied, and the other one reads them again"
        )

    # ---- An epoch ----

    def take(self, slices: Sequence[Sealable]) -> Manifest | None:
        """Takes all five steps. None: nothing has changed since the last epoch, and nothing was written.

        If step 2, 3 or 4 fails, `is_unfinished`: the next call makes up for it first, with the rows of that moment.
        Raises Fenced.
        """
        made_up = None if self._unfinished is None else self._finish(self._unfinished, slices)
        before, steps = self.latest, CheckpointSteps()
        assert before is not None
        number = before.epoch + 1

        # 1 sealed
        snapshots = [future.result() for future in [slice_.seal(number) for slice_ in slices]]
        failpoints.reached("sealed")
        epoch = self._epoch(number, snapshots)
        sealed = SealedEpoch(before, epoch, snapshots, self._files, steps)
        if sealed.is_unchanged:
            return made_up
        sealed.add_lists(*self._with_lists(epoch))
        return self._finish(sealed, slices)

    @property
    def is_unfinished(self) -> bool:
        """Whether an epoch was sealed that is not applied."""
        return self._unfinished is not None

    def _finish(self, sealed: SealedEpoch, slices: Sequence[Sealable]) -> Manifest:
        """Steps 2 to 5. Steps 2 to 4 may be repeated."""
        before, snapshots, steps = sealed.before, sealed.snapshots, sealed.steps
        self._unfinished = sealed
        if sealed.committed is None:
            self.latest = sealed.committed = self._commit(sealed)
            failpoints.reached("committed")
        elif max(self._files.numbers(), default=0) > sealed.committed.epoch:
            raise self._fenced(sealed.committed.epoch)
        epoch = sealed.committed

        # 4 applied
        self.apply(slices, [snapshot.spans for snapshot in snapshots])
        self._unfinished = None
        steps.did("Committing")

        # 5 cleaned
        self._retained[epoch.epoch] = RetainedEpoch.of(epoch)
        was_needed = before.state_names
        kept = self._retention.kept({number: retained.time for number, retained in self._retained.items()})
        for number in sorted(self._retained.keys() - set(kept)):
            self._files.remove(self._files.name(number))
            was_needed |= self._retained.pop(number).states
        if any(before.rows.slices):
            self._files.remove(self._files.applied(before.rows.epoch))
        for name in sorted(was_needed.difference(*(retained.states for retained in self._retained.values()))):
            self._files.remove(name)
        failpoints.reached("cleaned")
        self.statistics = sealed.statistics()
        return epoch

    def _commit(self, sealed: SealedEpoch) -> Manifest:
        """Steps 2 and 3. Returns the epoch with its rows."""
        # 2 staged
        self._has_staged = True
        sealed.stage()
        epoch = sealed.whole
        sealed.steps.did("CheckpointingOperators")
        failpoints.reached("staged")

        # 3 committed
        name, written = self._files.name(epoch.epoch), epoch.written()
        try:
            self._store.create(name, written)
        except AlreadyThere as error:
            if self._store.get(name) != written:  # else it has failed behind that
                sealed.discard()
                raise self._fenced(sealed.before.epoch) from error
        sealed.keep()
        sealed.steps.did("WritingMetadata")
        return epoch

    def apply(self, slices: Sequence[WithSinks], spans: Sequence[SliceSpans] = ()) -> None:
        """Step 4, for the latest epoch. spans: of the slices that have stored its rows, if it is this engine's."""
        assert self.latest is not None
        rows = self.latest.rows
        for i, by_sink in enumerate(rows.slices):
            for sink in transactional(slices[i % len(slices)].sinks):
                if sink.name in by_sink:
                    timed = spans[i].span(("sink", sink.name), "Committing") if spans else contextlib.nullcontext()
                    with timed:
                        sink.apply(rows.epoch, by_sink[sink.name])
                    failpoints.reached("applied")
        if any(rows.slices):
            self._store.put(self._files.applied(rows.epoch), b"")

    def _epoch(self, number: int, snapshots: Sequence[Snapshot]) -> Manifest:
        """The epoch, its states and rows still missing."""
        assert self.latest is not None
        positions = self._positions(0, [snapshot.positions for snapshot in snapshots])
        others_of = zip(*(snapshot.others for snapshot in snapshots), strict=True)
        others_positions = [
            self._positions(number, [other.positions for other in own]) for number, own in enumerate(others_of, 1)
        ]
        return self.latest.model_copy(
            update={
                "epoch": number,
                "fence": False,
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "replayed" if self._replays else "positions": positions,
                "others": tuple(others_positions),
            }
        )

    def positions_of(self, source: int) -> dict[str, dict[str, Any]]:
        """From which a source goes on."""
        assert self.latest is not None
        positions = dict(self._own_positions(source))
        for file in () if self._replays else self.latest.finished_of(source):
            positions |= listed(file, self._list)
        return positions

    def _list(self, file: StateFile) -> Data:
        return self._state(file).head

    def _own_positions(self, source: int) -> dict[str, dict[str, Any]]:
        """Of a source, without those in lists."""
        assert self.latest is not None
        return self.latest.replayed if self._replays else self.latest.positions_of(source)

    def _positions(self, source: int, read: Sequence[Mapping[str, Json]]) -> dict[str, dict[str, Any]]:
        """Of a source: before, and what slices have read since."""
        positions = dict(self._own_positions(source))
        for own in read:
            positions |= {name: dict(position) for name, position in own.items()}
        return positions

    def _with_lists(self, epoch: Manifest) -> tuple[Manifest, Sequence[tuple[StateFile, bytes]]]:
        """The epoch with lists of the partitions that have been read, and those lists that are not stored yet."""
        if self._replays:
            return epoch, ()

        def folded(source: int, positions: dict[str, dict[str, Any]]) -> Folded:
            name = self._files.list_name(epoch.epoch, source)
            return fold(positions, epoch.finished_of(source), name, f"source {source + 1}", self._list)

        every = [folded(source, positions) for source, positions in enumerate((epoch.positions, *epoch.others))]
        positions, *others = (source.positions for source in every)
        update: dict[str, Any] = {"positions": positions, "others": tuple(others)}
        lists = tuple(source.lists for source in every)
        update["finished"] = lists if any(lists) else ()
        return epoch.model_copy(update=update), [source.new for source in every if source.new is not None]
