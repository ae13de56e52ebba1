"""Checkpoints with a name, which no retention removes: copies beside the epochs.

    savepoints/<name>/<number of the epoch>.json        what it is, as an epoch's; created last
    savepoints/<name>/states/...                        its own copies of the operators' states

    Savepoints(store).take("before-upgrade")            of the latest checkpoint, whether an engine runs or not

Guarantees: a savepoint is there with all that it needs, or not at all. Engines neither need it nor remove it. Of
several that take one name at once, one succeeds.
"""

from __future__ import annotations

import dataclasses
import re

from ...errors import InvalidArgument, WrongCheckpoints
from .epoch_files import EpochFiles
from .manifest import Manifest, StateFile
from .store import AlreadyThere, Store

_FOLDER = "savepoints/"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")
_MANIFEST = re.compile(r"savepoints/([^/]+)/(\d{10,})\.json")
_TRIES = 100  # to copy a checkpoint, while an engine takes others


@dataclasses.dataclass(frozen=True)
class TakenSavepoint:
    """epoch: that was copied. time: when that was taken (RFC 3339)."""

    name: str
    epoch: int
    time: str | None
    state_bytes: int


class Savepoints:
    """Those of a store. Raises InvalidArgument for a store that fails."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def take(self, name: str) -> TakenSavepoint:
        """Copies the latest checkpoint. Raises InvalidArgument for a name that is taken, or none; WrongCheckpoints if
        there is no checkpoint yet."""
        if not _NAME.fullmatch(name):
            raise InvalidArgument(
                f"{name!r} is no name of a savepoint: write a letter, then letters, digits, '_', '.' and '-'"
            )
        if name in self._epochs_by_name():
            raise self._taken(name)
        for _ in range(_TRIES):
            manifest = self._latest()
            try:
                copied = self._copied(manifest, name)
            except FileNotFoundError:  # an engine has gone on meanwhile
                continue
            try:
                self._store.create(f"{_FOLDER}{name}/{copied.epoch:010}.json", copied.written())
            except AlreadyThere:
                raise self._taken(name) from None
            return _savepoint(name, copied)
        raise InvalidArgument(f"{self._store.place}: checkpoints come faster than one can be copied: try it again")

    def listed(self) -> list[TakenSavepoint]:
        """By name."""
        return [_savepoint(name, self.read(name)) for name in sorted(self._epochs_by_name())]

    def read(self, name: str) -> Manifest:
        """As an epoch. Raises WrongCheckpoints if there is none, InvalidArgument for a damaged one."""
        there = self._epochs_by_name()
        if name not in there:
            others = f": there are {', '.join(sorted(there))}" if there else ""
            raise WrongCheckpoints(f"{self._store.place} has no savepoint {name}{others}")
        file = f"{_FOLDER}{name}/{there[name]:010}.json"
        return Manifest.read(self._store.get(file), there[name], f"{self._store.place}/{file}")

    def delete(self, name: str) -> None:
        """Raises WrongCheckpoints if there is none."""
        there = self._epochs_by_name()
        if name not in there:
            raise WrongCheckpoints(f"{self._store.place} has no savepoint {name}")
        self._store.delete(f"{_FOLDER}{name}/{there[name]:010}.json")
        for path in self._store.names(f"{_FOLDER}{name}/"):
            self._store.delete(path)

    def _epochs_by_name(self) -> dict[str, int]:
        """Names with the numbers of their epochs."""
        matches = map(_MANIFEST.fullmatch, self._store.names(_FOLDER))
        return {match[1]: int(match[2]) for match in matches if match is not None}

    def _latest(self) -> Manifest:
        """The latest epoch; a fence has the state of the one before."""
        files = EpochFiles(self._store)
        for _ in range(_TRIES):
            numbers = files.numbers()
            if not numbers:
                break
            try:
                manifest = files.read(numbers[-1])
            except FileNotFoundError:
                continue
            if manifest.slices:
                return manifest
            break
        raise WrongCheckpoints(f"{self._store.place} has no checkpoint yet: wait for the first one")

    def _copied(self, manifest: Manifest, name: str) -> Manifest:
        """With states of its own. Raises FileNotFoundError."""

        files = EpochFiles(self._store)

        def copied(state: StateFile) -> StateFile:
            names = [f"{_FOLDER}{name}/{file.name}" for file in state.files]
            return files.copied(state, names[0], names[1:].__getitem__)

        slices = [
            state.model_copy(update={"operators": tuple(file and copied(file) for file in state.operators)})
            for state in manifest.slices
        ]
        finished = tuple(tuple(map(copied, lists)) for lists in manifest.finished)
        return manifest.model_copy(update={"slices": tuple(slices), "finished": finished})

    def _taken(self, name: str) -> InvalidArgument:
        return InvalidArgument(f"{self._store.place} has a savepoint {name} already: write another name, or delete it")


def _savepoint(name: str, manifest: Manifest) -> TakenSavepoint:
    return TakenSavepoint(name, manifest.epoch, manifest.time, manifest.state_bytes)
