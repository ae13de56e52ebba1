"""What workers may say, as types. Whatever else comes is refused, with the reason.

    reports = parsed("reports", body)[0].report("job_1", 3)

Guarantees: whose report it is says the path that the worker's secret opens, not the message. A report has only events
that a worker can know, numbers that the database can store, and text without what a database refuses. A field of a
newer worker is left out, and numbers of an older one are brought up to date.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pydantic

from ..database.history import storable
from ..preview_rows import Shown
from ..reports import CheckpointReport, JobNumbers, upgraded
from ..states import Event
from ..task import JobReport

_LARGEST = 2**31 - 1
_Number = Annotated[int, pydantic.Field(ge=0, le=_LARGEST)]


class InvalidMessage(Exception):
    """A message that is not understood. The text says why."""


def _cleaned(value: Any) -> Any:
    return storable(value) if isinstance(value, str) else value


Text = Annotated[str, pydantic.BeforeValidator(_cleaned)]


class _Message(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


def _numbers(value: Any) -> Any:
    return upgraded(value) if isinstance(value, dict) else value


class Said(_Message):
    """A report."""

    event: Literal["started", "finished", "saved", "cut off", "lost", "wrong"] | None = None
    tasks: _Number | None = None
    message: Text = ""
    details: Text = ""
    domain: Literal["user", "external", "internal"] = "internal"
    outage: Text = ""
    numbers: Annotated[JobNumbers, pydantic.BeforeValidator(_numbers)] | None = None
    checkpoint: CheckpointReport | None = None
    shown: tuple[Shown, ...] = ()
    epoch: _Number = 0
    retained: tuple[_Number, ...] = ()

    def report(self, job_id: str, generation: int) -> JobReport:
        fields: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        if self.numbers is not None:
            fields["numbers"] = self.numbers | {"generation": generation}
        return JobReport(job_id, generation, **fields | {"event": None if self.event is None else Event(self.event)})


class OrdersRequest(_Message):
    """For orders. of: the list of orders of which `seen` were seen."""

    of: str
    seen: _Number


_REPORTS = pydantic.TypeAdapter(list[Said])


def reports(body: Any) -> list[Said]:
    """Raises Refused."""
    try:
        return _REPORTS.validate_python(body)
    except (pydantic.ValidationError, RecursionError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidMessage(_why(error)) from error


def asked(body: Any) -> OrdersRequest:
    """Raises Refused."""
    try:
        return OrdersRequest.model_validate(body)
    except pydantic.ValidationError as error:
        raise InvalidMessage(_why(error)) from error


def _why(error: Exception) -> str:
    """Without the values, which may be rows of users."""
    if isinstance(error, pydantic.ValidationError):
        return "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()[:3])
    return repr(error)[:200]
