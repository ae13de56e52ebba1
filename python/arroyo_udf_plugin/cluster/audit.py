"""Who has changed what: a line of JSON for each request that may change something.

    {"time": "2026-11-25T22:00:00.000+00:00", "caller": "board", "role": "run", "from": "127.0.0.1", "method": "POST",
     "path": "/api/v1/pipelines", "status": 200}

Guarantees: the file is its user's alone. At half of its limit it becomes `audit.jsonl.1`, and the one before that goes,
so both together keep to the limit. Programs that share the file write whole lines. No body is in it, so no secret is.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .tokens import Caller

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
        told = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "caller": caller.name,
            "role": caller.role,
            "from": (scope.get("client") or ("-",))[0],
            "method": scope["method"],
            "path": scope["path"][:_MOST_PATH],
            "status": status,
        }
        try:
            self._append(json.dumps(told).encode() + b"\n")
        except OSError as error:
            _log.error("the audit log %s cannot be written (%s): %s", self.file, error.strerror, told)

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
