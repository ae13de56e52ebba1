"""A proxy of TCP whose network can be cut: bytes wait, and nobody is told.

    with Proxy(listening, "127.0.0.1:9092") as proxy:
        proxy.cut()                 connections stay open, new ones are taken, and no byte passes
        proxy.mend()                the bytes that waited pass

listening: a socket that is bound, and is closed by the proxy.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self


class Proxy:
    def __init__(self, listening: socket.socket, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target, self._listening = (host, int(port)), listening
        self._whole, self._is_closed = threading.Event(), False
        self._whole.set()
        self._open: set[socket.socket] = set()
        self._listening.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        self._whole.wait()
        try:
            server = socket.create_connection(self._target)
        except OSError:
            client.close()
            return
        self._open |= {client, server}
        for one, other in ((client, server), (server, client)):
            threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                self._whole.wait()
                other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        one.close()
        self._open.discard(one)

    def cut(self) -> None:
        self._whole.clear()

    def mend(self) -> None:
        self._whole.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._is_closed = True
        for end in (self._listening, *self._open):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.mend()
