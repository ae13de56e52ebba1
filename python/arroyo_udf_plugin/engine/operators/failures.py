"""Why rows have failed: how many in each kind, and the first row of each.

Two rows fail in the same way if their texts begin alike: `ValueError: only 7 votes` and `ValueError: only 3 votes` are
of the kind `ValueError`; `user 7 not found` is of the kind `user # not found`.

Guarantees: there are at most `MOST_KINDS` and one for the others, whatever functions write.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import printable

MOST_KINDS = 20
_OTHERS = "others"


@dataclasses.dataclass(frozen=True)
class FailedRows:
    """A kind. function: that has failed; None: the rows could not be read. rows: how many.

    file, row, text: of the first one; file: None: the rows have none.
    """

    function: str | None
    kind: str
    rows: int
    file: str | None
    row: int
    text: str

    @property
    def message(self) -> str:
        """The first one, for people, in one line, without control characters."""
        place = f"row {self.row}" if self.file is None else f"{self.file}, row {self.row}"
        return printable(f"{place}: {self.text.partition(chr(10))[0]}")

    def and_more(self, rows: int) -> FailedRows:
        return dataclasses.replace(self, rows=self.rows + rows)


class Failures:
    """Of one function or source so far. Any thread may add and look. hidden: a text without what nobody may read."""

    def __init__(self, hidden: Callable[[str], str] = str) -> None:
        self._hidden = hidden
        self._kinds: dict[str, FailedRows] = {}
        self._lock = threading.Lock()

    def add(self, letters: pa.RecordBatch) -> list[FailedRows]:
        """letters: the failed rows, with the columns of `host.policy.LETTER`. Returns those of a new kind."""
        if not letters.num_rows:
            return []
        kinds = _kinds_of(letters.column("failed_error"))
        new = []
        with self._lock:
            for counted in pc.value_counts(kinds).to_pylist():
                kind, rows = counted["values"], counted["counts"]
                name = kind if kind in self._kinds or len(self._kinds) < MOST_KINDS else _OTHERS
                if name in self._kinds:
                    self._kinds[name] = self._kinds[name].and_more(rows)
                else:
                    self._kinds[name] = self._failure(name, rows, letters.slice(pc.index(kinds, kind).as_py(), 1))
                    new.append(self._kinds[name])
        return new

    def _failure(self, kind: str, rows: int, first: pa.RecordBatch) -> FailedRows:
        names = ("function", "file", "row", "error")
        function, file, row, text = (first.column(f"failed_{name}")[0].as_py() for name in names)
        return FailedRows(function, self._hidden(kind), rows, file, row, self._hidden(text))

    @property
    def so_far(self) -> tuple[FailedRows, ...]:
        """In the order of their first rows."""
        return tuple(self._kinds.values())


def together(several: Iterable[Sequence[FailedRows]]) -> tuple[FailedRows, ...]:
    """Those of several slices as one."""
    kinds: dict[tuple[str | None, str], FailedRows] = {}
    for failure in (failure for failures in several for failure in failures):
        key = failure.function, failure.kind
        kinds[key] = kinds[key].and_more(failure.rows) if key in kinds else failure
    return tuple(kinds.values())


def _kinds_of(texts: pa.Array) -> pa.Array:
    beginnings = pc.replace_substring_regex(texts, r"(?s)(: |\n).*", "")
    return pc.replace_substring_regex(beginnings, r"\b\d+(\.\d+)?\b", "#")
