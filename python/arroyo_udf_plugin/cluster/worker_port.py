"""A worker's metrics: HTTP on a Unix socket in the data folder, beside the worker's lock.

    curl --unix-socket workers/job_4fGh7Kx9Qz-3.sock http://worker/metrics

The controller's port leads there (see `controller_port.py`), so that there is one address, token and certificate,
and no secret of the cluster in a process that runs code of users.

Guarantees: nobody but this user can connect. The socket goes when the worker ends; that of one that was killed, with
its lock (see `worker_files.py`).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer

from .monitoring.exposition import Exposition
from .schedulers import protocol, worker_files


@contextlib.contextmanager
def answering(data: Path, job_id: str, generation: int, exposition: Exposition) -> Iterator[None]:
    """Within the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/metrics":
                self.send_error(404)
                return
            text, content_type = exposition.text(self.headers.get("Accept", ""))
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            pass

    folder, name = protocol.folder_of(data), worker_files.socket_name(job_id, generation)
    with ThreadingUnixStreamServer("", Handler, bind_and_activate=False) as server:
        server.socket.close()
        server.socket = protocol.bound(folder, name)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, name="arroyo-udf-metrics", daemon=True)
        thread.start()
        try:
            yield
        finally:
            (folder / name).unlink(missing_ok=True)
            server.shutdown()
            thread.join()
