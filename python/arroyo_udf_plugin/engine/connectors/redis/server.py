"""A Redis server: how a description and SQL name it, and what its errors mean.

    server.client()                            a client of redis-py, which connects when it is asked first
    server.ask(lambda client: client.ping())   waits while the server is away

Guarantees: redis-py is imported only when a client is made. No text has a password. A server that does not answer for
`PATIENCE` is Unreachable. Nothing is asked again that a caller has not asked to be.
"""

from __future__ import annotations

import time
import urllib.parse
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import pydantic

from ....errors import InvalidArgument, Unreachable
from ..described import VARIABLE, Described
from ..table_options import TableOptions, chosen

PATIENCE = 120.0
"""Seconds for a server that restarts."""
STALLED = 30.0
"""Seconds for one answer."""
SCHEMES = ("redis", "rediss", "unix")
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 2.0
_PASSING = ("BUSY ", "LOADING", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN", "READONLY")

Result = TypeVar("Result")


class RedisServer(Described):
    """The keys that sources and sinks have in common."""

    address: Annotated[str, pydantic.Field(min_length=1, repr=False)]
    """The server: `redis://HOST:PORT/DATABASE`; with TLS `rediss://...`, on a socket `unix:///PATH`."""

    username: str | None = None
    """The user, if the server has several."""

    password: Annotated[str | None, pydantic.Field(repr=False)] = None
    """Write `${NAME}`, an environment variable."""

    @pydantic.field_validator("address")
    @classmethod
    def _is_an_address(cls, address: str) -> str:
        if urllib.parse.urlsplit(address).scheme not in SCHEMES and not VARIABLE.search(address):
            raise ValueError("write an address such as redis://localhost:6379/0")
        return address

    @property
    def place(self) -> str:
        """For people."""
        return f"Redis at {without_user(self.address)}"

    def client(self) -> Any:
        """Raises InvalidArgument."""
        redis = library()
        try:
            return redis.Redis.from_url(
                self.address,
                username=self.username,
                password=self.password,
                protocol=2,
                socket_timeout=STALLED,
                socket_connect_timeout=5.0,
                retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0),
            )
        except ValueError:
            raise InvalidArgument(
                f"{self.place}: this is no address of a server: write redis://localhost:6379/0"
            ) from None

    def ask(self, client: Any, work: Callable[[Any], Result], patience: float | None = None) -> Result:
        """What `work` returns, which is called again after a failure that passes. Raises InvalidArgument."""
        until, wait = time.monotonic() + (PATIENCE if patience is None else patience), _FIRST_WAIT
        while True:
            try:
                return work(client)
            except library().RedisError as error:
                if not passes(error) or time.monotonic() + wait > until:
                    raise self.refusal(error) from None
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    def refusal(self, error: Exception) -> InvalidArgument:
        """What an error of redis-py means to a user."""
        text = str(error)
        if isinstance(error, library().AuthenticationError) or text.startswith(("NOAUTH", "WRONGPASS")):
            needed = "write username and password" if self.password is None else "check username and password"
            return InvalidArgument(f"{self.place} refuses us: {needed}")
        if isinstance(error, library().exceptions.NoPermissionError):
            return InvalidArgument(f"{self.place}: the user may not do this: {text}")
        if passes(error):
            return Unreachable(
                f"{self.place} does not answer: start it, or correct the address ({text})", f"{self.place}"
            )
        return InvalidArgument(f"{self.place}: {text}")


def passes(error: Exception) -> bool:
    """Whether it may be over soon."""
    redis = library()
    if isinstance(error, (redis.AuthenticationError, redis.exceptions.AuthorizationError)):
        return False
    return isinstance(error, (redis.ConnectionError, redis.TimeoutError)) or str(error).startswith(_PASSING)


def library() -> Any:
    """redis-py. Raises InvalidArgument."""
    try:
        import redis
        import redis.backoff
        import redis.exceptions
        import redis.retry
    except ModuleNotFoundError as error:
        raise InvalidArgument("Redis needs redis-py: pip install 'arroyo_udf_plugin[redis]'") from error
    return redis


def without_user(address: str) -> str:
    """An address for people: without user, password and options."""
    try:
        parts = urllib.parse.urlsplit(address)
        return f"{parts.netloc.rpartition('@')[2]}{parts.path}"
    except ValueError:  # brackets of no IPv6 address
        return "an address that cannot be read"


def server_keys(options: TableOptions) -> dict[str, Any]:
    """The keys of `RedisServer` in SQL. Raises WrongOption."""
    return chosen(
        {
            "address": options.need("address", "redis://localhost:6379"),
            "username": options.text("username"),
            "password": options.text("password"),
        }
    )
