"""Secrets are stored sealed, by a key that is in a file and not in the database.

    secrets.key         a key a line, as Fernet writes it: the first one seals, all of them open

Guarantees: a column of the type `SealedJson` never contains a plain secret, nor is one opened that somebody without a
key has changed: such a value is read as `Unopened`, so that one of them hides no other row, and stays as it is when the
row is written. Whoever needs values asks `opened`. A new file is its user's alone, and whole or not there.
Assumes: who has the file and the database has the secrets. Empty values are no secrets.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from sqlalchemy import JSON, Dialect, TypeDecorator

from ...errors import InvalidState
from .. import private_files

_KEYS = "arroyo_udf_keys"  # an attribute of an engine's dialect, because types of columns are told nothing else


class Keys:
    """Those of a file, which is read when the first value is sealed or opened."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def serve(self, dialect: Dialect) -> None:
        """Columns of this engine are sealed by these keys."""
        setattr(dialect, _KEYS, self)

    @classmethod
    def of(cls, dialect: Dialect) -> Keys:
        keys = getattr(dialect, _KEYS)
        assert isinstance(keys, Keys)
        return keys

    def make(self) -> None:
        """A new file with a new key, if there is none."""
        private_files.create(self.file, Fernet.generate_key() + b"\n")  # durable: what it seals must not outlive it

    def seal(self, value: Any) -> str:
        return self._all.encrypt(json.dumps(value).encode()).decode()

    def open(self, token: str) -> Any:
        """Raises InvalidState."""
        try:
            return json.loads(self._all.decrypt(token))
        except (InvalidToken, TypeError):
            raise InvalidState(f"{self.file} does not open a secret of the database: restore its key") from None

    def opens(self, token: str) -> bool:
        return any(_opens(key, token) for key in self._keys)

    def has_sealed(self, token: str) -> bool:
        """Whether the first key has."""
        return _opens(self._keys[0], token)

    @cached_property
    def _keys(self) -> list[Fernet]:
        """Raises InvalidState."""
        try:
            lines = self.file.read_text(encoding="ascii").split()
            keys = [Fernet(line) for line in lines]
        except OSError as error:
            raise InvalidState(
                f"the key file {self.file} cannot be read ({error.strerror}): restore it, or say where it is by "
                "database.key_file"
            ) from None
        except ValueError:
            raise InvalidState(f"the key file {self.file} has a line that is no key: restore it") from None
        if not keys:
            raise InvalidState(f"the key file {self.file} is empty: restore it")
        return keys

    @cached_property
    def _all(self) -> MultiFernet:
        return MultiFernet(self._keys)


@dataclass(frozen=True)
class Unopened:
    """Instead of a secret that no key opens. token: as it is in the database. why: for people."""

    token: str = field(repr=False)
    why: str


def opened(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a sealed column. Raises InvalidState if one of them could not be opened."""
    for name, value in values.items():
        if isinstance(value, Unopened):
            raise InvalidState(f"{name}: {value.why}")
    return dict(values)


def _opens(key: Fernet, token: str) -> bool:
    try:
        key.decrypt(token)
    except InvalidToken:
        return False
    return True


class SealedJson(TypeDecorator[dict[str, Any]]):
    """A JSON object whose values are sealed, but not their names. only: these values; None: all."""

    impl = JSON
    cache_ok = True

    def __init__(self, only: tuple[str, ...] | None = None) -> None:
        super().__init__(none_as_null=True)
        self.only = only

    def process_bind_param(self, value: Mapping[str, Any] | None, dialect: Dialect) -> dict[str, Any] | None:
        keys = Keys.of(dialect)
        return self._changed(value, lambda secret: secret.token if isinstance(secret, Unopened) else keys.seal(secret))

    def process_result_value(self, value: Mapping[str, Any] | None, dialect: Dialect) -> dict[str, Any] | None:
        keys = Keys.of(dialect)

        def read(token: str) -> Any:
            try:
                return keys.open(token)
            except InvalidState as error:
                return Unopened(token, str(error))

        return self._changed(value, read)

    def _changed(self, value: Mapping[str, Any] | None, change: Callable[[Any], Any]) -> dict[str, Any] | None:
        if value is None:
            return None
        return {
            name: change(item) if item and (self.only is None or name in self.only) else item
            for name, item in value.items()
        }
