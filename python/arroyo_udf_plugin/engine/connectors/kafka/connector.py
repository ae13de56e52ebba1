"""The connector of Kafka, and the forms in which an API asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

import pydantic

from ..connector import CatalogueEntry, Connector, Form
from .sink import KafkaOutput
from .source import KafkaInput

_Text = Annotated[str, pydantic.Field(pattern=r"^[^\x00-\x1f\x7f]*$", min_length=1, max_length=4000)]
_Variable = {"json_schema_extra": {"format": "var-str"}}


class _Part(pydantic.BaseModel):
    model_config = Form.model_config

    topic: Annotated[_Text, pydantic.Field(title="Topic")]
    value_subject: Annotated[
        _Text | None, pydantic.Field(title="Subject of the values' schemas, if not TOPIC-value")
    ] = None

    def _options(self, prefix: str, names: tuple[str, ...]) -> dict[str, str]:
        own = {f"{prefix}.{name}": getattr(self, name) for name in names}
        told = {"topic": self.topic, "value.subject": self.value_subject, **own}
        return {name: value for name, value in told.items() if value is not None}


class _Source(_Part):
    type: Literal["source"]
    offset: Annotated[
        Literal["latest", "earliest", "group"] | None, pydantic.Field(title="Where the first run begins")
    ] = None
    read_mode: Annotated[
        Literal["read_committed", "read_uncommitted"] | None, pydantic.Field(title="Messages of transactions")
    ] = None
    group_id: Annotated[_Text | None, pydantic.Field(title="Group that shows how far the job is")] = None

    def options(self) -> dict[str, str]:
        return {"type": "source", **self._options("source", ("offset", "read_mode", "group_id"))}


class _Sink(_Part):
    type: Literal["sink"]
    commit_mode: Annotated[Literal["exactly_once", "at_least_once"] | None, pydantic.Field(title="Deliveries")] = None
    key_field: Annotated[_Text | None, pydantic.Field(title="Column with the messages' keys")] = None
    timestamp_field: Annotated[_Text | None, pydantic.Field(title="Column with the messages' times")] = None

    def options(self) -> dict[str, str]:
        return {"type": "sink", **self._options("sink", ("commit_mode", "key_field", "timestamp_field"))}


class _Form(Form):
    example: ClassVar[Mapping[str, Any]] = {"table_type": {"type": "source", "topic": "flights", "offset": "earliest"}}

    table: Annotated[_Source | _Sink, pydantic.Field(discriminator="type", alias="table_type")]

    def table_type(self) -> Literal["source", "sink"]:
        return self.table.type

    def options(self) -> dict[str, str]:
        return self.table.options()


class _Cluster(Form):
    example: ClassVar[Mapping[str, Any]] = {"bootstrap_servers": "localhost:9092"}

    bootstrap_servers: Annotated[_Text, pydantic.Field(title="Brokers, as HOST:PORT,HOST:PORT")]
    protocol: Annotated[
        Literal["SSL", "SASL_SSL", "SASL_PLAINTEXT"] | None,
        pydantic.Field(title="Security: TLS, a user with TLS, a user without; none if it is left out"),
    ] = None
    mechanism: Annotated[
        Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None, pydantic.Field(title="How the user is checked")
    ] = None
    username: Annotated[_Text | None, pydantic.Field(title="User", **_Variable)] = None
    password: Annotated[_Text | None, pydantic.Field(title="Password", **_Variable)] = None
    ca_location: Annotated[
        _Text | None,
        pydantic.Field(title="File with the authority of the brokers' certificates"),
    ] = None
    schema_registry_endpoint: Annotated[_Text | None, pydantic.Field(title="Address of the schema registry")] = None
    schema_registry_api_key: Annotated[_Text | None, pydantic.Field(title="Its user", **_Variable)] = None
    schema_registry_api_secret: Annotated[_Text | None, pydantic.Field(title="Its password", **_Variable)] = None

    @pydantic.model_validator(mode="after")
    def _has_a_user(self) -> Self:
        wanted = (self.mechanism, self.username, self.password)
        if (self.protocol or "").startswith("SASL") and None in wanted:
            raise ValueError(f"{self.protocol} needs mechanism, username and password")
        if not (self.protocol or "").startswith("SASL") and any(wanted):
            raise ValueError("a user needs the protocol SASL_SSL or SASL_PLAINTEXT")
        if self.ca_location is not None and "," in self.ca_location:
            raise ValueError("ca_location: name a file without a comma")
        return self

    def options(self) -> dict[str, str]:
        options: dict[str, str | None] = {"bootstrap_servers": self.bootstrap_servers}
        if self.username is not None:
            options["auth.type"] = "sasl"
            options["auth.protocol"] = self.protocol
            options |= {f"auth.{name}": getattr(self, name) for name in ("mechanism", "username", "password")}
        configs = {"ssl.ca.location": self.ca_location, "security.protocol": "SSL" if self.protocol == "SSL" else None}
        options["client_configs"] = ",".join(f"{name}={value}" for name, value in configs.items() if value) or None
        for name in ("endpoint", "api_key", "api_secret"):
            options[f"schema_registry.{name}"] = getattr(self, f"schema_registry_{name}")
        return {name: value for name, value in options.items() if value is not None}


CONNECTOR = Connector(
    "kafka",
    source=KafkaInput,
    sink=KafkaOutput,
    entry=CatalogueEntry(
        "Kafka",
        "Topics of Kafka, and of brokers with its protocol",
        _Form,
        profile=_Cluster,
        secrets=("password", "schema_registry_api_secret"),
        icon="M11 2h2v5h-2zM11 17h2v5h-2zM12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM17 5h4v4h-4zM17 15h4v4h-4z",
    ),
)
