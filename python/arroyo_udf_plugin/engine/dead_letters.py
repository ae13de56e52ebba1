"""The file for rows whose policy is dead_letter.

    with DeadLetters("dead.parquet", columns) as letters:            columns: their fields
        decided = policy.apply(results, function)
        letters.write(decided.dead, rows.take(decided.dead_at))      rows: with these columns

Guarantees: the file appears only if its `with` block ends without an exception, even without dead letters. Its columns
are the rows' own, with their types, and those of `LETTER`. It can be run again as it is: dead letters of dead letters
have the columns of the first row, and the file and number that it had there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from ..errors import InvalidArgument
from ..host.policy import LETTER
from .connectors.sink import FileSink

ENDINGS = (".parquet", ".arrow", ".feather", ".arrows")


class DeadLetters:
    """A file of dead letters, .parquet, .arrow, .feather or .arrows.

    columns: of the rows, such as `function.arguments`. metadata: further notes for the file's schema.
    Raises InvalidArgument for a file that cannot be written, and for names that clash.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Iterable[pa.Field],
        metadata: Mapping[str, str] | None = None,
        inputs: Sequence[Path] = (),
    ) -> None:
        path = Path(path)
        if path.suffix.lower() not in ENDINGS:
            raise InvalidArgument(
                f"{path}: dead letters keep their types, so the file must end in one of {', '.join(ENDINGS)}"
            )
        columns = list(columns)
        for name in (field.name for field in columns):
            if name in LETTER.names:
                raise InvalidArgument(f"{path}: dead letters have a column {name!r} of their own: rename the row's")
        self._schema = pa.schema([*columns, *LETTER], dict(metadata or {}))
        self._sink = FileSink(path, self._schema, inputs=inputs)

    def write(self, dead: pa.RecordBatch, rows: pa.RecordBatch | Sequence[pa.Array]) -> None:
        """Adds dead letters (`Decided.dead`) with their rows: the columns of each."""
        columns = rows.columns if isinstance(rows, pa.RecordBatch) else rows
        self._sink.write(pa.RecordBatch.from_arrays([*columns, *dead.columns], schema=self._schema))

    def __enter__(self) -> Self:
        self._sink.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sink.__exit__(kind, error, trace)
