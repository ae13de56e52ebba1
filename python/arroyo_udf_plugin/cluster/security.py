"""Who may speak to the API, and how: the layer that every request passes before anything looks at it. The audit log.

1. Host is in the allow-list, so that a foreign web page cannot reach the API under a name of its own (DNS rebinding).
   Probes (`/health/...`) are answered under any name: who sends them knows an address only, and they tell nothing.
   The web page's files are there for everybody who knows the name: they tell nothing, either.
2. Origin, if there is one, is the API's own or in the allow-list: so no foreign page can send requests.
3. The request says who calls: by a token, as `Authorization: Bearer ...`, or by a browser's session, in a cookie. A
   change by cookie needs an Origin, which is the API's own: a page of another port, to which browsers send the cookie,
   too, changes nothing.
4. The caller's role allows it: `read` for what changes nothing, `run` for the rest. Endpoints may ask for more.
5. POST, PUT and PATCH have JSON, which no form of a foreign page can send, and at most `body_limit` bytes.

`Audit` writes a line for each request that may change something, also if it was refused to its caller:

    {"time": "2026-11-25T22:00:00.000+00:00", "caller": "board", "role": "run", "from": "127.0.0.1", "method": "POST",
     "path": "/api/v1/pipelines", "status": 200}

Guarantees: a request that is refused has changed nothing, and its answer has the error body of the API. Tokens are in
no answer, log line or cookie. The audit log is its user's alone. At half of its limit it becomes `audit.jsonl.1`, and
the one before that goes, so both together keep to the limit. Programs that share it write whole lines. No body is in
it, so no secret is.
"""

from __future__ import annotations

import fcntl
import ipaddress
import json
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any

from ..errors import InvalidArgument
from .configuration import ApiSettings
from .functions.fair_queue import calling
from .tokens import ANYONE, Caller, Role, Tokens

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOCAL = frozenset(("localhost", "127.0.0.1", "::1"))
COOKIE = "arroyo_udf_session"
BODY_LIMIT = 4 << 20
CALLER = "arroyo_udf_caller"
"""The key of a request's scope that has the `Caller`."""
_PROBES = ("/health/live", "/health/ready")
_OURS = ("/api", "/metrics", "/health", "/targets", "/workers")
"""What tells something begins so; everything else is the web page."""
_LOGIN = "/api/v1/login"
"""What a browser opens to log in: its code says who it is."""
_FOR_ALL = ("/api/v1/session", "/api/v1/logins")
"""What changes nothing but the caller's own browser."""
_WHO = (
    "this needs a token of the API, as Authorization: Bearer TOKEN: `arroyo-udf token show` prints one. For a browser, "
    "`arroyo-udf login` prints an address that logs it in"
)
_READS = ("GET", "HEAD", "OPTIONS")
_WITH_BODY = ("POST", "PUT", "PATCH")
_PREFLIGHT = (
    (b"access-control-allow-headers", b"authorization, content-type, idempotency-key, last-event-id"),
    (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE"),
    (b"access-control-max-age", b"600"),
)


@dataclass(frozen=True)
class Security:
    """hosts: names under which the API is reached, without ports. origins: of pages elsewhere that may use it, in lower
    case, such as "http://localhost:3000". tokens: None: nobody needs one. audit: None: changes are not written down.
    tls: cookies are for TLS only.
    """

    hosts: Collection[str] = LOCAL
    origins: Collection[str] = ()
    tokens: Tokens | None = field(default=None, repr=False)
    audit: Audit | None = None
    body_limit: int = BODY_LIMIT
    tls: bool = False

    def session_cookie(self, caller: Caller, host: str) -> str | None:
        """The Set-Cookie that logs a browser in. host: the header. None: nobody needs it."""
        value = None if self.tokens is None else self.tokens.session(caller)
        if self.tokens is None or value is None:
            return None
        cookie = (
            f"{_cookie_name(host)}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={self.tokens.session_seconds}"
        )
        return cookie + ("; Secure" if self.tls else "")

    def caller_by_token(self, authorization: str) -> Caller | None:
        kind, _, given = authorization.partition(" ")
        if self.tokens is None or kind.lower() != "bearer":
            return None
        return self.tokens.caller(given.strip())

    def caller_by_cookie(self, cookies: str, host: str) -> Caller | None:
        return None if self.tokens is None else self.tokens.caller_of_session(_cookie(cookies, _cookie_name(host)))


def configured(api: ApiSettings, data: Path) -> Security:
    """data: the folder with the tokens; a first one is made, if there is none. Raises InvalidArgument for a server that
    would be open to others."""
    tokens = None
    if not api.no_token:
        own = None if api.token is None else api.token.get_secret_value()
        tokens = Tokens(data.absolute(), own, api.session_time)
    security = Security(
        hosts={*LOCAL, api.bind_address, *(host.lower() for host in api.hosts)},
        origins={origin.lower() for origin in api.origins},
        tokens=tokens,
        audit=Audit(data.absolute() / "audit.jsonl", api.audit_bytes),
        body_limit=api.body_limit,
        tls=api.tls_cert is not None,
    )
    try:
        check_exposed(api.bind_address, security, api.insecure)
    except ValueError as error:
        raise InvalidArgument(str(error)) from None
    if tokens is not None:
        tokens.make()
    return security


def check_exposed(address: str, security: Security, insecure: bool = False) -> None:
    """Raises ValueError if a server at this address would be open to others without a token, or without TLS."""
    if is_loopback(address):
        return
    if security.tokens is None:
        raise ValueError(f"{address} can be reached by others: leave out --no-token (api.no_token), or bind 127.0.0.1")
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
        caller = self._caller(scope, headers)
        if caller is None:
            await _answer(send, 401, _WHO, [(b"www-authenticate", b"Bearer")])
            return
        scope[CALLER] = caller
        if scope["method"] not in _READS and self._security.audit is not None:
            send = self._security.audit.noting(send, caller, scope)
        needed: Role = "read" if scope["method"] in _READS or scope["path"] in _FOR_ALL else "run"
        if not caller.may(needed):
            await _answer(send, 403, refusal_of(caller, needed))
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
        set_before = calling.set(caller.name)
        try:
            await self._app(scope, receive, send)
        finally:
            calling.reset(set_before)

    def _refused(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        host = _name_of(headers.get("host", ""))
        if host not in self._security.hosts and scope["path"] not in _PROBES:
            return (
                403,
                f"the API is not called {host!r}: use one of {_listed(self._security.hosts)}, or add it to api.hosts",
            )
        origin = headers.get("origin")
        if origin is not None and not _is_own(origin, headers, scope) and origin.lower() not in self._security.origins:
            return 403, f"pages of {origin} may not use the API: open them at its address, or add it to api.origins"
        if "\0" in scope["path"] or b"%00" in scope.get("query_string", b""):
            return 400, "an address has no NUL character"
        return None

    def _caller(self, scope: Scope, headers: dict[str, str]) -> Caller | None:
        """None: nobody that is known, or a change by a cookie from a page that is not the API's own."""
        security = self._security
        if security.tokens is None or scope["path"] in _PROBES:
            return ANYONE
        if scope["path"] == _LOGIN and scope["method"] == "GET":
            return ANYONE
        if scope["method"] in _READS and not scope["path"].startswith(_OURS):
            return ANYONE
        if "authorization" in headers:
            return security.caller_by_token(headers["authorization"])
        if scope["method"] not in _READS and not _is_own(headers.get("origin", ""), headers, scope):
            return None
        return security.caller_by_cookie(headers.get("cookie", ""), headers.get("host", ""))

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


def _is_own(origin: str, headers: Mapping[str, str], scope: Scope) -> bool:
    return origin.lower() == f"{scope.get('scheme', 'http')}://{headers.get('host', '').lower()}"


def refusal_of(caller: Caller, needed: Role) -> str:
    return f"the token {caller.name!r} has the role {caller.role}, and this needs {needed}: use another token"


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


def _cookie_name(host: str) -> str:
    """Browsers send cookies to all ports of a name: so clusters on one machine have each its own."""
    port = host.rpartition("]")[2].rpartition(":")[2]
    return f"{COOKIE}_{port}" if port.isdecimal() else COOKIE


def _cookie(header: str, name: str) -> str:
    try:
        cookie = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return "" if cookie is None else cookie.value


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names))


