"""The state of a stage of a slice, as Flink keeps it: a small value, and files in a map.

    state = FlinkState(value, files)             of Flink: a ValueState and a MapState
    about, stored = state.read()                 None: there is nothing yet
    state.write(stage.about(), stage.snapshot(), "windows")

It is written before each checkpoint and savepoint (see functions.py), as checkpoints of the embedded engine are: a
head, and those parts of windows that no file has yet. So what is written is what is new, and Flink's incremental
checkpoints have only that.

Assumes: its methods are called while the slice's key is the current one.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any, Protocol

from ...errors import InvalidArgument
from ..connectors.unnamed import Data
from ..execution.manifest import StateFile
from ..execution.snapshot import OperatorState
from ..execution.staged_state import StagedState
from ..operators.state_parts import StoredState


class StoredValue(Protocol):
    """Flink's `ValueState` of bytes."""

    def value(self) -> bytes | None: ...
    def update(self, value: bytes) -> None: ...


class FileMap(Protocol):
    """Flink's `MapState` from names to bytes."""

    def get(self, key: str) -> bytes | None: ...
    def put(self, key: str, value: bytes) -> None: ...
    def remove(self, key: str) -> None: ...
    def keys(self) -> Iterable[str]: ...


_ENDED = "ended "


class FlinkState:
    def __init__(self, value: StoredValue, files: FileMap) -> None:
        self._value, self._files = value, files
        self._last: StateFile | None = None
        self._number = 0  # of the latest file of parts

    def read(self) -> tuple[Mapping[str, Any], StoredState | None] | None:
        """Raises InvalidArgument for a damaged state."""
        value = self._value.value()
        if value is None:
            return None
        stored = json.loads(bytes(value))
        self._number = stored["number"]
        if stored["state"] is None:
            return stored["about"], None
        self._last = StateFile.model_validate_json(json.dumps(stored["state"]))
        head, *parts = [self._loaded(self._last, file.name) for file in self._last.files]
        for file, data in zip(self._last.files, (head, *parts), strict=True):
            file.check(data, self._last.what(file), "Flink's state")
        sums = (file.sha256 for file in self._last.parts)
        return stored["about"], StoredState(head, tuple(zip(sums, parts, strict=True)))

    def _loaded(self, state: StateFile, name: str) -> bytes:
        data = self._files.get(name)
        if data is None:
            raise InvalidArgument(f"Flink's state: a part of the state of {state.operator} is missing: {name}")
        return bytes(data)

    def note_ended(self, partitions: Mapping[str, Any]) -> None:
        """Partitions that have been read, each once: there may be many of them."""
        for name, position in partitions.items():
            self._files.put(f"{_ENDED}{name}", json.dumps(position).encode())

    def ended(self) -> dict[str, Any]:
        """All of them."""
        every = self._files.keys()
        names = [name for name in every if name.startswith(_ENDED)]
        return {name.removeprefix(_ENDED): json.loads(bytes(self._files.get(name) or b"")) for name in names}

    def write(self, about: Mapping[str, Any], snapshot: OperatorState | None, operator: str) -> None:
        """operator: its name."""
        state = None
        if snapshot is not None:
            before = () if self._last is None else self._last.parts
            self._number += 1
            staged = StagedState(operator, snapshot, before, "head", f"parts {self._number}")
            staged.store(_MapWriting(self._files))
            state = staged.file
            staged.committed()
            for file in before:
                if file not in state.parts:
                    self._files.remove(file.name)
            self._last = state
        described = None if state is None else state.model_dump(mode="json")
        self._value.update(json.dumps({"number": self._number, "about": about, "state": described}).encode())


class _MapWriting:
    """Flink's map takes what a checkpoint would write into its store."""

    def __init__(self, files: FileMap) -> None:
        self._files = files

    def put(self, name: str, data: Data) -> None:
        self._files.put(name, bytes(data))

    def write(self, name: str, write: Callable[[IO[bytes]], None]) -> None:
        file = io.BytesIO()
        write(file)
        self._files.put(name, file.getvalue())
