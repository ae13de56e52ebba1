"""What all kinds of operators have: `DescribedOperator`; `WaitingOperator`, if rows wait for the watermark.

A kind says what it becomes in a chain (`build`), and nothing else knows its keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol

import pyarrow as pa
import pydantic

from ....host.function import Function
from ....host.policy import Policy
from ...connectors.cells import CellType
from ...connectors.described import Bytes, Described, Seconds
from ...operators.blocks import Columns, Given
from ...operators.calls import Call, PlacedCall
from ...operators.group_stage import GroupPlan
from ...operators.lookup import LookupPlan
from ...operators.queried import QueryPlan
from ...windows.key_groups import Asked
from ...windows.storage import StorageLimits
from ..lines import Key
from ..problems import Problems

_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
Name = Annotated[str, pydantic.Field(pattern=_NAME, max_length=100)]
Merging = Callable[[pa.RecordBatch, int], pa.RecordBatch]
"""Rows of an input, as an operator with several takes them."""
Stages = Sequence[PlacedCall | QueryPlan | LookupPlan] | GroupPlan


class Building(Protocol):
    """A chain while it is built, as the kinds see it. place: of the operator among all."""

    problems: Problems
    origin: pa.Schema

    def name(self, place: int) -> str: ...

    def key_of_calls(self, place: int) -> bytes:
        """What makes idempotency keys those of this operator."""

    def later_key(self, place: int) -> bytes | None:
        """The same, if functions may be called for its rows later."""

    def before(self, place: int) -> Columns | None:
        """The columns that it gets; None: unknown, because something before it is wrong."""

    def inputs(self, place: int) -> list[Columns | None]:
        """The same of each of several."""

    def needs_time(self, place: int, why: str) -> None:
        """A problem for each source of its rows that has no event time."""

    def merges(self, place: int, merging: Merging) -> None:
        """How it takes rows of several inputs."""

    def add(self, place: int, stages: Stages, schema: pa.Schema) -> None:
        """What it becomes, and the columns behind it."""

    def functions_of(self, place: int, operator: DescribedOperator) -> Mapping[str, Function] | None:
        """Those that a `WholeQuery`, or `Windows`, calls, by name; None: there are problems."""

    def add_functions(self, place: int, operator: DescribedOperator) -> None:
        """`Functions`, in a row with those before and behind it, which add to the same rows."""


class DescribedOperator(Described):
    if TYPE_CHECKING:
        type: str

    inputs_key: ClassVar[str] = ""
    """Of one with several inputs: the keys that name them, for people."""
    exchanges: ClassVar[bool] = False
    """Whether slices exchange rows in front of it, so that those of one key are in one slice."""
    adds_to_rows: ClassVar[bool] = False
    """Whether it adds columns to the same rows, and calls functions for them."""
    is_query: ClassVar[bool] = False
    """Whether it only computes: to do it again costs no call."""
    is_over_all_rows: ClassVar[bool] = False
    """Whether it answers when its inputs have ended."""
    edges: ClassVar[Sequence[str] | None] = None
    """What Arroyo calls the ways from its inputs; None: by where it works."""

    name: Name | None = None
    """For views and checkpoints; default: the plugin's file name, or the type."""
    after: str | None = None
    """The operator whose rows it gets, or "source", or one of `sources`; default: the one before it."""

    def named_inputs(self) -> Sequence[tuple[Key, str]] | None:
        """The operators or sources whose rows it gets, each with its key; None: `after` says it."""
        return None

    @property
    def default_name(self) -> str:
        return self.type

    @property
    def gathers(self) -> bool:
        """Whether it needs all rows together, without keys: it works in the first slice, for all slices."""
        return False

    @property
    def is_of_one_time(self) -> bool:
        """Whether it makes something of rows with the same event time."""
        return False

    @property
    def makes_several(self) -> bool:
        """Whether a row may become several."""
        return False

    @property
    def policy(self) -> Policy:
        """What happens to failed rows."""
        return Policy()

    def asked(self, data: Mapping[str, Any]) -> Any:
        """Of its description as data: what must be the same for a resume, without names and policies."""
        return {name: value for name, value in data.items() if name not in _NOT_ASKED}

    def names_taken(self) -> set[str] | None:
        """The names of the columns that it takes, and perhaps of others; None: all."""
        return None

    def build(self, building: Building, place: int) -> None:
        """Adds what it becomes to the chain, or problems."""
        raise NotImplementedError

    def explained(self, schema: pa.Schema | None, calls: Iterable[Call]) -> Iterator[str]:
        """Lines for people. schema: behind it. calls: of its functions."""
        assert schema is not None
        yield from lines_of_columns(schema)

    def node(self, calls: Iterable[Call]) -> str:
        """What Arroyo calls such an operator."""
        raise NotImplementedError

    def label(self, name: str) -> str:
        """How clients show it."""
        return name


_NOT_ASKED = frozenset(
    (
        *("name", "functions", "isolation", "workers"),
        *("on_error", "on_late", "allowed_lateness", "max_drift", "memory_limit", "disk_limit"),
    )
)


class WaitingOperator(DescribedOperator):
    """An operator whose rows wait until the watermark has passed their window."""

    exchanges: ClassVar[bool] = True
    later: ClassVar[frozenset[str]] = frozenset({"allowed_lateness"})

    on_error: Literal["fail", "drop", "dead_letter"] = "fail"
    """What happens to a row whose event time is null, or before 1678 or after 2261."""
    on_late: Literal["drop", "dead_letter"] = "drop"
    """What happens to a late row: the watermark has passed all its windows. Late rows are counted, too."""
    allowed_lateness: Seconds = 0.0
    """For how long a window stays open after the watermark has passed its end. Its results leave after that time."""
    max_drift: Seconds = 60.0
    """By how much event time one of its sources may be ahead of the slowest: then it waits. So do partitions of one
    source that are read side by side."""
    memory_limit: Bytes = StorageLimits.memory
    """How much memory open windows may use, such as "1GiB"; the rest is in files without a name, in TMPDIR."""
    disk_limit: Bytes = StorageLimits.disk
    """How large these files may be; above that the pipeline fails."""

    def build_waiting(self, building: Building, place: int, asked: Asked, given: Given, schema: pa.Schema) -> None:
        """asked: what it does. given: its rows. schema: of its results."""
        plan = GroupPlan(
            building.name(place),
            asked,
            given,
            Policy(self.on_error),
            StorageLimits(self.memory_limit, self.disk_limit),
            building.later_key(place),
            round(self.allowed_lateness * 1e9),
            self.on_late,
        )
        building.add(place, plan, schema)


def lines_of_columns(schema: pa.Schema) -> Iterator[str]:
    """A line with name and type for each."""
    width = max(map(len, schema.names), default=0)
    return (f"    {field.name:{width}}  {type_text(field.type)}" for field in schema)


def lines_of_aggregates(aggregates: Mapping[str, str], schema: pa.Schema) -> Iterator[str]:
    """The same, with what those are that are computed."""
    width = max(map(len, schema.names))
    for field in schema:
        text = aggregates.get(field.name)
        yield f"    {field.name:{width}}  {type_text(field.type)}{'' if text is None else f' = {text}'}"


def type_text(type_: pa.DataType) -> str:
    return "text" if isinstance(type_, CellType) else str(type_)
