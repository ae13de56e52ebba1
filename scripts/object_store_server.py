"""A private S3 server for a test run or the demo, which can be killed and keeps its data. It ends with its user.

    with object_store_server.server(folder) as server:
        os.environ |= server.environment        so that obstore finds it
        place = server.bucket("rows")           "s3://rows"
        server.kill()                           SIGKILL; clients are refused
        server.restart()                        the same address, the same data

The server is ministack, from the package index. It listens on 127.0.0.1 and knows no secrets: any client may come in.
Guarantees: an answered write survives `kill`. The port stays ours while the server is dead. When the `with` block is
left, the server has ended; if the process is killed, it ends too, when the pipe to it closes. `folder` stays.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# Serves the listening socket argv[1] until the end of stdin.
LIFE = """
import asyncio, os, sys, threading

def end():
    sys.stdin.buffer.read()
    os._exit(0)

threading.Thread(target=end, daemon=True).start()
from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack.app import app

config = Config()
config.bind = [f"fd://{sys.argv[1]}"]
config.accesslog = None
asyncio.run(serve(app, config))
"""


class Server:
    """Made by `server`. address: "http://127.0.0.1:PORT"."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._reserved = _bound(0)  # never listens: it only keeps the port while the server is dead
        self._port: int = self._reserved.getsockname()[1]
        self.address = f"http://127.0.0.1:{self._port}"
        (folder / "data").mkdir(parents=True, exist_ok=True)
        self.restart()

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which S3 clients find the server."""
        return {
            "AWS_ENDPOINT": self.address,  # obstore's name
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "NO_PROXY": "127.0.0.1",
        }

    def bucket(self, name: str) -> str:
        """Makes a bucket; returns its URL. name: at least three letters."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self._port)) as client:
            client.request("PUT", f"/{name}")
            answer = client.getresponse()
            if answer.status != 200:
                raise RuntimeError(f"no bucket {name}: {answer.read().decode()}")
        return f"s3://{name}"

    def kill(self) -> None:
        """SIGKILL. The data stays."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def restart(self) -> None:
        """Starts the server; after `kill`, or while it runs. Clients may connect at once."""
        self.kill()
        with _bound(self._port) as listening, open(self._folder / "log", "ab") as log:
            listening.listen(128)
            self._process = subprocess.Popen(
                [sys.executable, "-c", LIFE, str(listening.fileno())],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[listening.fileno()],
                env=self._variables(),
                start_new_session=True,  # Ctrl-C reaches the caller alone; the server ends through the pipe
            )

    def _variables(self) -> dict[str, str]:
        variables = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return variables | {
            "SERVICES": "s3",
            "S3_PERSIST": "1",
            "S3_DATA_DIR": str(self._folder / "data"),
            "GATEWAY_PORT": str(self._port),
            "BIND_HOST": "127.0.0.1",
            "TMPDIR": str(self._folder),
        }

    def close(self) -> None:
        self.kill()
        self._reserved.close()


@contextlib.contextmanager
def server(folder: Path) -> Iterator[Server]:
    """Starts a server whose data and log are in `folder`."""
    with contextlib.closing(Server(folder)) as started:
        yield started


def _bound(port: int) -> socket.socket:
    """A socket on the port. With SO_REUSEADDR, several may be bound to it as long as none of them listens."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    return bound
