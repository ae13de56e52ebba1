"""A topic of a Kafka cluster: how a description and SQL name it, and what the cluster says about it.

    topic.client("Consumer", {"group.id": "flights"})      a client of confluent-kafka
    admin = topic.admin()
    admin.partitions()
    admin.ask(lambda client: client.list_offsets(...))     an answer for each partition
    raise topic.refusal(error)                             what an error of Kafka means to a user

Guarantees: confluent-kafka is imported only when a client is made. No text has a password. A cluster that does not
answer is Unreachable after `PATIENCE`; a wrong password is reported at once. Nothing here makes a topic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

import pydantic

from ....errors import InvalidArgument, Unreachable
from ..described import Described
from ..location import location_of
from ..table_options import BOOLEANS, TableOptions, WrongOption, chosen
from .schema_registry import SchemaRegistry

PATIENCE = 15.0
"""Seconds for a cluster that does not answer, before anything runs."""
MOVING = (
    *("LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION", "UNKNOWN_LEADER_EPOCH", "FENCED_LEADER_EPOCH"),
    *("OFFSET_NOT_AVAILABLE", "REPLICA_NOT_AVAILABLE"),
    *("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"),
)
"""Errors while another broker takes over, or one that was restarted does."""
_LEARNING = 2.0  # seconds for a cluster that says that it has no such topic
_TURN = 0.05  # seconds between two looks for errors of a connection, or two questions
_QUIET = {"log_level": 2}  # librdkafka writes to standard error otherwise; what matters is in the errors
_OWN = {
    "bootstrap.servers": "write bootstrap_servers",
    "metadata.broker.list": "write bootstrap_servers",
    "group.id": "write group_id",
    "isolation.level": "write read_mode",
    "auto.offset.reset": "write offset",
    "enable.auto.commit": "checkpoints keep the positions",
    "enable.auto.offset.store": "checkpoints keep the positions",
    "enable.partition.eof": "the engine sets it",
    "transactional.id": "the engine names its transactions",
    "enable.idempotence": "the engine sets it",
    "plugin.library.paths": "it would load other programs",
    "ssl.engine.location": "it would load other programs",
    "sasl.kerberos.kinit.cmd": "it would run other programs",
}

Key = TypeVar("Key")
Answer = TypeVar("Answer")
JSON = ("json", "debezium_json")
KafkaFormat = Literal["json", "raw_string", "raw_bytes", "debezium_json", "avro", "protobuf"]
Refused = Literal["user", "mechanism", "certificate", "topic", "denied", "away"]
"""Why a cluster does not do what it is asked for."""


class Sasl(Described):
    """Who asks, to a cluster that wants to know."""

    protocol: Literal["SASL_SSL", "SASL_PLAINTEXT"] = "SASL_SSL"
    """With TLS or without."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    """As the cluster has it."""

    username: str
    """The user."""

    password: Annotated[str, pydantic.Field(repr=False)]
    """Write `${NAME}`, an environment variable."""

    def properties(self) -> dict[str, Any]:
        return {
            "security.protocol": self.protocol,
            "sasl.mechanism": self.mechanism,
            "sasl.username": self.username,
            "sasl.password": self.password,
        }


class KafkaTopic(Described):
    """The keys that sources and sinks have in common."""

    bootstrap_servers: Annotated[str, pydantic.Field(min_length=1)]
    """Brokers of the cluster: `HOST:PORT,HOST:PORT`."""

    topic: Annotated[str, pydantic.Field(min_length=1)]
    """The topic. It must exist."""

    auth: Sasl | None = None
    """A user with a password; otherwise none is named."""

    client_configs: dict[str, str] = pydantic.Field(default_factory=dict)
    """Further properties of the client, by librdkafka's names, such as "security.protocol" and "ssl.ca.location"."""

    format: KafkaFormat = "json"
    """What a message's value is: "json", an object whose keys are the columns; "raw_string" or "raw_bytes", the only
    column, `value`; "debezium_json", a change of a table: the columns `op`, `before` and `after`; "avro",
    a record of Avro whose fields are the columns; "protobuf", a message of Protobuf whose fields are the columns."""

    schema_registry: SchemaRegistry | None = None
    """Values that are no raw ones are in the framing of this schema registry."""

    value_subject: str | None = None
    """The subject of the values' schemas in the registry; otherwise `TOPIC-value`."""

    schema_file: str | None = None
    """In place of a registry: a file with the schema of all values, which are bare datums of Avro. Of Protobuf, with a
    registry, too: a FileDescriptorSet (`protoc --include_imports --descriptor_set_out`)."""

    message_name: str | None = None
    """The full name of Protobuf's messages, such as "air.Flight"."""

    later: ClassVar[frozenset[str]] = frozenset({"schema_registry", "value_subject", "schema_file", "message_name"})

    @pydantic.field_validator("client_configs")
    @classmethod
    def _leaves_ours(cls, configs: dict[str, str]) -> dict[str, str]:
        for name in configs:
            if name in _OWN:
                raise ValueError(f"leave out {name!r}: {_OWN[name]}")
        return configs

    @pydantic.model_validator(mode="after")
    def _has_a_schema(self) -> Self:
        if self.format == "avro" and (self.schema_registry is None) == (self.schema_file is None):
            raise ValueError("avro needs one of schema_registry and schema_file")
        if self.format == "protobuf" and self.schema_file is None:
            raise ValueError("protobuf needs schema_file")
        if (self.format == "protobuf") != (self.message_name is not None):
            needed = "needs" if self.format == "protobuf" else "has no"
            raise ValueError(f"{self.format} {needed} message_name")
        if self.format not in ("avro", "protobuf") and self.schema_file is not None:
            raise ValueError(f"schema_file: {self.format} has no schema: leave it out")
        if self.format in ("raw_string", "raw_bytes") and self.schema_registry is not None:
            raise ValueError(f"schema_registry: {self.format} has no schema: leave it out")
        return self

    @property
    def subject(self) -> str:
        return self.value_subject or f"{self.topic}-value"

    @property
    def library(self) -> Any:
        """confluent_kafka. Raises InvalidArgument if it is not there."""
        return library()

    @property
    def cluster(self) -> str:
        """For people."""
        return f"Kafka at {self.bootstrap_servers}"

    def client(self, kind: Literal["Consumer", "Producer"], properties: Mapping[str, Any]) -> Any:
        """Not connected yet. Raises InvalidArgument."""
        return self._made(lambda library, configuration: getattr(library, kind)(configuration), properties)

    def admin(self) -> KafkaAdmin:
        """Raises InvalidArgument."""
        return KafkaAdmin(self)

    def _made(self, make: Callable[[Any, dict[str, Any]], Answer], properties: Mapping[str, Any]) -> Answer:
        for name, value in self.client_configs.items():
            if name.endswith(".location"):
                location_of(value).admitted()
        confluent = library()
        sasl = {} if self.auth is None else self.auth.properties()
        servers = {"bootstrap.servers": self.bootstrap_servers}
        try:
            return make(confluent, {**_QUIET, **self.client_configs, **sasl, **servers, **properties})
        except confluent.KafkaException as error:
            raise InvalidArgument(f"{self.cluster}: client_configs: {error.args[0].str()}") from None

    def refusal(self, error: Any) -> InvalidArgument:
        """error: a KafkaError."""
        code, codes = error.code(), library().KafkaError
        if code == codes._AUTHENTICATION and "nsupported SASL mechanism" in error.str():
            return self.refused("mechanism", error.str())
        if code == codes._SSL and "certificate" in error.str():
            return self.refused("certificate", error.str())
        kinds: Mapping[Refused, tuple[Any, ...]] = {
            "user": (codes._AUTHENTICATION, codes.SASL_AUTHENTICATION_FAILED),
            "topic": (codes.UNKNOWN_TOPIC_OR_PART, codes._UNKNOWN_TOPIC, codes._UNKNOWN_PARTITION),
            "denied": (
                codes.TOPIC_AUTHORIZATION_FAILED,
                codes.GROUP_AUTHORIZATION_FAILED,
                codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                codes.CLUSTER_AUTHORIZATION_FAILED,
            ),
            "away": (codes._TRANSPORT, codes._ALL_BROKERS_DOWN, codes._TIMED_OUT, codes._RESOLVE, codes._SSL),
        }
        return self.refused(next((kind for kind, own in kinds.items() if code in own), None), error.str())

    def refused(self, kind: Refused | None, text: str) -> InvalidArgument:
        """What it means to a user. text: of Kafka."""
        if kind == "user":
            user = (
                "a user is needed: write auth" if self.auth is None else f"check the password of {self.auth.username}"
            )
            return InvalidArgument(f"{self.cluster} refuses us: {user} ({text})")
        if kind == "mechanism" and self.auth is not None:
            return InvalidArgument(f"{self.cluster} does not know {self.auth.mechanism}: {text}")
        if kind == "certificate":
            return InvalidArgument(
                f"{self.cluster}: the certificate of the brokers cannot be trusted: name the file of its authority as "
                f"ssl.ca.location in client_configs ({text})"
            )
        if kind == "topic":
            return InvalidArgument(f"{self.cluster} has no topic {self.topic!r}: create it, or correct its name")
        if kind == "denied":
            who = "clients without a user" if self.auth is None else f"the user {self.auth.username}"
            return InvalidArgument(
                f"{self.cluster}, topic {self.topic!r}: {who} may not do this: ask for an ACL ({text})"
            )
        if kind == "away":
            return Unreachable(
                f"{self.cluster} does not answer: start it, or correct bootstrap_servers ({text})", self.cluster
            )
        return InvalidArgument(f"{self.cluster}, topic {self.topic!r}: {text}")