_log = logging.getLogger(__name__)
_MOST_PATH = 500

_Message = MutableMapping[str, Any]
_Send = Callable[[_Message], Awaitable[None]]


class Audit:
    """most_bytes: of what is kept."""

    def __init__(self, file: Path, most_bytes: int) -> None:
        self.file, self._most_bytes = file, most_bytes
        self._older = file.with_name(f"{file.name}.1")

    def noting(self, send: _Send, caller: Caller, scope: MutableMapping[str, Any]) -> _Send:
        """Sends an answer, and writes down how it begins."""

        async def send_and_note(message: _Message) -> None:
            if message["type"] == "http.response.start":
                self.note(caller, scope, message["status"])
            await send(message)

        return send_and_note

    def note(self, caller: Caller, scope: MutableMapping[str, Any], status: int) -> None:
        """A disk that is full does not keep the request from its answer: the log says so."""
        entry = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "caller": caller.name,
            "role": caller.role,
            "from": (scope.get("client") or ("-",))[0],
            "method": scope["method"],
            "path": scope["path"][:_MOST_PATH],
            "status": status,
        }
        try:
            self._append(json.dumps(entry).encode() + b"\n")
        except OSError as error:
            _log.error("the audit log %s cannot be written (%s): %s", self.file, error.strerror, entry)

    def _append(self, line: bytes) -> None:
        while True:
            fd = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                if not self._is_current(fd):  # another program has just begun a new file
                    continue
                if os.fstat(fd).st_size + len(line) > self._most_bytes // 2 and os.fstat(fd).st_size > 0:
                    os.replace(self.file, self._older)
                    continue
                os.write(fd, line)
                return
            finally:
                os.close(fd)

    def _is_current(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), os.stat(self.file))
        except FileNotFoundError:
            return False
