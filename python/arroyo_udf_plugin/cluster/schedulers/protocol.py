"""What a worker and its controller say to each other: JSON over HTTP, on a Unix socket. The worker asks.

    POST /v1/{job}/{generation}/register                    -> {"task": ...}
    POST /v1/{job}/{generation}/reports   [report, ...]     -> {}
    POST /v1/{job}/{generation}/orders    {"of", "seen": n} -> {"of", "orders": ["save", ...]}, when there are more

Each request has the generation's secret (Authorization: Bearer ...), which opens the paths of that generation only: so
the path says whose message it is. What is not understood is refused: 400, with the reason (see `messages.py`). If
another generation of the job runs, the answer is 410, and the worker ends; if the controller does not know the job, it
is 503, and the worker asks again: a new controller takes over one job after the other. Asking for orders is the
worker's heartbeat. "of" names the list of orders: another controller begins a new one. An order that comes twice is
one.

Versions: workers outlive their controller, so after an upgrade those of the older program go on under the newer one.
Version 1 may grow: a message may get a field with a default, and a reader leaves out what it does not know. Another
version is answered with 410 and the reason: the worker ends, and its job goes on in a new one.

Before that, the controller says by the worker's standard input, a socket, what it is to run: one byte with two
descriptors, of the worker's output and its lock, then JSON (see `worker.py`), then the end.

HTTP, because each side can be tried out with curl and read in a log, and needs no generated code: there are a few small
messages a second, and no rows but those of previews.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import json
import os
import secrets
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ASK_EVERY = 5.0
"""Seconds after which a question for orders is answered with none."""
GONE = 410
VERSION = "v1"

SOCKET = "workers.sock"
_KEY = "workers.key"


def folder_of(data: Path) -> Path:
    return data / "workers"


def path_of(job_id: str, generation: int, what: str) -> str:
    return f"/{VERSION}/{job_id}/{generation}/{what}"


def key_of(data: Path) -> bytes:
    """From which the secrets of all generations are made; a new one, if there is none."""
    path = data / _KEY
    if not path.exists():
        with tempfile.NamedTemporaryFile(dir=data, prefix=f".{_KEY}-") as new:  # 0600
            new.write(secrets.token_bytes(32))
            new.flush()
            with contextlib.suppress(FileExistsError):  # two controllers at once: one key
                os.link(new.name, path)
    return path.read_bytes()


def secret_of(key: bytes, job_id: str, generation: int) -> str:
    return hmac.new(key, f"{job_id}/{generation}".encode(), hashlib.sha256).hexdigest()


def bound(folder: Path, name: str = SOCKET) -> socket.socket:
    """Where others ask; nobody but this user can connect. It replaces the socket of a process before."""
    path = folder / name
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    opened = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{opened}/{name}")  # a path of any length would not fit into an address
    finally:
        os.close(opened)
    path.chmod(0o600)
    listener.listen(128)
    return listener


def identity(data: Path) -> tuple[int, int] | None:
    """Of the socket at which workers ask; each `bound` makes another one."""
    try:
        status = (data / SOCKET).stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


class Connection(http.client.HTTPConnection):
    """To the controller of a data folder, or to another socket."""

    def __init__(self, folder: Path, timeout: float, name: str = SOCKET) -> None:
        super().__init__("localhost", timeout=timeout)
        self._folder, self._name = folder, name

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        folder = os.open(self._folder, os.O_PATH | os.O_CLOEXEC)
        try:
            self.sock.connect(f"/proc/self/fd/{folder}/{self._name}")
        finally:
            os.close(folder)


def assign(channel: socket.socket, message: Mapping[str, Any], output: int, lock: int) -> None:
    """To a worker. Raises OSError if it has ended."""
    socket.send_fds(channel, [b"\n"], [output, lock])
    channel.sendall(json.dumps(message).encode())
    channel.shutdown(socket.SHUT_WR)


def assigned(channel: socket.socket) -> tuple[Any, int, int] | None:
    """The message, and the descriptors of output and lock. None: the controller has ended.

    Raises ValueError, OSError.
    """
    _, descriptors, _, _ = socket.recv_fds(channel, 1, 2, socket.MSG_CMSG_CLOEXEC)
    if not descriptors:
        return None
    output, lock = descriptors
    return json.loads(b"".join(iter(lambda: channel.recv(1 << 16), b""))), output, lock


def ask(data: Path, path: str, secret: str, body: Any, timeout: float) -> tuple[int, Any]:
    """Returns the status and what is answered. Raises OSError, http.client.HTTPException."""
    connection = Connection(data, timeout)
    try:
        headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()