class KafkaAdmin:
    """Questions to a cluster. library: confluent_kafka."""

    def __init__(self, topic: KafkaTopic) -> None:
        self.library = library()
        self._topic, self._errors = topic, list[Any]()
        self._client = topic._made(
            lambda library, configuration: library.admin.AdminClient(configuration), {"error_cb": self._errors.append}
        )

    def partitions(self) -> list[int]:
        """The topic's partitions. Raises InvalidArgument."""
        return sorted(partition.id for partition in self._description().partitions)

    def check_writable(self) -> None:
        """Raises InvalidArgument if the topic is not there, or takes no messages from us."""
        allowed = self._description(include_authorized_operations=True).authorized_operations
        if allowed is not None and "WRITE" not in {operation.name for operation in allowed}:
            codes = self.library.KafkaError
            raise self._topic.refusal(codes(codes.TOPIC_AUTHORIZATION_FAILED))

    def _description(self, **options: bool) -> Any:
        names = self.library.TopicCollection([self._topic.topic])
        return self.ask(lambda client: client.describe_topics(names, **options))[self._topic.topic]

    def ask(self, ask: Callable[[Any], Mapping[Key, Future[Answer]]]) -> dict[Key, Answer]:
        """What the cluster answers. ask: gets an AdminClient. Raises InvalidArgument, also if nothing comes."""
        begun, codes = time.monotonic(), self.library.KafkaError
        patience = begun + PATIENCE
        # A broker that has just come up may not know its topics yet.
        untils = {codes.UNKNOWN_TOPIC_OR_PART: begun + _LEARNING}
        untils |= dict.fromkeys((getattr(codes, name) for name in MOVING), patience)
        while True:
            try:
                return {key: self._answer(future, patience) for key, future in ask(self._client).items()}
            except self.library.KafkaException as error:
                if time.monotonic() > untils.get(error.args[0].code(), begun):
                    raise self._topic.refusal(error.args[0]) from None
            time.sleep(_TURN)

    def _answer(self, future: Future[Answer], patience: float) -> Answer:
        """Raises KafkaException, InvalidArgument."""
        codes = self.library.KafkaError
        while not future.done():
            self._client.poll(_TURN)
            refused = (codes._AUTHENTICATION, codes._SSL)
            if found := [error for error in self._errors if error.code() in refused]:
                why = self._topic.refusal(found[0])
                if not isinstance(why, Unreachable):
                    raise why
            if time.monotonic() > patience:
                raise self._topic.refusal(self._errors[-1] if self._errors else codes(codes._TIMED_OUT))
        return future.result()


