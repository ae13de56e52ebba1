"""A schema registry, as Confluent's and others have it: schemas by their ids, and those of a topic's values.

    registry.client().schema(7)                                the schema with an id; None: there is none
    client.check("flights-value", text, "AVRO")                whether a schema may be added
    client.register("flights-value", text, "AVRO")             its id

A message in the registry's framing begins with a zero and four bytes, the id of its schema.

Guarantees: what is registered under an id never changes, so it is asked for once. A registry that does not answer is
Unreachable; a wrong password is another error. No text has a password.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import pydantic

from ....errors import InvalidArgument, Unreachable
from ..described import VARIABLE, Described

_SECONDS = 10.0  # for an answer
_HEAD = 5
_REFUSED = (401, 403)
_INCOMPATIBLE = 409
_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA = 40401, 40402, 40403


class SchemaRegistry(Described):
    """Where the schemas of messages are: Confluent's schema registry, or one with its protocol."""

    endpoint: Annotated[str, pydantic.Field(min_length=1)]
    """Its address, such as `http://localhost:8081`."""

    api_key: str | None = None
    """A user, if the registry wants one."""

    api_secret: Annotated[str | None, pydantic.Field(repr=False)] = None
    """The user's password. Write `${NAME}`, an environment variable."""

    @pydantic.field_validator("endpoint")
    @classmethod
    def _is_an_address(cls, endpoint: str) -> str:
        if VARIABLE.search(endpoint):
            return endpoint
        parsed = urllib.parse.urlsplit(endpoint)
        if parsed.scheme not in ("http", "https") or not parsed.hostname:
            raise ValueError("write an address, such as 'http://localhost:8081'")
        if parsed.username or parsed.password:
            raise ValueError("leave the user out of the address: write api_key and api_secret")
        return endpoint

    @pydantic.model_validator(mode="after")
    def _has_both(self) -> SchemaRegistry:
        if (self.api_key is None) != (self.api_secret is None):
            raise ValueError("write both of api_key and api_secret, or none")
        return self

    def client(self) -> RegistryClient:
        """Not connected yet. Raises InvalidArgument."""
        return RegistryClient(self)


@dataclasses.dataclass(frozen=True)
class FoundSchema:
    """kind: AVRO, JSON or PROTOBUF. references: the texts that it needs, by their names, in the order in which they
    need one another."""

    kind: str
    text: str
    references: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class ImportedSchema:
    """A schema that another one needs. name: how that names it, and its subject. imports: what this one needs."""

    name: str
    text: str
    imports: Sequence[ImportedSchema]


class RegistryClient:
    """Any thread."""

    def __init__(self, registry: SchemaRegistry) -> None:
        try:
            import confluent_kafka.schema_registry as library
        except ModuleNotFoundError as error:
            raise InvalidArgument("a schema registry needs: pip install 'arroyo_udf_plugin[kafka]'") from error
        self.name = f"the schema registry at {registry.endpoint}"
        self._library, self._user = library, registry.api_key
        configuration: dict[str, Any] = {"url": registry.endpoint, "timeout": _SECONDS, "max.retries": 0}
        if registry.api_key is not None:
            configuration["basic.auth.user.info"] = f"{registry.api_key}:{registry.api_secret}"
        self._client = library.SchemaRegistryClient(configuration)
        self._lock = threading.Lock()

    def schema(self, id: int) -> FoundSchema | None:
        """Raises InvalidArgument, Unreachable."""
        with self._answers():
            found = self._client.get_schema(id)
            texts: dict[str, str] = {}
            self._add_references(found.references or (), texts)
            return FoundSchema(found.schema_type or "AVRO", str(found.schema_str), texts)
        return None

    def _add_references(self, references: Sequence[Any], texts: dict[str, str]) -> None:
        for reference in references:
            if reference.name not in texts:
                found = self._client.get_version(reference.subject, reference.version).schema
                self._add_references(found.references or (), texts)
                texts[reference.name] = str(found.schema_str)

    def latest(self, subject: str) -> str | None:
        """The newest schema; None: there is none. Raises InvalidArgument, Unreachable."""
        with self._answers():
            return str(self._client.get_latest_version(subject).schema.schema_str)
        return None

    def check(self, subject: str, text: str, kind: str, imports: Sequence[ImportedSchema] = ()) -> None:
        """A schema whose imports are not registered yet fits. Raises InvalidArgument, Unreachable."""
        is_compatible = True
        with self._answers(subject):
            is_compatible = self._client.test_compatibility(subject, self._made(text, kind, imports, adds=False))
        if not is_compatible:
            raise self._incompatible(subject)

    def register(self, subject: str, text: str, kind: str, imports: Sequence[ImportedSchema] = ()) -> int:
        """Also the imports, each for the subject of its name. Raises InvalidArgument, Unreachable."""
        with self._answers(subject):
            return int(self._client.register_schema(subject, self._made(text, kind, imports, adds=True)))
        raise InvalidArgument(f"{self.name} has no subjects: correct the endpoint")

    def _made(self, text: str, kind: str, imports: Sequence[ImportedSchema], adds: bool) -> Any:
        references = []
        for each in imports:
            own = self._made(each.text, kind, each.imports, adds)
            if adds:
                self._client.register_schema(each.name, own)
            version = self._client.lookup_schema(each.name, own).version
            references.append(self._library.SchemaReference(each.name, each.name, version))
        return self._library.Schema(text, kind, references)

    @contextlib.contextmanager
    def _answers(self, subject: str | None = None) -> Iterator[None]:
        """An answer that there is nothing of this name ends the block."""
        with self._lock:
            try:
                yield
            except self._library.SchemaRegistryError as error:
                if error.error_code not in (_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA):
                    raise self._refusal(error, subject) from None
            except Exception as error:
                if type(error).__module__.partition(".")[0] not in ("httpx", "httpx2"):
                    raise
                raise Unreachable(
                    f"{self.name} does not answer: start it, or correct the endpoint ({error})", self.name
                ) from None

    def _refusal(self, error: Any, subject: str | None) -> InvalidArgument:
        status, said = error.http_status_code, error.error_message
        if status in _REFUSED:
            who = "a user is needed: write api_key and api_secret"
            if self._user is not None:
                who = f"check the api_secret of {self._user}, and what this user may do"
            return InvalidArgument(f"{self.name} refuses us: {who} ({said})")
        if status == _INCOMPATIBLE and subject is not None:
            return self._incompatible(subject, said)
        if status == 429 or status >= 500:
            return Unreachable(f"{self.name} does not work: {said}", self.name)
        return InvalidArgument(f"{self.name}: {said} (HTTP status {status})")

    def _incompatible(self, subject: str, said: str = "") -> InvalidArgument:
        return InvalidArgument(
            f"{self.name}: the rows do not fit the schemas of the subject {subject!r}, so its readers could not read "
            f"them: give them the columns and types of its newest schema, or name another value_subject"
            + (f" ({said})" if said else "")
        )


def framed(id: int, values: Sequence[bytes | None]) -> list[bytes | None]:
    head = b"\0" + id.to_bytes(_HEAD - 1)
    return [None if value is None else head + value for value in values]


def id_of(value: bytes) -> int | str:
    """The schema's id; or what is wrong with the message."""
    if len(value) < _HEAD or value[0] != 0:
        return f"is not in the framing of a schema registry (a zero, and the id of a schema): {value[:20]!r}"
    return int.from_bytes(value[1:_HEAD])


def payload_of(value: bytes) -> bytes:
    return value[_HEAD:]
