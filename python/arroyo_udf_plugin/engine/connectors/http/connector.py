"""The connectors of HTTP, with their forms in the catalogue of an API.

Secrets are fields of profiles, which are sealed where an API keeps them. A table may do without a profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

import pydantic

from ..connector import CatalogueEntry, Connector, Form
from ..described import VARIABLE
from .endpoint import headers_of
from .events import EventsInput
from .polling import PollingInput
from .webhook_sink import WebhookOutput
from .webhook_source import WebhookInput

_Text = Annotated[str, pydantic.Field(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=4000)]
_Url = Annotated[_Text, pydantic.Field(min_length=1, title="Address", json_schema_extra={"format": "var-str"})]
_SECRET_HEADERS = ("authorization", "cookie", "proxy-authorization")


def _without_secrets(text: str | None) -> str | None:
    """Raises ValueError."""
    for name, value in headers_of(text).items() if text else ():
        if name.lower() in _SECRET_HEADERS and not VARIABLE.search(value):
            raise ValueError(f"{name} would be kept as it is: give it to a profile, or write ${{NAME}}, a variable")
    return text


_Headers = Annotated[
    _Text | None,
    pydantic.AfterValidator(_without_secrets),
    pydantic.Field(title="Headers that are no secrets: Name: value,Name: value"),
]
_Secret = Annotated[_Text, pydantic.Field(min_length=1, json_schema_extra={"format": "var-str"})]


class _Access(Form):
    """How we are known to the other side."""

    example: ClassVar[Mapping[str, Any]] = {"value": "Bearer TOKEN"}

    header: Annotated[str, pydantic.Field(pattern=r"^[A-Za-z0-9-]+$", title="Header with the secret")] = "Authorization"
    value: Annotated[_Secret | None, pydantic.Field(title="Its value, such as Bearer TOKEN")] = None

    @pydantic.model_validator(mode="after")
    def _has_something(self) -> Self:
        if not self.options():
            raise ValueError(f"write, for example, value = {self.example['value']!r}, or use tables without a profile")
        return self

    def options(self) -> dict[str, str]:
        return {} if self.value is None else {"headers": f"{self.header}: {self.value}"}

    def added_to(self, options: Mapping[str, str]) -> dict[str, str]:
        own = self.options()
        headers = ",".join(each["headers"] for each in (options, own) if "headers" in each)
        return {**options, **own} | ({"headers": headers} if headers else {})


class _WebhookAccess(_Access):
    """How we are known to a receiver, and senders to us."""

    secret: Annotated[_Secret | None, pydantic.Field(title="Secret that signs requests of a sink")] = None
    token: Annotated[_Secret | None, pydantic.Field(title="Token that senders to a source know")] = None

    def options(self) -> dict[str, str]:
        own = {"sink.secret": self.secret, "token": self.token}
        return {**super().options(), **{name: text for name, text in own.items() if text is not None}}

    def added_to(self, options: Mapping[str, str]) -> dict[str, str]:
        """Raises ValueError if none of it is for such a table."""
        is_source = options["type"] == "source"
        table = super().added_to(options)
        unused = ("headers", "sink.secret") if is_source else ("token",)
        fitting = {name: text for name, text in table.items() if name not in unused}
        if fitting == dict(options):
            wanted = "a token" if is_source else "a value of a header, or a secret"
            raise ValueError(f"its profile has nothing for a {options['type']}: give it {wanted}, or leave it out")
        return fitting


class _Endpoint(Form):
    endpoint: _Url
    headers: _Headers = None

    def options(self) -> dict[str, str]:
        given = self.model_dump(exclude_none=True)
        return {name: str(value) for name, value in given.items()}


class _Polling(_Endpoint):
    example: ClassVar[Mapping[str, Any]] = {"endpoint": "https://example.com/rows"}

    method: Annotated[Literal["GET", "POST", "PUT", "PATCH"] | None, pydantic.Field(title="Method")] = None
    body: Annotated[_Text | None, pydantic.Field(title="Body")] = None
    poll_interval_ms: Annotated[int | None, pydantic.Field(ge=1, title="Milliseconds between questions")] = None
    emit_behavior: Annotated[Literal["all", "changed"] | None, pydantic.Field(title="Answers that are rows")] = None

    def table_type(self) -> Literal["source", "sink"]:
        return "source"


class _Events(_Endpoint):
    example: ClassVar[Mapping[str, Any]] = {"endpoint": "https://example.com/events"}

    events: Annotated[_Text | None, pydantic.Field(title="Names of events, with commas; none: all")] = None

    def table_type(self) -> Literal["source", "sink"]:
        return "source"


class _Part(pydantic.BaseModel):
    model_config = Form.model_config


class _Sender(_Part):
    type: Literal["sink"]
    endpoint: _Url
    headers: _Headers = None

    def options(self) -> dict[str, str]:
        return {name: str(value) for name, value in self.model_dump(exclude_none=True).items()}


class _Receiver(_Part):
    type: Literal["source"]
    listen: Annotated[_Text, pydantic.Field(min_length=1, title="Listens at HOST:PORT")]
    path: Annotated[_Text | None, pydantic.Field(title="Path")] = None
    journal: Annotated[_Text, pydantic.Field(min_length=1, title="Folder in which deliveries wait")]

    def options(self) -> dict[str, str]:
        return {name: str(value) for name, value in self.model_dump(exclude_none=True).items()}


class _Webhook(Form):
    example: ClassVar[Mapping[str, Any]] = {"table_type": {"type": "sink", "endpoint": "https://example.com/hook"}}

    table: Annotated[_Receiver | _Sender, pydantic.Field(discriminator="type", alias="table_type")]

    def table_type(self) -> Literal["source", "sink"]:
        return self.table.type

    def options(self) -> dict[str, str]:
        return self.table.options()


_ICON = "M4 12a8 8 0 1 0 16 0a8 8 0 1 0-16 0M4 12h16M12 4c-6 5-6 11 0 16c6-5 6-11 0-16"
_ACCESS: Mapping[str, Any] = {"profile": _Access, "secrets": ("value",), "icon": _ICON}
CONNECTORS = (
    Connector(
        "polling_http",
        source=PollingInput,
        entry=CatalogueEntry("Polling HTTP", "An address that is asked again and again", _Polling, **_ACCESS),
    ),
    Connector(
        "sse",
        source=EventsInput,
        entry=CatalogueEntry("Server-sent events", "Events that an address sends", _Events, **_ACCESS),
    ),
    Connector(
        "webhook",
        source=WebhookInput,
        sink=WebhookOutput,
        entry=CatalogueEntry(
            "Webhook",
            "Rows that are sent, to an address or to this one",
            _Webhook,
            profile=_WebhookAccess,
            secrets=("value", "secret", "token"),
            icon=_ICON,
        ),
    ),
)
