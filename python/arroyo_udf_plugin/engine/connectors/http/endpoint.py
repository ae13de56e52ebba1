"""An address that is asked over HTTP: how descriptions and SQL name it, and what its answers mean.

    with HttpClient(endpoint, 30.0).stream("GET", {}) as answer: ...
    verdict = endpoint.verdict(answer.status_code)     whether to ask again
    retries = Retries(); wait = retries.next(answer)   when

Guarantees: httpx is imported only when a client is made. No text has a header's value, or what may be secret in an
address: user and query. Redirects are not followed, because headers with secrets would go along: they are an error.
"""

from __future__ import annotations

import contextlib
import email.utils
import random
import re
import socket
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import pydantic

from ....errors import InvalidArgument, Unreachable
from ..described import VARIABLE, Described
from ..table_options import TableOptions, chosen

_AGAIN = (408, 425, 429)
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 10.0
CONNECTS = 10.0
"""Seconds for a connection."""

Verdict = Literal["taken", "again", "refused"]


class HttpEndpoint(Described):
    """The keys that those who ask have in common."""

    endpoint: Annotated[str, pydantic.Field(min_length=1, repr=False)]
    """The address: `https://HOST/PATH`. Redirects are not followed."""

    headers: Annotated[dict[str, str], pydantic.Field(repr=False)] = pydantic.Field(default_factory=dict)
    """Headers of each request, such as `Authorization`. Write secrets as variables: `Bearer ${TOKEN}`."""

    @pydantic.field_validator("endpoint")
    @classmethod
    def _is_an_address(cls, endpoint: str) -> str:
        try:
            parts = urllib.parse.urlsplit(endpoint)
            is_one = parts.scheme in ("http", "https") and bool(parts.hostname)
        except ValueError:
            is_one = False
        if not is_one and not VARIABLE.search(endpoint):
            raise ValueError("write an address such as https://example.com/rows")
        return endpoint

    @pydantic.field_validator("headers")
    @classmethod
    def _are_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not _TOKEN.fullmatch(name):
                raise ValueError(f"{name!r} cannot be the name of a header")
            if not value.isprintable() or not value.isascii():
                raise ValueError(f"the value of {name!r} has characters that no header has")
        return headers

    @property
    def place(self) -> str:
        """For people."""
        parts = urllib.parse.urlsplit(self.endpoint)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def verdict(self, status: int) -> Verdict:
        if 200 <= status < 300:
            return "taken"
        return "again" if status in _AGAIN or status >= 500 else "refused"

    def refusal(self, status: int, body: bytes = b"") -> InvalidArgument:
        """What an answer means that another try would not change."""
        shown = body[:200].decode(errors="replace").strip()
        said = f" ({' '.join(shown.split())})" if shown and shown.isprintable() else ""
        if status in (401, 403):
            return InvalidArgument(f"{self.place} refuses us with {status}: check the headers{said}")
        if 300 <= status < 400:
            return InvalidArgument(f"{self.place} answers {status}: it has moved. Write the address to which it leads")
        return InvalidArgument(f"{self.place} answers {status}{said}: correct the address, or what is sent")

    def away(self, why: str) -> Unreachable:
        return Unreachable(f"{self.place} does not answer: {why}", self.place)

    def no_address(self) -> InvalidArgument:
        return InvalidArgument(f"{self.place} is no address that can be asked: correct it")


class HttpClient:
    """One that asks an address, one request at a time. timeout: seconds without a byte. Nothing is asked before
    `stream`. Raises InvalidArgument."""

    def __init__(self, endpoint: HttpEndpoint, timeout: float) -> None:
        httpx = library()
        self._endpoint = endpoint
        self._client = httpx.Client(
            headers=endpoint.headers,
            timeout=httpx.Timeout(timeout, connect=CONNECTS),
            limits=httpx.Limits(max_connections=1),
        )
        self._socket: socket.socket | None = None
        self._is_closed = False

    @contextlib.contextmanager
    def stream(self, method: str, headers: Mapping[str, str], content: str | None = None) -> Iterator[Any]:
        """An answer of httpx, whose body is not read yet. Raises InvalidArgument, httpx.TransportError."""
        httpx = library()
        try:
            request = self._client.build_request(
                method,
                self._endpoint.endpoint,
                headers=dict(headers),
                content=content,
                extensions={"trace": self._hear},
            )
            answer = self._client.send(request, stream=True)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            raise self._endpoint.no_address() from None
        try:
            yield answer
        finally:
            answer.close()

    def _hear(self, event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            self._socket = info["return_value"].get_extra_info("socket")
            if self._is_closed:
                self._shut()

    def _shut(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """In any thread. A request that is under way in another one fails."""
        self._is_closed = True
        self._shut()
        self._client.close()


class Retries:
    """Longer and longer waits, each with a random part, so that not all who were refused come back at once."""

    def __init__(self) -> None:
        self._wait = _FIRST_WAIT

    def next(self, headers: Mapping[str, str] | None = None) -> float:
        """Seconds until the next try. headers: of the answer; it may say when."""
        wait, self._wait = self._wait * random.uniform(0.5, 1), min(2 * self._wait, _LONGEST_WAIT)
        return max(wait, _asked(headers.get("retry-after", "") if headers is not None else ""))


def _asked(text: str) -> float:
    """The seconds that a Retry-After names."""
    if text.isdecimal():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return 0.0


def library() -> Any:
    """httpx. Raises InvalidArgument."""
    try:
        import httpx
    except ModuleNotFoundError as error:
        raise InvalidArgument("HTTP needs httpx: pip install 'arroyo_udf_plugin[http]'") from error
    return httpx


def endpoint_keys(options: TableOptions) -> dict[str, Any]:
    """The keys of `HttpEndpoint` in SQL. Raises WrongOption."""
    return chosen(
        {
            "endpoint": options.need("endpoint", "https://example.com/rows"),
            "headers": options.read("headers", headers_of, "headers such as 'Accept: text/plain,X-Key: ${KEY}'"),
        }
    )


def headers_of(text: str) -> dict[str, str]:
    """Out of `Name: value,Name: value`. Raises ValueError."""
    pairs = [pair.partition(":") for pair in text.split(",")]
    if not all(colon and name.strip() for name, colon, _ in pairs):
        raise ValueError("write Name: value,Name: value")
    return {name.strip(): value.strip() for name, _, value in pairs}
