"""Who may speak to the API, and how: the layer that every request passes before anything looks at it.

1. Host is in the allow-list, so that a foreign web page cannot reach the API under a name of its own (DNS rebinding).
2. Origin, if there is one, is the API's own or in the allow-list: so no foreign page can send requests.
3. With a token, the request has it: as `Authorization: Bearer ...`, or, to read only, in the cookie that
   `session_cookie` makes, because browsers cannot send a header for event streams.
4. POST, PUT and PATCH have JSON, which no form of a foreign page can send, and at most `body_limit` bytes.

Guarantees: a request that is refused has changed nothing, and its answer has the error body of the API. Tokens are
compared in constant time, and are in no answer, log line or cookie.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any

from ..errors import InvalidArgument
from .configuration import ApiSettings

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOCAL = frozenset(("localhost", "127.0.0.1", "::1"))
COOKIE = "arroyo_udf_session"
BODY_LIMIT = 4 << 20
_WITH_BODY = ("POST", "PUT", "PATCH")
_PREFLIGHT = (
    (b"access-control-allow-headers", b"authorization, content-type, last-event-id"),
    (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE"),
    (b"access-control-max-age", b"600"),
)


@dataclass(frozen=True)
class Security:
    """hosts: names under which the API is reached, without ports. origins: of pages elsewhere that may use it, in lower
    case, such as "http://localhost:3000". token: None: nobody needs one. open_paths: need none. tls: cookies are for
    TLS only.
    """

    hosts: Collection[str] = LOCAL
    origins: Collection[str] = ()
    token: str | None = field(default=None, repr=False)
    body_limit: int = BODY_LIMIT
    open_paths: Collection[str] = ("/health/live", "/health/ready")
    tls: bool = False

    def session_cookie(self) -> str:
        """The Set-Cookie of a client that has shown the token."""
        return f"{COOKIE}={self._session()}; HttpOnly; SameSite=Strict; Path=/" + ("; Secure" if self.tls else "")

    def _session(self) -> str:
        """A value that proves that its bearer knows the token, without containing it."""
        return hmac.new((self.token or "").encode(), b"session", hashlib.sha256).hexdigest()

    def knows_token(self, method: str, authorization: str, cookies: str) -> bool:
        if self.token is None:
            return True
        kind, _, given = authorization.partition(" ")
        if kind.lower() == "bearer":
            return _equal(given.strip(), self.token)
        return method in ("GET", "HEAD") and _equal(_cookie(cookies), self._session())


def configured(api: ApiSettings) -> Security:
    """Raises InvalidArgument for a server that would be open to others."""
    security = Security(
        hosts={*LOCAL, api.bind_address, *(host.lower() for host in api.hosts)},
        origins={origin.lower() for origin in api.origins},
        token=None if api.token is None else api.token.get_secret_value(),
        body_limit=api.body_limit,
        tls=api.tls_cert is not None,
    )
    try:
        check_exposed(api.bind_address, security, api.insecure)
    except ValueError as error:
        raise InvalidArgument(str(error)) from None
    return security


def check_exposed(address: str, security: Security, insecure: bool = False) -> None:
    """Raises ValueError if a server at this address would be open to others without a token, or without TLS."""
    if is_loopback(address):
        return
    if security.token is None:
        raise ValueError(f"{address} can be reached by others: set api.token, or bind 127.0.0.1")
    if not security.tls and not insecure:
        raise ValueError(
            f"{address} can be reached by others: set api.tls_cert and api.tls_key, or say --insecure: then the token "
            "can be read on the way"
        )


def is_loopback(address: str) -> bool:
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


class Guard:
    """The layer around an app."""

    def __init__(self, app: App, security: Security) -> None:
        self._app, self._security = app, security

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        origin = headers.get("origin")
        refused = self._refused(scope, headers)
        if refused is not None:
            await _answer(send, *refused)
            return
        if origin is not None:
            send = _with_origin(send, origin)
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await _answer(send, 204, None, _PREFLIGHT)
            return
        if not self._is_known(scope, headers):
            await _answer(send, 401, "this needs the token of the API: send it as Authorization: Bearer TOKEN",
                          [(b"www-authenticate", b"Bearer")])  # fmt: skip
            return
        if scope["method"] in _WITH_BODY:
            content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
            if content_type != "application/json":
                await _answer(send, 415, "send JSON, with the header Content-Type: application/json")
                return
            body = await self._body(receive, headers.get("content-length", ""))
            if body is None:
                await _answer(send, 413, f"a request may have {self._security.body_limit:,} bytes, and this has more",
                              [(b"connection", b"close")])  # fmt: skip
                return
            receive = _again(body, receive)
        await self._app(scope, receive, send)

    def _refused(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        host = _name_of(headers.get("host", ""))
        if host not in self._security.hosts:
            return (
                403,
                f"the API is not called {host!r}: use one of {_listed(self._security.hosts)}, or add it to api.hosts",
            )
        origin = headers.get("origin")
        if (
            origin is not None
            and not self._is_own(origin, headers["host"], scope)
            and origin.lower() not in self._security.origins
        ):
            return 403, f"pages of {origin} may not use the API: open them at its address, or add it to api.origins"
        if "\0" in scope["path"] or b"%00" in scope.get("query_string", b""):
            return 400, "an address has no NUL character"
        return None

    def _is_own(self, origin: str, host: str, scope: Scope) -> bool:
        return origin.lower() == f"{scope.get('scheme', 'http')}://{host.lower()}"

    def _is_known(self, scope: Scope, headers: dict[str, str]) -> bool:
        if scope["path"] in self._security.open_paths:
            return True
        return self._security.knows_token(scope["method"], headers.get("authorization", ""), headers.get("cookie", ""))

    async def _body(self, receive: Receive, length: str) -> bytes | None:
        """None: it is too long."""
        if length.isdecimal() and int(length) > self._security.body_limit:
            return None
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return bytes(body)
            body += message.get("body", b"")
            if len(body) > self._security.body_limit:
                return None
            if not message.get("more_body", False):
                return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """Gives the body that was read, then what comes after it."""
    left = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return left.pop() if left else await receive()

    return receive_again


def _with_origin(send: Send, origin: str) -> Send:
    """Answers that the page of this origin may read."""

    async def send_with_origin(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"Origin")]
            message = {**message, "headers": [*message.get("headers", ()), *own]}
        await send(message)

    return send_with_origin


async def _answer(send: Send, status: int, error: str | None, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    body = b"" if error is None else json.dumps({"error": error}).encode()
    own = [(b"content-length", str(len(body)).encode())] + ([(b"content-type", b"application/json")] if body else [])
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": body})


def _name_of(host: str) -> str:
    """Without the port, and without the brackets of IPv6."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("latin-1", "replace"), wanted.encode())


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names))
