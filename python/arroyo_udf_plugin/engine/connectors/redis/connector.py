"""The connector of Redis, with its forms in the catalogue of an API."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import pydantic

from ....author.options import bytes_of
from ..connector import CatalogueEntry, Connector, Form
from ..table_options import TableOptions, WrongOption, chosen, period_seconds
from .server import server_keys
from .sink import RedisOutput
from .source import RedisInput

_Text = Annotated[str, pydantic.Field(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=4000)]
_Address = Annotated[_Text, pydantic.Field(min_length=1, title="Address", json_schema_extra={"format": "var-str"})]
_Password = Annotated[_Text, pydantic.Field(title="Password", json_schema_extra={"format": "var-str"})]


def _lookup(options: TableOptions) -> Mapping[str, Any]:
    """The keys of `Lookup` that say where it looks."""
    format_ = options.take("format")
    if format_ is not None and format_.value != "json":
        raise WrongOption(f"format = '{format_.value}': what is looked up is json", format_.at)
    keys = [column.name for column in options.columns or () if column.metadata is not None] or options.primary_key
    if len(keys) != 1:
        raise WrongOption(
            f"table {options.table}: name its columns, and the one with the key: tail TEXT PRIMARY KEY", options.at
        )
    size = options.read("lookup.cache.max_bytes", _size, "a number of bytes, such as 8000000 or 8 MiB; 0 for no cache")
    seconds = options.read("lookup.cache.ttl", period_seconds, "a time such as 60 s or INTERVAL '1 minute'")
    prefix = options.text("lookup.key_prefix") or ""
    if "{" in prefix or "}" in prefix:
        raise WrongOption(f"lookup.key_prefix = '{prefix}': a prefix has no braces", options.at)
    return chosen(
        {
            "uri": _uri(**server_keys(options)),
            "table": f"{prefix}{{{keys[0]}}}",
            "cache_bytes": size or None,
            "cache_seconds": 0.0 if size == 0 else seconds,
        }
    )


def _size(text: str) -> int:
    return 0 if text.strip() == "0" else bytes_of(text)


def _uri(address: str, username: str | None = None, password: str | None = None) -> str:
    """The address with the user."""
    if username is None and password is None:
        return address
    scheme, _, rest = address.partition("://")
    user = ":".join(_quoted(part or "") for part in (username, password))
    return f"{scheme}://{user}@{rest.rpartition('@')[2]}"


def _quoted(text: str) -> str:
    return text if "${" in text else urllib.parse.quote(text, safe="")


class _Part(pydantic.BaseModel):
    model_config = Form.model_config


class _Stream(_Part):
    type: Literal["source"]
    stream: Annotated[_Text, pydantic.Field(min_length=1, title="Stream")]
    offset: Annotated[Literal["latest", "earliest"], pydantic.Field(title="Begins with")] = "latest"

    def options(self) -> dict[str, str]:
        return {"type": "source", "stream": self.stream, "source.offset": self.offset}


class _Target(_Part):
    type: Literal["sink"]
    target: Annotated[Literal["string", "hash", "list", "stream"], pydantic.Field(title="A row becomes")]
    key_prefix: Annotated[_Text, pydantic.Field(title="Prefix of keys")] = ""
    key_column: Annotated[_Text | None, pydantic.Field(title="Column with the rest of the key")] = None
    field_column: Annotated[_Text | None, pydantic.Field(title="Column with the field of hashes")] = None
    ttl_secs: Annotated[int | None, pydantic.Field(ge=1, title="Seconds that strings live")] = None
    max_length: Annotated[int | None, pydantic.Field(ge=1, title="Length of lists and streams")] = None
    operation: Annotated[Literal["append", "prepend"] | None, pydantic.Field(title="End of lists")] = None

    def options(self) -> dict[str, str]:
        names = ("key_prefix", "key_column", "field_column", "ttl_secs", "max_length", "operation")
        given = {name: getattr(self, name) for name in names}
        own = {f"target.{name}": str(value) for name, value in given.items() if value not in (None, "")}
        return {"type": "sink", "target": self.target, **own}


class _Form(Form):
    example: ClassVar[Mapping[str, Any]] = {"table_type": {"type": "source", "stream": "flights"}}

    table: Annotated[_Stream | _Target, pydantic.Field(discriminator="type", alias="table_type")]

    def table_type(self) -> Literal["source", "sink"]:
        return self.table.type

    def options(self) -> dict[str, str]:
        return self.table.options()


class _Server(Form):
    example: ClassVar[Mapping[str, Any]] = {"address": "redis://localhost:6379"}

    address: _Address
    username: Annotated[_Text | None, pydantic.Field(title="User")] = None
    password: _Password | None = None

    def options(self) -> dict[str, str]:
        given = {"address": self.address, "username": self.username, "password": self.password}
        return {name: value for name, value in given.items() if value is not None}


CONNECTOR = Connector(
    "redis",
    source=RedisInput,
    sink=RedisOutput,
    lookup=_lookup,
    lookup_metadata=("key",),
    entry=CatalogueEntry(
        "Redis",
        "Streams, and keys of a Redis server",
        _Form,
        profile=_Server,
        secrets=("address", "password"),
        icon="M4 7l8-4 8 4-8 4zM4 12l8 4 8-4M4 17l8 4 8-4",
    ),
)
