"""The base of everything that a person may write in a pipeline's description.

A text may hold `${NAME}`, an environment variable. It stays as it is written in the description and is replaced only in
the copy that is used (pipeline/variables.py). A key whose texts are checked has `or_variable`, so that such a text
passes until then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

import pydantic

from ...author.options import bytes_of, seconds_of
from ...errors import InvalidArgument

if TYPE_CHECKING:
    import pyarrow as pa

    from .interface import Fate

VARIABLE = re.compile(r"\$(\$?)\{([^}]*)\}")
"""`${NAME}`, with NAME as second group. `$${NAME}` is the text `${NAME}` itself, and has a first group."""

Item = TypeVar("Item")


class Described(pydantic.BaseModel):
    """A part of a description: unknown keys are refused, values are not converted between kinds, and nothing changes
    after it has been checked."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)

    later: ClassVar[frozenset[str]] = frozenset()
    """Keys that came after checkpoints had been written without them: they are told only if they are set."""

    @pydantic.model_serializer(mode="wrap")
    def _told(self, told: pydantic.SerializerFunctionWrapHandler) -> dict[str, object]:
        # Not `Any`: pydantic 2.10 looks for the names in the modules of subclasses.
        return {name: value for name, value in told(self).items() if value or name not in self.later}


class Output(Described):
    """A sink, as a person describes it."""

    after: str | None = None
    """The operator whose rows it gets, or "source"; default: the last one."""

    @property
    def fate(self) -> Fate:
        """Of rows behind a checkpoint to which a pipeline goes back, as far as the description tells: see
        `LaterRows`."""
        return "doubled"

    def shown(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows that it has shown so far, with all columns of the schema. Raises InvalidArgument."""
        raise InvalidArgument(
            f"rows of a sink of the type {getattr(self, 'type', '')} cannot be read: use parts or table"
        )


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
