"""The file for rows whose policy is dead_letter.

    with DeadLetters("dead.parquet", function) as letters:
        decided = policy.apply(results, function)
        letters.write(decided.dead, arguments)             arguments: of the rows decided.dead_at

Guarantees: the file appears only if its `with` block ends without an exception, even without dead letters. It can be
replayed: its first columns are the arguments, with their names and the function's types.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from .connectors.formats import kind_of
from .connectors.sink import FileSink
from .errors import InvalidArgument
from .host.function import Function
from .host.policy import LETTER


class DeadLetters:
    """The file of one function's dead letters, .parquet, .arrow, .feather or .arrows.

    columns: the arguments' names in the file, one per argument; default: the function's. A column that serves two
    arguments is written once.
    Raises InvalidArgument for a file that cannot be written, and for names that clash.
    """

    def __init__(self, path: str | os.PathLike[str], function: Function, columns: Sequence[str] | None = None) -> None:
        path = Path(path)
        if kind_of(str(path), None, "").is_text:
            typed = ".parquet, .arrow, .feather, .arrows"
            raise InvalidArgument(f"{path}: dead letters keep their types, so the file must end in one of {typed}")
        names = list(function.arguments.names if columns is None else columns)
        arguments: dict[str, pa.DataType] = {}
        self._positions: list[int] = []  # of the arguments that are written
        for position, (name, type_) in enumerate(zip(names, function.arguments.types, strict=True)):
            if name in LETTER.names:
                raise InvalidArgument(
                    f"{path}: dead letters have a column {name!r} of their own: rename the argument's"
                )
            if name not in arguments:
                arguments[name] = type_
                self._positions.append(position)
            elif arguments[name] != type_:
                raise InvalidArgument(
                    f"{path}: column {name!r} is an argument as {arguments[name]} and as {type_}, but dead letters "
                    "can hold only one of them: give the function two columns"
                )
        self._schema = pa.schema([*arguments.items(), *LETTER])
        self._writer = FileSink(path, self._schema)

    def write(self, dead: pa.RecordBatch, arguments: Sequence[pa.Array]) -> None:
        """Adds dead letters (`Decided.dead`) with their arguments, one array per argument of the function."""
        columns = [arguments[position] for position in self._positions]
        self._writer.write(pa.RecordBatch.from_arrays([*columns, *dead.columns], schema=self._schema))

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, trace)
