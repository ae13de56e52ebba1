"""How far a file was read, and whether another file, or the same one later, is still that one.

A file is known by its first and last bytes of what was read. Its inode only says which of several files that fit is
meant: inodes are given again to new files.

Assumes: a file that is appended to does not change what it has.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from typing import Any

from ..interface import Json

BYTES = 256
"""So many of the first and of the last bytes are known."""


@dataclasses.dataclass(frozen=True)
class Mark:
    """byte: the next one to read. head, tail: digests of the first and the last bytes before it."""

    inode: int
    byte: int = 0
    head: str = ""
    tail: str = ""

    @classmethod
    def read(cls, json: Json) -> Mark:
        return cls(json["inode"], json["byte"], json["head"], json["tail"])

    def json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @property
    def known(self) -> int:
        """How many bytes before `byte` are known."""
        return min(self.byte, BYTES)

    def has_tail(self, data: bytes) -> bool:
        """data: the `known` bytes before `byte`."""
        return len(data) == self.known and (not data or _digest(data) == self.tail)

    def fits(self, fd: int) -> bool:
        """Whether an open file begins with what was read."""
        if os.fstat(fd).st_size < self.byte:
            return False
        head = os.pread(fd, self.known, 0)
        return (not head or _digest(head) == self.head) and self.has_tail(
            os.pread(fd, self.known, self.byte - self.known)
        )

    def after(self, before: bytes, data: bytes) -> Mark:
        """When `data` was read, too. before: the `known` bytes before it."""
        byte, last = self.byte + len(data), (before + data[-BYTES:])[-BYTES:]
        head = self.head if self.byte >= BYTES else _digest((before + data)[:BYTES])
        return Mark(self.inode, byte, head, _digest(last))

    def moved(self, inode: int) -> Mark:
        """The same of another file that begins like this one."""
        return dataclasses.replace(self, inode=inode)


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=12).hexdigest()
