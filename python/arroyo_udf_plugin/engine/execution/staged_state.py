"""An operator's state on its way into the store: a head, and one new file with those parts that no file has yet.

    staged = StagedState(operator, snapshot, files, head_name, parts_name)    files: of the epoch before
    staged.store(store)                                                       step 2
    staged.committed()                                                        behind step 3: parts know their places

Files never change. What is over stays in them until less than half of a file is needed; then the rest is written anew.
So is what many files of one size have, into one: the number of files grows with the logarithm of the state, and a row
is written again a few times in its life.

Guarantees: what is written is neither assembled in memory nor copied on its way. If an epoch is not committed, the next
one writes its parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import IO, Protocol, cast

from ..connectors.summed import Summed
from ..connectors.unnamed import Data
from ..windows.kept import KeptRows, PartPlace
from .manifest import PartsFile, StateFile
from .snapshot import OperatorState

MOST_FILES = 8  # of one size; sizes differ by a factor of four
_SMALL = 1 << 16  # bytes; all smaller files have one size


class StateWriting(Protocol):
    """Of a store: see `Store`."""

    def put(self, name: str, data: Data) -> None: ...
    def write(self, name: str, write: Callable[[IO[bytes]], None]) -> None: ...


class StagedState:
    """operator: its name. files: that the epoch before needs. name, parts_name: of the head and of the new file."""

    def __init__(
        self, operator: str, snapshot: OperatorState, files: Iterable[PartsFile], name: str, parts_name: str
    ) -> None:
        self._snapshot, self._parts_name = snapshot, parts_name
        by_sum = {file.sha256: file for file in files}
        live: Counter[str] = Counter()
        has_new = False
        for one in snapshot.parts:
            if one.part.place is not None and one.part.place.file in by_sum:
                live[one.part.place.file] += one.num_rows
            else:
                has_new = True
        stay = live.keys() - _rewritten(live, by_sum, has_new)
        # In the order of before, and the new one last: a state that has not changed is written with the same bytes.
        self._files = {sha256: file for sha256, file in by_sum.items() if sha256 in stay}
        self._new: list[KeptRows] = []
        places = list(map(self._place, snapshot.parts))
        numbers = {sha256: number for number, sha256 in enumerate(self._files)}
        self._head = snapshot.head(
            [(len(numbers) if sha256 is None else numbers[sha256], number) for sha256, number in places]
        )
        self._file = StateFile.of(operator, name, self._head)
        self._new_file: PartsFile | None = None
        self._is_stored = False

    def _place(self, one: KeptRows) -> tuple[str | None, int]:
        """Its file, and its number there; None: the new one."""
        place = one.part.place
        if place is not None and place.file in self._files:
            return place.file, place.number
        self._new.append(one)
        return None, len(self._new) - 1

    @property
    def has_new(self) -> bool:
        """Whether there are parts to write."""
        return bool(self._new)

    @property
    def file(self) -> StateFile:
        """What the epoch needs. Once it is stored, with the new file."""
        new = () if self._new_file is None else (self._new_file,)
        return self._file.model_copy(update={"parts": (*self._files.values(), *new)})

    @property
    def written(self) -> int:
        """In bytes."""
        return self._file.size + (0 if self._new_file is None else self._new_file.size)

    @property
    def own_names(self) -> list[str]:
        """Of the files that only this epoch has."""
        return [self._file.name, *([self._parts_name] if self._new else [])]

    def store(self, store: StateWriting) -> None:
        """Can be repeated, until it has succeeded."""
        if self._is_stored:
            return
        if self._new and self._new_file is None:
            summed = Summed()
            store.write(self._parts_name, partial(self._write, summed))
            rows = sum(one.num_rows for one in self._new)
            self._new_file = PartsFile(name=self._parts_name, size=summed.size, sha256=summed.sum, rows=rows)
        store.put(self._file.name, self._head)
        self._is_stored = True

    def _write(self, summed: Summed, file: IO[bytes]) -> None:
        summed.begin(file)
        self._snapshot.write_parts(cast(IO[bytes], summed), self._new)

    def committed(self) -> None:
        """The epoch has happened."""
        if self._new_file is not None:
            for number, one in enumerate(self._new):
                one.part.place = PartPlace(self._new_file.sha256, number)


def _rewritten(live: Mapping[str, int], files: Mapping[str, PartsFile], has_new: bool) -> set[str]:
    """Which files are not worth being kept. live: of each, the rows that are needed. has_new: there is a new file in
    any case."""
    sparse = {sha256 for sha256, rows in live.items() if 2 * rows < files[sha256].rows}
    if not (has_new or sparse):
        return set()
    sizes = {sha256: max(files[sha256].size, _SMALL).bit_length() // 2 for sha256 in live.keys() - sparse}
    many = {size for size, number in Counter(sizes.values()).items() if number >= MOST_FILES}
    return sparse | {sha256 for sha256, size in sizes.items() if size in many}
