"""The files of epochs in a store: which there are, what they say, and which of them are needed.

    epochs/<number>.json                        what an epoch is: manifest.py
    epochs/<number>.applied                     its rows are shown
    states/<number>-<slice>-<operator>.arrow    of its operators; what a restored epoch has copied ends with its engine
    states/<number>-<slice>-<operator>-rows.arrow    parts that windows keep, which later epochs may need, too
    states/<number>-read-<source>.arrow         a list of partitions that have been read: finished.py

The newest epoch is what an engine goes on from. So many before it are retained, to go back to. Fences are no
checkpoints, but stay: see checkpoints.py.

Guarantees: what a retained epoch needs is not removed, also if its manifest is lost or damaged, so that a copy of that
can be put back. What nothing needs is removed, at the next start at the latest.
Assumes: a part is needed by all epochs from its own to the last one that has it. So a file that a lost epoch shares
with an earlier and a later one is known by these.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from ...errors import InvalidArgument, WrongCheckpoints
from ..connectors.unnamed import Data
from ..operators.state_parts import StoredState
from .manifest import Manifest, StateFile, StoredFile, StoredRows
from .retention import Retention
from .store import Store

Stored = TypeVar("Stored", bound=StoredFile)

_EPOCHS, _STATES = "epochs/", "states/"
_ENGINE = r"(?:-[0-9a-f]{32})?"
_STATE = rf"-(?:\d+-\d+(?:-rows\d*)?|read-\d+(?:-\d+)?){_ENGINE}\.arrow"
_NUMBERED = re.compile(rf"(?:epochs|states)/(\d{{10,}})(\.json|\.applied|{_STATE})")
_SHARED = re.compile(rf".*-(?:rows\d*|read-\d+(?:-\d+)?){_ENGINE}\.arrow")  # files that several epochs need


@dataclasses.dataclass(frozen=True)
class GoneBack:
    """An older epoch as the newest one. epoch: its number. later: the rows of those that are given up: by number, for
    each slice, by sink; None: the epoch cannot be read."""

    epoch: int
    manifest: Manifest
    later: Mapping[int, tuple[dict[str, Any], ...] | None]


@dataclasses.dataclass(frozen=True)
class RetainedEpoch:
    """A retained epoch: the names of its states, and when it was taken (RFC 3339)."""

    states: set[str]
    time: str | None

    @classmethod
    def of(cls, manifest: Manifest) -> RetainedEpoch:
        return cls(manifest.state_names, manifest.time)


@dataclasses.dataclass(frozen=True)
class RestorableEpoch:
    """An epoch that can be restored, unless there is a problem.

    time: when it was taken (RFC 3339); None: an earlier program did not note it. state_bytes: of its operators.
    """

    epoch: int
    time: str | None
    state_bytes: int
    problem: str | None


class EpochFiles:
    """Those of a store. Other files are left alone. Raises InvalidArgument for a store that fails."""

    def __init__(self, store: Store) -> None:
        self.store = store

    # ---- Names ----

    @staticmethod
    def name(number: int) -> str:
        return f"{_EPOCHS}{number:010}.json"

    @staticmethod
    def applied(number: int) -> str:
        return f"{_EPOCHS}{number:010}.applied"

    @staticmethod
    def state_name(number: int, slice: int, operator: int, engine: str = "") -> str:
        """engine: that has copied it."""
        return f"{_STATES}{number:010}-{slice}-{operator}{engine and f'-{engine}'}.arrow"

    @staticmethod
    def parts_name(number: int, slice: int, operator: int, copied: int | None = None, engine: str = "") -> str:
        """copied: which one of the state's files the engine has copied."""
        return f"{_STATES}{number:010}-{slice}-{operator}-rows{'' if copied is None else f'{copied}-{engine}'}.arrow"

    @staticmethod
    def list_name(number: int, source: int, engine: str = "", at: int = 0) -> str:
        """engine: that has copied it, as the list at this place."""
        return f"{_STATES}{number:010}-read-{source}{engine and f'-{at}-{engine}'}.arrow"

    def numbers(self) -> list[int]:
        return sorted(self._numbered(_EPOCHS, ".json").values())

    def _numbered(self, folder: str, ending: str) -> dict[str, int]:
        """Our files in a folder of the store, with their numbers."""
        matches = {name: _NUMBERED.fullmatch(name) for name in self.store.names(folder)}
        return {name: int(match[1]) for name, match in matches.items() if match and name.endswith(ending)}

    # ---- What they say ----

    def read(self, number: int) -> Manifest:
        """Raises InvalidArgument for a damaged one, FileNotFoundError."""
        name = self.name(number)
        return Manifest.read(self.store.get(name), number, f"{self.store.place}/{name}")

    def state(self, state: StateFile) -> StoredState:
        """Raises InvalidArgument for a damaged one, FileNotFoundError."""
        head, *parts = [self._loaded(state, file) for file in state.files]
        sums = (file.sha256 for file in state.parts)
        return StoredState(head, tuple(zip(sums, parts, strict=True)))

    def _loaded(self, state: StateFile, file: StoredFile) -> Data:
        data = self.store.load(file.name)
        file.check(data, state.what(file), self.store.place)
        return data

    def copied(self, state: StateFile, head_name: str, parts_name: Callable[[int], str]) -> StateFile:
        """A copy in files of its own. parts_name: of each of its files. Raises as `state` does."""

        def copied(file: Stored, name: str) -> Stored:
            self.store.put(name, self._loaded(state, file))
            return file.model_copy(update={"name": name})

        parts = tuple(copied(file, parts_name(number)) for number, file in enumerate(state.parts))
        return copied(state, head_name).model_copy(update={"parts": parts})

    def missing(self, state: StateFile) -> InvalidArgument:
        file = next(file for file in state.files if file.name not in self.store.names(file.name))
        return InvalidArgument(
            f"{self.store.place}: {file.name}, {state.what(file)}, is missing: put a copy back, go back to an older "
            "checkpoint (--restore), or begin anew in another place"
        )

    def waiting(self, epoch: Manifest) -> StoredRows:
        """Its rows, unless they are shown."""
        rows, applied = epoch.rows, self.applied(epoch.rows.epoch)
        return StoredRows(epoch=rows.epoch, slices=()) if applied in self.store.names(applied) else rows

    # ---- Going back ----

    def back_to(self, epoch: int) -> GoneBack | None:
        """An epoch as if it were the newest; None: there are no epochs. Raises InvalidArgument, FileNotFoundError if
        another engine goes on in this moment."""
        numbers = self.numbers()
        if not numbers:
            return None
        every = self._readable(numbers)
        newest = _newest(every)
        if epoch not in numbers or (newest is not None and newest.has_given_up(epoch)):
            raise self._unknown(epoch, every)
        manifest = every[epoch] or self.read(epoch)
        if manifest.fence:
            raise self._unknown(epoch, every)
        return self._gone_back(manifest, every)

    def back_to_copy(self, name: str, copy: Manifest) -> GoneBack | None:
        """As `back_to`, of a savepoint of this name."""
        numbers = self.numbers()
        if not numbers:
            return None
        every = self._readable(numbers)
        newest = _newest(every)
        if newest is not None and copy.history != newest.history:
            raise WrongCheckpoints(f"{self.store.place}: the savepoint {name} is of another run than the checkpoints")
        if newest is not None and newest.has_given_up(copy.epoch):
            raise WrongCheckpoints(
                f"{self.store.place}: the savepoint {name} is of checkpoint {copy.epoch}, which was given up by going "
                "back to an earlier one: what it had in its sinks is not there any more"
            )
        unknown: dict[int, Manifest | None] = dict.fromkeys(range(copy.epoch + 1, numbers[-1]))
        return self._gone_back(copy, unknown | every)

    def _gone_back(self, manifest: Manifest, every: Mapping[int, Manifest | None]) -> GoneBack:
        """every: the epochs that there were, by number; None: nobody knows what it had."""
        epoch, newest, last = manifest.epoch, _newest(every), max(every)
        later = {
            number: other for number, other in every.items() if number > epoch and not manifest.has_given_up(number)
        }
        rows: dict[int, tuple[dict[str, Any], ...] | None] = {
            number: None for number, other in later.items() if other is None
        }
        for other in later.values():
            if other is not None and other.rows.epoch > epoch and any(other.rows.slices):
                rows[other.rows.epoch] = other.rows.slices
        waiting = self.waiting(newest or manifest)
        if waiting.epoch != manifest.rows.epoch:  # its own were applied before a later one was committed
            waiting = StoredRows(epoch=last, slices=())
        given_up = (newest or manifest).given_up
        return GoneBack(epoch, manifest.gone_back(last, given_up, waiting), rows)

    def _readable(self, numbers: list[int]) -> dict[int, Manifest | None]:
        manifests: dict[int, Manifest | None] = {}
        for number in numbers:
            manifests[number] = None
            with contextlib.suppress(InvalidArgument):
                manifests[number] = self.read(number)
        return manifests

    def _unknown(self, epoch: int, every: Mapping[int, Manifest | None]) -> InvalidArgument:
        there = [str(manifest.epoch) for manifest in every.values() if manifest is not None and not manifest.fence]
        return WrongCheckpoints(
            f"{self.store.place} has no checkpoint {epoch}" + (f": there are {', '.join(there)}" if there else "")
        )

    def checkpoints(self) -> Iterator[RestorableEpoch]:
        """Those that can be restored, and those that could be if they were whole, the oldest first. Reads all."""
        every = self._readable(self.numbers())
        whole = [manifest for manifest in every.values() if manifest is not None]
        states = {number for name, number in self._numbered(_STATES, ".arrow").items() if not _SHARED.fullmatch(name)}
        oldest = min((manifest.epoch for manifest in whole if not manifest.fence), default=0)
        lost = {number for number in states if whole and oldest < number < whole[-1].epoch and number not in every}
        for number in sorted({*every, *lost}):
            manifest = every.get(number)
            if whole and whole[-1].has_given_up(number):
                continue
            if number in lost:
                yield RestorableEpoch(number, None, 0, f"{self.name(number)} is missing")
            elif manifest is None:
                yield RestorableEpoch(number, None, 0, self._problem(number))
            elif not manifest.fence:
                files = manifest.state_files
                problem = next((why for file in files if (why := self._problem_of(file)) is not None), None)
                yield RestorableEpoch(number, manifest.time, manifest.state_bytes, problem)

    def _problem(self, number: int) -> str | None:
        try:
            self.read(number)
        except FileNotFoundError:
            return f"{self.name(number)} is missing"
        except InvalidArgument as error:
            return str(error)
        return None

    def _problem_of(self, file: StateFile) -> str | None:
        try:
            self.state(file)
        except FileNotFoundError:
            return str(self.missing(file))
        except InvalidArgument as error:
            return str(error)
        return None

    # ---- Cleaning ----

    def clean(self, latest: Manifest, retention: Retention) -> dict[int, RetainedEpoch]:
        """At the start: removes what engines before have left behind. Numbers above `latest`, a fence, belong to newer
        engines. Returns the epochs that are retained, each with its states."""
        number = latest.epoch
        older: dict[int, RetainedEpoch] = {}
        read: set[int] = {number}
        for epoch in self.numbers():
            with contextlib.suppress(InvalidArgument, FileNotFoundError):  # nobody needs to read it
                if epoch < number:
                    manifest = self.read(epoch)
                    read.add(epoch)
                    if not manifest.fence:
                        older[epoch] = RetainedEpoch.of(manifest)
        whole = {epoch: entry.time for epoch, entry in older.items() if not latest.has_given_up(epoch)}
        retained = {epoch: older[epoch] for epoch in retention.kept(whole)}
        needed = latest.state_names.union(*(entry.states for entry in retained.values()))
        first = min(retained) if len(retained) >= retention.number else 0  # else a lost manifest may be put back
        states = self._numbered(_STATES, ".arrow")
        heads = {of for name, of in states.items() if not _SHARED.fullmatch(name)}
        lost = {of for of in heads if first < of <= number and of not in read and not latest.has_given_up(of)}
        for name, of in states.items():
            can_come_back = of <= max(lost, default=0) if _SHARED.fullmatch(name) else of in lost
            if of <= number and name not in needed and not can_come_back:
                self.remove(name)
        for name, of in self._numbered(_EPOCHS, ".applied").items():
            if of < number:  # the fence has no rows then
                self.remove(name)
        for epoch in older.keys() - retained.keys():
            self.remove(self.name(epoch))
        return retained

    def remove(self, name: str) -> None:
        """What cannot be removed now is removed at the next start."""
        with contextlib.suppress(InvalidArgument, OSError):
            self.store.delete(name)


def _newest(every: Mapping[int, Manifest | None]) -> Manifest | None:
    """Of those that can be read."""
    return max(
        (manifest for manifest in every.values() if manifest is not None),
        key=lambda manifest: manifest.epoch,
        default=None,
    )
