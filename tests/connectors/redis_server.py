"""A private Redis server for a test run, which can be killed and keeps its data. It ends with its user.

    with redis_server.server(folder) as redis:
        redis.client.set("a", "b")
        redis.kill()                      SIGKILL; clients are refused
        redis.start()                     the same address, the same data

The program is Debian's, downloaded and unpacked below build/, not installed. It listens on 127.0.0.1, on a port that
stays ours while the server is dead.
Guarantees: what the server has confirmed survives `kill`. When the `with` block is left, the server has ended; if the
process is killed, it ends, too.
Assumes: setpriv is there.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis
from waiting import until

import debian

ROOT = Path(__file__).resolve().parents[2] / "build" / "redis"
PASSWORD = "tests-password"


class Server:
    """Made by `server`. address: "redis://127.0.0.1:PORT"; client: may do everything."""

    def __init__(self, folder: Path, program: Path) -> None:
        self._folder, self._program = folder, program
        self._process: subprocess.Popen[bytes] | None = None
        self._reserved = socket.socket()  # it never listens: it keeps the port
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", 0))
        self.port: int = self._reserved.getsockname()[1]
        self.address = f"redis://127.0.0.1:{self.port}"
        self.client: Any = redis.Redis(port=self.port, decode_responses=True, protocol=2)
        self.start()

    def start(self) -> None:
        """It answers when this returns."""
        libraries = [str(path) for path in (ROOT / "usr" / "lib").glob("*-linux-gnu*")]
        options = {
            "bind": "127.0.0.1",
            "port": self.port,
            "dir": self._folder,
            "save": "",
            "appendonly": "yes",
            "appendfsync": "always",  # else a write may wait for the disk, and is lost with the server
            "repl-diskless-sync": "no",
        }
        words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        with open(self._folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", str(self._program), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | {"LD_LIBRARY_PATH": os.pathsep.join(libraries)},
                start_new_session=True,  # Ctrl-C reaches the caller alone
            )
        until(self._answers, "the server")

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text()
        try:
            return bool(self.client.ping())
        except redis.RedisError:
            return False

    def kill(self) -> None:
        """SIGKILL. The data stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        self.client.close()
        self.kill()
        self._reserved.close()

    def name(self) -> str:
        """A key that nobody has."""
        return f"k{uuid.uuid4().hex[:12]}"


@contextlib.contextmanager
def server(folder: Path) -> Iterator[Server]:
    """Starts a server whose data and log are in `folder`."""
    program = ROOT / "usr" / "bin" / "redis-server"
    if not program.exists():
        debian.unpack(ROOT, _packages)
    with contextlib.closing(Server(folder, program)) as started:
        yield started


def _packages(apt: debian.Apt) -> list[str]:
    """The server's package, and those that it needs and that are not installed."""
    plan = apt("apt-get", "--simulate", "--no-install-recommends", "install", "redis-server")
    names = set(re.findall(r"^Inst (\S+)", plan, re.MULTILINE))
    return ["redis-server", *sorted(names - {"redis-server"})]
