"""What a run notes for `replay`: in its dead letters, and beside its output, in the file OUT.rows.

OUT.rows (Parquet) has a row for each row of OUT, in the same order: the file and number that it had in the input, and
whether the latest replay has added it. It exists only if the run has a file for dead letters, and its rows are none.
Dead letters among the rows would keep their columns in OUT, and a replay has none for the rows that it adds.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from ...host.policy import Action
from ..connectors.options import Reading, Writing
from ..connectors.sink import FileSink
from ..connectors.source import FileSource
from ..operators.blocks import KEY
from ..operators.calls import ConstantArgument


@dataclasses.dataclass(frozen=True)
class Note:
    """How a run was made.

    run: 32 random hexadecimal digits; its dead letters and its output have the same. inputs: their names, in order.
    plugin: as the user named it, as an absolute path. calls: function, columns and name of each.
    options, on_error, on_timeout: as given. writing: how the output is written. where: where the functions ran, as
    arguments of `load`; runs of earlier versions have noted none.
    """

    run: str
    inputs: tuple[str, ...]
    plugin: str
    calls: tuple[tuple[str, tuple[str | ConstantArgument, ...], str], ...]
    options: Mapping[str, Any]
    on_error: Action
    on_timeout: Action
    writing: Mapping[str, Any]
    where: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def metadata(self) -> dict[str, str]:
        """For the schema of a file."""
        return {KEY.decode(): json.dumps(dataclasses.asdict(self))}

    @classmethod
    def of(cls, schema: pa.Schema) -> Self | None:
        """The note in a file's schema; None if there is none, because another program has written the file."""
        note = (schema.metadata or {}).get(KEY)
        if note is None:
            return None
        given = json.loads(note)
        calls = tuple(
            (function, tuple(map(_argument, columns)), name) for function, columns, name in given.pop("calls")
        )
        return cls(calls=calls, **{name: _tuples(value) for name, value in given.items()})

    def how_written(self) -> Writing:
        return Writing(**self.writing)

    def how_to_read(self) -> Reading:
        """Reads the output as it was written."""
        written = self.how_written()
        same = ("format", "null_values", "delimiter", "quote", "header", "decimal_mark")
        return Reading(cells=True, **{name: getattr(written, name) for name in same})


def _argument(noted: Any) -> str | ConstantArgument:
    return ConstantArgument(**noted) if isinstance(noted, dict) else str(noted)


def _tuples(value: Any) -> Any:
    """JSON's lists as the tuples that they were."""
    if isinstance(value, dict):
        return {name: _tuples(item) for name, item in value.items()}
    return tuple(value) if isinstance(value, list) else value


# ---- OUT.rows --------------------------------------------------------------------------------------------------------

_ROWS = pa.schema([("file", pa.string()), ("row", pa.uint64()), ("added", pa.bool_())])


def beside(output: Path) -> Path:
    """The file of the output's row numbers."""
    return output.with_name(output.name + ".rows")


def is_ours(path: Path) -> bool:
    """Whether a file has row numbers: then it may be replaced or removed with its output."""
    try:
        with pa.OSFile(os.fsencode(path)) as file:
            import pyarrow.parquet  # here, because most outputs have no such file

            return Note.of(pyarrow.parquet.read_schema(file)) is not None
    except (OSError, pa.ArrowException, ValueError):
        return False


class RowNumbers:
    """Writes OUT.rows. As a `FileSink`, it appears when it is complete. Raises InvalidArgument if another file has its
    name."""

    def __init__(self, output: Path, note: Note) -> None:
        path = beside(output)
        if path.exists() and not is_ours(path):
            raise InvalidArgument(f"{path} is the file for the row numbers of {output}, and something else: move it")
        self._schema = _ROWS.with_metadata(note.metadata())
        self._sink = FileSink(path, self._schema, Writing(format="parquet", compression="zstd"))

    def write(self, origin: pa.RecordBatch) -> None:
        self.write_columns(origin.column("file"), origin.column("row"), pa.repeat(False, origin.num_rows))

    def write_columns(self, *columns: pa.Array) -> None:
        self._sink.write(pa.RecordBatch.from_arrays(list(columns), schema=self._schema))

    def __enter__(self) -> Self:
        self._sink.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sink.__exit__(kind, error, trace)


def row_numbers(output: Path) -> FileSource:
    """OUT.rows, to read."""
    return FileSource([beside(output)], Reading(format="parquet"))


class Order:
    """The order of rows over all inputs of a run: by file, then by number."""

    def __init__(self, inputs: tuple[str, ...]) -> None:
        self._files = list(inputs)

    def keys(self, rows: pa.RecordBatch) -> pa.UInt64Array:
        """A number per row, which rises with the order. rows: with the columns "file" and "row"."""
        files = rows.column("file")
        index = pc.index_in(files, value_set=pa.array(self._files, pa.string()))
        if index.null_count:
            self._files += [file for file in pc.unique(files).to_pylist() if file not in self._files]
            index = pc.index_in(files, value_set=pa.array(self._files, pa.string()))
        return pc.add(pc.shift_left(index.cast(pa.uint64()), pa.scalar(40, pa.uint64())), rows.column("row"))