def library() -> Any:
    """confluent_kafka. Raises InvalidArgument."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ModuleNotFoundError as error:
        raise InvalidArgument("Kafka needs confluent-kafka: pip install 'arroyo_udf_plugin[kafka]'") from error
    return confluent_kafka


def topic_keys(options: TableOptions, beside: Collection[str | None] = ()) -> dict[str, Any]:
    """The keys of `KafkaTopic` in SQL. beside: columns that are in no value. Raises WrongOption."""
    registry, subject = _registry(options), options.text("value.subject")
    format_ = options.message_format(beside)
    of_format = format_ if format_ in ("avro", "protobuf") else "json"
    framing = options.take(f"{of_format}.confluent_schema_registry")
    is_framed = framing is not None and framing.value != "false"
    if framing is not None and is_framed and registry is None:
        raise WrongOption("a schema registry needs schema_registry.endpoint = 'http://localhost:8081'", framing.at)
    schema_file, message_name = None, None
    if format_ == "protobuf":
        schema_file = options.take("protobuf.schema_file")
        message_name = options.need("protobuf.message_name", "air.Flight")
    if format_ == "avro":
        bare, schema_file = options.one_of("avro.raw_datums", BOOLEANS), options.take("avro.schema_file")
        if bool(bare) == is_framed or bool(bare) != (schema_file is not None):
            raise WrongOption(
                "avro has its schemas in a registry or in a file: write 'avro.confluent_schema_registry' = 'true', or "
                "'avro.raw_datums' = 'true' and 'avro.schema_file' = 'schema.avsc'",
                options.at,
            )
    return chosen(
        {
            "bootstrap_servers": options.need("bootstrap_servers", "localhost:9092"),
            "topic": options.need("topic", options.table),
            "auth": _auth(options),
            "client_configs": options.read("client_configs", _pairs, "properties such as ssl.ca.location=ca.pem,a=b"),
            "format": format_,
            "schema_registry": registry if is_framed else None,  # others of the profile may need it
            "value_subject": subject if is_framed else None,
            "schema_file": None if schema_file is None else schema_file.value,
            "message_name": message_name,
        }
    )


def _registry(options: TableOptions) -> SchemaRegistry | None:
    names = ("endpoint", "api_key", "api_secret")
    keys = chosen({name: options.text(f"schema_registry.{name}") for name in names})
    return SchemaRegistry(**keys) if "endpoint" in keys else None


def _auth(options: TableOptions) -> Sasl | None:
    kind = options.take("auth.type")
    if kind is None or kind.value == "none":
        return None
    if kind.value != "sasl":
        raise WrongOption(f"auth.type = '{kind.value}' is not supported: write 'sasl' or 'none'", kind.at)
    mechanisms = {name: name for name in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")}
    protocols = {name: name for name in ("SASL_SSL", "SASL_PLAINTEXT")}
    keys = {
        "mechanism": options.one_of("auth.mechanism", mechanisms),
        "protocol": options.one_of("auth.protocol", protocols),
        "username": options.need("auth.username", "me"),
        "password": options.need("auth.password", "${KAFKA_PASSWORD}"),
    }
    return Sasl(**chosen(keys))


def _pairs(text: str) -> dict[str, str]:
    """Raises ValueError."""
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(equals and name.strip() for name, equals, _ in pairs):
        raise ValueError
    return {name.strip(): value.strip() for name, _, value in pairs}
