"""The base of what a person may write in a pipeline's description: `Described`; `Input` of sources, `Output` of sinks.

A text may hold `${NAME}`, an environment variable. It stays as it is written in the description and is replaced only in
the copy that is used (pipeline/variables.py). A key whose texts are checked has `or_variable`, so that such a text
passes until then.
"""

from __future__ import annotations

import abc
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar

import pydantic

from ...author.options import bytes_of, seconds_of
from ...errors import InvalidArgument
from ..attribute_docs import Documented

if TYPE_CHECKING:
    import pyarrow as pa

    from .interface import Fate, Sink, Source, Stage
    from .options import Writing
    from .table_options import TableOptions

VARIABLE = re.compile(r"\$(\$?)\{([^}]*)\}")
"""`${NAME}`, with NAME as second group. `$${NAME}` is the text `${NAME}` itself, and has a first group."""

Item = TypeVar("Item")


class Described(Documented):
    """A part of a description: unknown keys are refused, values are not converted between kinds, and nothing changes
    after it has been checked."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)

    later: ClassVar[frozenset[str]] = frozenset()
    """Keys that came after checkpoints had been written without them: they are told only if they are set."""

    @pydantic.model_serializer(mode="wrap")
    def _serialized(self, handler: pydantic.SerializerFunctionWrapHandler) -> dict[str, object]:
        # Not `Any`: pydantic 2.10 looks for the names in the modules of subclasses.
        return {name: value for name, value in handler(self).items() if value or name not in self.later}


class Input(Described):
    """A source, as a person describes it. Each kind has a field `type`, whose only value names it in descriptions."""

    if TYPE_CHECKING:
        type: str

    metadata_keys: ClassVar[tuple[str, ...]] = ()
    """What METADATA FROM may name in SQL."""
    names_in_sql: ClassVar[Mapping[str, str]] = {}
    """Columns that have another name in SQL: the source's name for each."""

    @abc.abstractmethod
    def source(self, parallelism: int) -> Source:
        """Opens it. Raises InvalidArgument, OSError."""

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        """What CREATE TABLE describes. Raises WrongOption, and what pydantic raises."""
        raise NotImplementedError(f"{cls.__name__} is not for SQL")

    @property
    def ends(self) -> bool:
        """Whether there is a last row."""
        return True

    @property
    def connector(self) -> str:
        """The connector's name in SQL."""
        return self.type

    def partitioned(self, number: int) -> Self:
        """With so many partitions, if it has as many as there are slices: a job keeps them, whatever its parallelism is
        by then."""
        return self


class Output(Described):
    """A sink, as a person describes it. Each kind has a field `type`, whose only value names it in descriptions."""

    if TYPE_CHECKING:
        type: str

    resumable: ClassVar[bool] = True
    """Whether it can go on from a checkpoint."""

    after: str | None = None
    """The operator whose rows it gets, or "source"; default: the last one."""

    @abc.abstractmethod
    def check(self, schema: pa.Schema) -> None:
        """Whether it can take these rows; leaves nothing behind. Raises InvalidArgument, OSError."""

    @abc.abstractmethod
    def sink(self, schema: pa.Schema, slice: int, stage: Stage | None, pipeline: str, name: str) -> Sink:
        """Opens it for one slice. stage: None: without checkpoints. name: of the sink, unique in the pipeline.

        Raises InvalidArgument, OSError.
        """

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        """What CREATE TABLE describes. Raises WrongOption, and what pydantic raises."""
        raise NotImplementedError(f"{cls.__name__} is not for SQL")

    @property
    def typed(self) -> bool:
        """Whether values keep their types there: text columns of the source are parsed for it. Raises
        InvalidArgument."""
        return True

    @property
    def connector(self) -> str:
        """The connector's name in SQL."""
        return self.type

    @property
    def place(self) -> str | None:
        """The path or URL that no other output of the pipeline may have."""
        return None

    def check_free(self, schema: pa.Schema) -> None:
        """Before a run without checkpoints. Raises InvalidArgument if there are rows of another run."""

    def on_standard_output(self) -> Writing | None:
        """How it writes to standard output; None: it does not."""
        return None

    @property
    def fate(self) -> Fate:
        """Of rows behind a checkpoint to which a pipeline goes back, as far as the description tells: see
        `LaterRows`."""
        return "doubled"

    def shown(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows that it has shown so far, with all columns of the schema. Raises InvalidArgument."""
        raise InvalidArgument(f"rows of a sink of the type {self.type} cannot be read: use parts or table")


def _or_variable(value: Any, check: pydantic.ValidatorFunctionWrapHandler) -> Any:
    return value if isinstance(value, str) and VARIABLE.search(value) else check(value)


or_variable = pydantic.WrapValidator(_or_variable)
"""`Annotated[float, ..., or_variable]`: the value may also be a text with a variable."""


def _seconds(value: Any) -> Any:
    try:
        return seconds_of(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError(
            "write seconds as a number, or a text with a unit (ns, us, ms, s, min, h or d), such as '10s' or '500ms'"
        ) from None


_or_text = pydantic.BeforeValidator(_seconds, json_schema_input_type=float | str)
Seconds = Annotated[float, pydantic.Field(ge=0, le=1e9, allow_inf_nan=False), _or_text, or_variable]
"""A time: a number of seconds, or a text such as "10s" or "500ms"."""
Period = Annotated[float, pydantic.Field(gt=0, le=1e9, allow_inf_nan=False), _or_text, or_variable]
"""A time after which something is done again."""


def _bytes(value: Any) -> Any:
    try:
        return bytes_of(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("write bytes as a whole number, or a text with a unit, such as '512MiB' or '2GB'") from None


Bytes = Annotated[
    int,
    pydantic.Field(ge=1, lt=1 << 63),
    pydantic.BeforeValidator(_bytes, json_schema_input_type=int | str),
    or_variable,
]
"""A size: a number of bytes, or a text such as "512MiB"."""

if TYPE_CHECKING:
    Several = Sequence
    """What a program may pass; it becomes a tuple."""
else:
    Several = Annotated[tuple[Item, ...], pydantic.Field(strict=False)]
    """Several values; TOML and JSON write them as a list."""
