"""Functions of a plugin, each of which adds its result as a column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pyarrow as pa
import pydantic

from ....author.options import OPTIONS
from ....host.isolation import MOST_WORKERS, Isolation
from ....host.policy import Action, Policy
from ...connectors.described import Bytes, Several
from ...operators.calls import Call
from .kind import Building, DescribedOperator, type_text


def _workers(value: object) -> object:
    """A number or "auto". Refused here, because pydantic would tell of each alternative by itself."""
    if value != "auto" and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_WORKERS):
        raise ValueError(f'write a number from 1 to {MOST_WORKERS}, or "auto" for one per core')
    return value


Workers = Annotated[int | Literal["auto"], pydantic.BeforeValidator(_workers)]


class Functions(DescribedOperator):
    """An operator: functions of one plugin, each of which adds its result as a column."""

    adds_to_rows: ClassVar[bool] = True

    type: Literal["functions"] = "functions"
    plugin: str
    """A plugin, or a source (.py, .rs or .c), which is built if it is new or has changed."""
    calls: Annotated[Several[str], pydantic.Field(min_length=1)]
    """NAME = FUNCTION(COLUMN, ...), one after another. An argument may be a constant: 3, 'text', true, false, null.
    With `if COLUMN` behind it, only rows are called for which that column is true; the others get null."""
    on_error: Action = "fail"
    """What happens to a failed row."""
    on_timeout: Action = "fail"
    """What happens to a timed-out row."""
    options: Annotated[
        dict[str, Any],
        pydantic.Field(json_schema_extra={"properties": {name: {} for name in OPTIONS}}),
    ] = pydantic.Field(default_factory=dict)
    """Of the async functions, such as timeout = "2s"; they override the author's. Under a function's name are those of
    this one alone, such as town = { timeout = "5s" }."""
    isolation: Isolation = "thread"
    """Where the functions run: "thread", "subinterpreter" or "process"."""
    workers: Workers = 1
    """How many interpreters or processes each slice has; "auto": the cores, divided by the slices."""
    memory_limit: Bytes | None = None
    """The memory that each worker process may have of its own, such as "512MiB"."""
    cpu_limit: Annotated[int, pydantic.Field(ge=1)] | None = None
    """The seconds of processor time that each worker process may use."""

    @property
    def default_name(self) -> str:
        return Path(self.plugin).stem.removeprefix("lib")

    @property
    def policy(self) -> Policy:
        return Policy(self.on_error, self.on_timeout)

    def asked(self, data: Mapping[str, Any]) -> Any:
        return data["calls"] if data["after"] is None else {"after": data["after"], "calls": data["calls"]}

    def build(self, building: Building, place: int) -> None:
        building.add_functions(place, self)

    def explained(self, schema: pa.Schema | None, calls: Iterable[Call]) -> Iterator[str]:
        for text, call in zip(self.calls, calls, strict=True):
            yield f"    {text}    {call.function.kind}, {call.name}: {type_text(call.function.returns)}"

    def node(self, calls: Iterable[Call]) -> str:
        return "AsyncUdf" if any(call.function.kind == "async" for call in calls) else "ArrowValue"

    def label(self, name: str) -> str:
        return f"{name}: {', '.join(self.calls)}"
