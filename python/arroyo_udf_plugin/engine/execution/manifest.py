"""The file of an epoch: `epochs/<number>.json`.

    {"version": 3, "sha256": "...", "epoch": {...}}          sha256: of "epoch", as this module writes it

Guarantees: what is read is checked before it is believed. Another version, a damaged file, another pipeline and another
plugin are an InvalidArgument that says which, and what to do.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pydantic

from ...errors import InvalidArgument, WrongCheckpoints
from ..connectors.unnamed import Data
from .changes import NONE, changes

VERSION = 3
_READ = (1, 2, VERSION)  # 1 has neither times nor epochs that are given up; states of both have no parts


class _Part(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)


class StoredFile(_Part):
    """name: in the store. size, sha256: what it must be."""

    name: str
    size: int
    sha256: str

    def check(self, data: Data, what: str, place: str) -> None:
        """what: it is, for people. Raises InvalidArgument if these are not the bytes that were written."""
        if len(data) != self.size or hashlib.sha256(data).hexdigest() != self.sha256:
            raise InvalidArgument(
                f"{place}: {self.name}, {what}, is damaged: it has {len(data)} bytes, of {self.size}, or others than "
                "were written; put a copy back, go back to an older checkpoint (--restore), or begin anew in another "
                "place"
            )


class PartsFile(StoredFile):
    """Parts that one operator or several keep, of one epoch or several. rows: of all of them."""

    rows: int


class StateFile(StoredFile):
    """An operator's state. parts: the files that it names by their places here.

    Or a list of a source's partitions, without parts; its operator is "source 1"."""

    operator: str
    parts: tuple[PartsFile, ...] = ()

    @classmethod
    def of(cls, operator: str, name: str, data: Data) -> StateFile:
        return cls(operator=operator, name=name, size=len(data), sha256=hashlib.sha256(data).hexdigest())

    @property
    def files(self) -> tuple[StoredFile, ...]:
        """All that it needs."""
        return (self, *self.parts)

    @property
    def whole_size(self) -> int:
        """Of all files."""
        return sum(file.size for file in self.files)

    def what(self, file: StoredFile) -> str:
        """What one of them is, for people."""
        return f"{'the state' if file is self else 'a part of the state'} of {self.operator}"


class SliceState(_Part):
    """watermark: of the event time of the slice's first source. operators: in their order; None: it works in another
    slice. others: the watermarks of further sources."""

    watermark: int | None
    operators: tuple[StateFile | None, ...]
    others: tuple[int | None, ...] = ()

    @property
    def watermarks(self) -> tuple[int | None, ...]:
        """Of all sources."""
        return (self.watermark, *self.others)


class StoredRows(_Part):
    """The rows of an epoch: for each slice, by sink, what `Sink.apply` needs."""

    epoch: int
    slices: tuple[dict[str, Any], ...]


