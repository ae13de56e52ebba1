"""A file that is written: how many bytes, and their checksum, without a copy of them."""

from __future__ import annotations

import hashlib
import io
from typing import IO, Any


class Summed(io.RawIOBase):
    """Hands on what is written, and counts and sums it."""

    def begin(self, file: IO[bytes]) -> None:
        self._file, self._hash, self.size = file, hashlib.sha256(), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._hash.update(data)
        self._file.write(data)
        self.size += len(data)
        return len(data)

    @property
    def sum(self) -> str:
        """SHA-256."""
        return self._hash.hexdigest()
