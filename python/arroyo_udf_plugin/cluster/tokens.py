"""Who calls the API: tokens with names and roles, sessions of browsers, and logins that hold once.

    DATA/token          the token of whoever runs the cluster, in clear: the command line reads it
    DATA/tokens.json    the others, by their names: roles and hashes

    tokens = Tokens(settings.data)
    tokens.make()                          the first start makes the file `token`
    tokens.caller(token)                   whose it is; None: nobody's

A session is what a browser has instead of a token: a cookie that says whose it is and until when, signed with the hash
of the caller's token. So it ends with its token, and programs that share the files know each other's sessions.

Guarantees: a change of the files holds from the next request on. No file but `token` has a token in clear. A token is
compared by its hash, so an answer's time tells nothing of it.
Assumes: whoever reads the folder may do everything.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from ..errors import InvalidArgument, InvalidState
from . import private_files

Role = Literal["read", "run", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each may do what those before it may. read: see everything but secrets. run: pipelines and their functions. admin:
what all pipelines share (saved functions, profiles, tables)."""

OWNER, CONFIGURED = "owner", "configured"
"""The names of the token in the file `token`, and of `api.token`."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_LOGIN_SECONDS = 600.0
_MOST_LOGINS = 100


class Caller(NamedTuple):
    name: str
    role: Role

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)


ANYONE = Caller("anyone", "admin")
"""Who calls an API that asks for no token."""


@dataclass(frozen=True)
class Known:
    """A named token. until: of its keys, seconds since 1970 until which they hold, by their hashes; None: for ever."""

    role: Role
    created_at: int
    keys: Mapping[str, float | None]

    @property
    def holding(self) -> list[str]:
        return [key for key, until in self.keys.items() if until is None or until > time.time()]


class Tokens:
    """configured: `api.token`, which is an admin's. session_seconds: how long a browser is logged in."""

    def __init__(self, data: Path, configured: str | None = None, session_seconds: float = 7 * 86_400.0) -> None:
        self.file, self._others = data / "token", data / "tokens.json"
        self._configured = configured
        self._session_seconds = session_seconds
        self._lock = threading.Lock()
        self._seen: object = None
        self._known: dict[str, Known] = {}

    # ---- What the API asks ----

    def make(self) -> None:
        """The token of whoever runs the cluster, if there is none."""
        private_files.create(self.file, f"{new_token()}\n".encode())

    def caller(self, token: str) -> Caller | None:
        given = _hash(token)
        for name, known in self._all().items():
            if given in known.holding:
                return Caller(name, known.role)
        return None

    def session(self, caller: Caller) -> str | None:
        """The value of a cookie. None: the caller's token does not hold any more."""
        known = self._all().get(caller.name)
        if known is None or not known.holding:
            return None
        claim = f"{caller.name}.{int(time.time() + self._session_seconds)}"
        return f"{claim}.{_signature(known.holding[0], claim)}"

    def caller_of_session(self, value: str) -> Caller | None:
        claim, _, signature = value.rpartition(".")
        name, _, until = claim.partition(".")
        known = self._all().get(name)
        if known is None or not until.isdecimal() or len(until) > 12 or int(until) < time.time():
            return None
        if any(hmac.compare_digest(_signature(key, claim).encode(), signature.encode()) for key in known.holding):
            return Caller(name, known.role)
        return None

    @property
    def session_seconds(self) -> int:
        return int(self._session_seconds)

    # ---- What the command line changes ----

    def own(self) -> str:
        """The token in the file `token`. Raises InvalidState."""
        try:
            token = self.file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise InvalidState(
                f"the token of the API cannot be read from {self.file} ({why}): start the cluster once, or name its "
                "data folder by --data"
            ) from None
        if not token:
            raise InvalidState(f"{self.file} is empty: remove it, and start the cluster: it makes a new one")
        return token

    def known(self) -> Mapping[str, Known]:
        """All tokens by their names."""
        return dict(self._all())

    def add(self, name: str, role: Role) -> str:
        """A new token. Raises InvalidArgument."""
        if not _NAME.fullmatch(name):
            raise InvalidArgument(f"{name!r} is no name of a token: write letters, digits, - and _, at most 64")
        with self._changing() as others:
            if name in (OWNER, CONFIGURED) or name in others:
                raise InvalidArgument(f"there is a token {name} already: rotate it, or take another name")
            token = new_token()
            others[name] = {"role": role, "created_at": int(time.time()), "keys": [_key(token)]}
        return token

    def rotate(self, name: str, keep: float = 0.0) -> str:
        """A new token in the place of one. keep: seconds for which the old one still holds. Raises InvalidArgument."""
        token = new_token()
        if name == OWNER:
            if keep:
                raise InvalidArgument(f"the token {OWNER} has no time to be kept: programs read its file anew")
            private_files.replace(self.file, f"{token}\n".encode())
            return token
        with self._changing() as others:
            entry = self._among(others, name)
            until = time.time() + keep
            old = [key for key in entry["keys"] if key["until"] is None or key["until"] > time.time()]
            kept = [key | {"until": min(until, key["until"] or until)} for key in old] if keep else []
            entry["keys"] = [_key(token), *kept]
        return token

    def remove(self, name: str) -> None:
        """Raises InvalidArgument."""
        if name == OWNER:
            raise InvalidArgument(f"the token {OWNER} cannot be removed: rotate it")
        with self._changing() as others:
            self._among(others, name)
            del others[name]

    def _among(self, others: Mapping[str, Any], name: str) -> Any:
        if name not in others:
            there = ", ".join([OWNER, *sorted(others)])
            raise InvalidArgument(f"there is no token {name}: there are {there}")
        return others[name]

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """What tokens.json has; it is written when the block ends."""
        self._others.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self._others.with_name(".tokens.lock"), "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            others = self._read()
            yield others
            private_files.replace(self._others, json.dumps(others, indent=2).encode() + b"\n")

    # ---- Files ----

    def _all(self) -> dict[str, Known]:
        """By name, as the files have them now."""
        state = _state(self.file), _state(self._others)
        with self._lock:
            if state != self._seen:
                self._known = self._loaded()
                self._seen = state
            return self._known

    def _loaded(self) -> dict[str, Known]:
        tokens: dict[str, Known] = {}
        with contextlib.suppress(InvalidState):  # there is no such file: nobody has that token
            tokens[OWNER] = Known("admin", 0, {_hash(self.own()): None})
        if self._configured is not None:
            tokens[CONFIGURED] = Known("admin", 0, {_hash(self._configured): None})
        for name, entry in self._read().items():
            keys = {key["sha256"]: key["until"] for key in entry["keys"]}
            tokens[name] = Known(entry["role"], entry["created_at"], keys)
        return tokens

    def _read(self) -> dict[str, Any]:
        """Raises InvalidState."""
        try:
            tokens: dict[str, Any] = json.loads(self._others.read_bytes())
            return tokens
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise InvalidState(f"{self._others} cannot be read ({error}): restore it, or remove it") from None


class Logins:
    """Codes by which a browser logs in, once. They are in the memory of one program."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[str, tuple[float, Caller]] = {}

    def new(self, caller: Caller) -> str:
        now = self._clock()
        self._open = {code: login for code, login in self._open.items() if login[0] > now}
        while len(self._open) >= _MOST_LOGINS:
            self._open.pop(next(iter(self._open)))
        code = secrets.token_urlsafe(24)
        self._open[code] = now + _LOGIN_SECONDS, caller
        return code

    def take(self, code: str) -> Caller | None:
        """None: it was taken before, or is too old."""
        until, caller = self._open.pop(code, (0.0, ANYONE))
        return caller if until > self._clock() else None


def new_token() -> str:
    return f"aut_{secrets.token_urlsafe(32)}"


def _key(token: str) -> dict[str, Any]:
    return {"sha256": _hash(token), "until": None}


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _signature(key: str, claim: str) -> str:
    return hmac.new(key.encode(), f"session {claim}".encode(), hashlib.sha256).hexdigest()


def _state(path: Path) -> object:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size