class Manifest(_Part):
    """An epoch.

    history: 32 random hexadecimal digits, which resumed engines keep (see `Stage`). engine: of the one that has written
    it. fence: it is the first of this engine.
    pipeline, fingerprint, plugins: see `PipelineIdentity`.
    positions: of the first source's partitions that have been opened. slices: their states. rows: to be applied.
    finished: further partitions that have been read, in lists for each source: see finished.py.
    others: the positions of further sources; a pipeline with one source has none, and its epochs do not mention them.
    replayed: the positions of the dead letters, as a source of their own; {}: none were replayed.
    time: when it was taken (RFC 3339).
    given_up: the first and last numbers of epochs that were left behind by going back to earlier ones.
    """

    epoch: int
    history: str
    engine: str
    fence: bool
    pipeline: str
    fingerprint: dict[str, Any]
    plugins: dict[str, str]
    positions: dict[str, dict[str, Any]]
    slices: tuple[SliceState, ...]
    rows: StoredRows
    others: tuple[dict[str, dict[str, Any]], ...] = ()
    replayed: dict[str, dict[str, Any]] = {}
    time: str | None = None
    given_up: tuple[tuple[int, int], ...] = ()
    finished: tuple[tuple[StateFile, ...], ...] = ()

    def has_given_up(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self.given_up)

    def gone_back(self, newest: int, given_up: Sequence[tuple[int, int]], rows: StoredRows) -> Manifest:
        """This epoch as the newest one: those between are given up, and these already were. rows: that wait."""
        still = [span for span in given_up if span[1] <= self.epoch]
        own = [(self.epoch + 1, newest)] if newest > self.epoch else []
        return self.model_copy(update={"epoch": newest, "given_up": (*still, *own), "rows": rows})

    def positions_of(self, source: int) -> dict[str, dict[str, Any]]:
        """source: its number."""
        every = (self.positions, *self.others)
        return every[source] if source < len(every) else {}

    def finished_of(self, source: int) -> tuple[StateFile, ...]:
        """source: its number."""
        return self.finished[source] if source < len(self.finished) else ()

    def written(self) -> bytes:
        text = _canonical(self.model_dump(mode="json", exclude_defaults=True))
        head = f'{{"version":{VERSION},"sha256":"{hashlib.sha256(text.encode()).hexdigest()}","epoch":'
        return f"{head}{text}}}\n".encode()

    @classmethod
    def read(cls, data: bytes, number: int, name: str) -> Manifest:
        """number, name: of the file."""
        try:
            document = json.loads(data)
            version = document["version"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise _damaged(name, error) from error
        if version not in _READ:
            raise InvalidArgument(
                f"{name}: the epoch has format version {version}, and this program reads up to {VERSION}: resume "
                "with the program that has written it, or begin anew in another place"
            )
        try:
            text = _canonical(document["epoch"])
            if hashlib.sha256(text.encode()).hexdigest() != document["sha256"]:
                raise ValueError("its checksum is another one")
            epoch = cls.model_validate_json(text)
            if epoch.epoch != number:
                raise ValueError(f"it is of epoch {epoch.epoch}")
            return epoch
        except (ValueError, KeyError, TypeError) as error:
            raise _damaged(name, error) from error

    @property
    def state_files(self) -> list[StateFile]:
        """Those in the store that this epoch needs."""
        of_operators = [file for state in self.slices for file in state.operators if file is not None]
        return [*of_operators, *(file for lists in self.finished for file in lists)]

    @property
    def parts_files(self) -> list[PartsFile]:
        """Of all states, in their order."""
        return list(dict.fromkeys(file for state in self.state_files for file in state.parts))

    @property
    def state_names(self) -> set[str]:
        """Of all files of its states. Other epochs may need some of them, too."""
        return {file.name for state in self.state_files for file in state.files}

    @property
    def state_bytes(self) -> int:
        """Of all these files."""
        return sum({file.name: file.size for state in self.state_files for file in state.files}.values())


class PipelineIdentity(_Part):
    """What a pipeline must have in common with the epochs that it resumes.

    fingerprint: the description's parts that matter. plugins: the hash of each call's plugin.
    """

    pipeline: str
    fingerprint: dict[str, Any]
    plugins: dict[str, str]

    @classmethod
    def of(cls, pipeline: str, fingerprint: Mapping[str, Any], plugins: Mapping[str, str]) -> PipelineIdentity:
        as_stored = json.loads(_canonical(dict(fingerprint)))  # tuples have become lists
        return cls(pipeline=pipeline, fingerprint=as_stored, plugins=dict(plugins))

    def check(self, epoch: Manifest, place: str, allow_changed_plugin: bool) -> None:
        """Raises WrongCheckpoints if this pipeline cannot go on from that epoch."""
        if epoch.pipeline != self.pipeline:
            raise WrongCheckpoints(
                f"{place} has checkpoints of the pipeline {epoch.pipeline!r}, not of {self.pipeline!r}: name the place "
                "of this pipeline"
            )
        change = difference(epoch.fingerprint, self.fingerprint)
        if change is not None:
            raise WrongCheckpoints(
                f"{place}: the pipeline {self.pipeline!r} has changed since its checkpoints were written: {change}: "
                "undo the change, or begin anew in another place"
            )
        others = [name for name, hash_ in self.plugins.items() if epoch.plugins.get(name) != hash_]
        if others and not allow_changed_plugin:
            raise WrongCheckpoints(
                f"{place}: the plugin of {', '.join(others)} is not the one that ran before: resume with the same "
                "file, or add --allow-changed-plugin"
            )


def difference(was: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Of two fingerprints: what must not change, and has; None: nothing."""
    return "; ".join(_change(*change) for change in itertools.islice(changes(was, now), 3)) or None


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _damaged(name: str, error: Exception) -> InvalidArgument:
    why = str(error).partition("\n")[0]
    return InvalidArgument(
        f"{name}: the epoch is damaged ({why}): put a copy back, go back to an older checkpoint (--restore), or begin "
        "anew in another place"
    )


def _change(key: str, was: Any, now: Any) -> str:
    """A change. Of long values, the parts that differ."""
    if was is NONE:
        return f"{key} is new, {_short(_chosen(now), 0)}"
    if now is NONE:
        return f"{key} is gone, which was {_short(_chosen(was), 0)}"
    texts = _canonical(was), _canonical(now)
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False)))
    start = same - 40
    return f"{key} was {_short(texts[0], start)}, and is {_short(texts[1], start)}"


def _chosen(value: Any) -> str:
    """Without what is null; of a source, an operator or a sink, the type first."""
    if isinstance(value, dict):
        value = {
            name: value[name] for name in sorted(value, key=lambda name: name != "type") if value[name] is not None
        }
    return json.dumps(value, ensure_ascii=False)


def _short(text: str, start: int) -> str:
    start = start if len(text) > 100 and start > 0 else 0
    part = text[start : start + 100]
    return f"{'...' if start else ''}{part}{'...' if start + 100 < len(text) else ''}"
