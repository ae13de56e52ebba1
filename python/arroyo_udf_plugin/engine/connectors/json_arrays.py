"""A file that is one JSON array, as newline JSON: each item is a line."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable

from ...errors import InvalidArgument
from .blocks import RECORD_BYTES, more

_scan = json.JSONDecoder().raw_decode
_SPACE = " \t\n\r"


class ArrayLines:
    """read: the file's bytes; also if they are lines already. name: for error texts."""

    def __init__(self, read: Callable[[int], bytes], name: str) -> None:
        self._read, self._name = read, name
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._text: str | None = None  # what follows of an array; None: nothing has been read
        self._is_array = self._ended = False
        self._items = 0

    def read(self, size: int) -> bytes:
        """Lines that have arrived, if it is an array."""
        if self._text is not None and not self._is_array:
            return self._read(size)
        lines: list[str] = []
        while not lines and (data := more(self._read, len(self._text or ""))):
            if self._text is None:
                if not data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
                    self._text = ""
                    return data
                self._is_array = True
                text = self._decoded(data).lstrip(_SPACE)[1:]
            else:
                text = self._text + self._decoded(data)
            lines, self._text = self._taken(text)
            if len(self._text) > RECORD_BYTES:
                raise InvalidArgument(
                    f"{self._name}: item {self._items + 1} is not JSON, or longer than {RECORD_BYTES >> 20} MiB"
                )
        if not lines and self._is_array and not self._ended:
            raise InvalidArgument(f"{self._name}: the array is cut off, or item {self._items + 1} is not JSON")
        return "".join(lines).encode(errors="surrogatepass")

    def _decoded(self, data: bytes) -> str:
        try:
            return self._decode(data)
        except UnicodeDecodeError:
            raise InvalidArgument(f"{self._name}: item {self._items + 1} or one behind it is not UTF-8") from None

    def _taken(self, text: str) -> tuple[list[str], str]:
        """Whole items as lines, and the rest."""
        lines: list[str] = []
        at = 0
        while True:
            at = _after_space(text, at)
            if self._ended:
                if at < len(text):
                    raise InvalidArgument(f"{self._name}: something follows the array")
                return lines, ""
            if text.startswith("]", at) and not self._items:
                self._ended, at = True, at + 1
                continue
            try:
                _, end = _scan(text, at)
            except (ValueError, RecursionError):  # perhaps the rest has not arrived
                return lines, text[at:]
            following = _after_space(text, end)
            if following == len(text):
                return lines, text[at:]
            if text[following] not in ",]":
                raise InvalidArgument(f"{self._name}: item {self._items + 1}: write a comma or ] behind it")
            lines.append(text[at:end].replace("\n", " ").replace("\r", " ") + "\n")
            self._items += 1
            self._ended = text[following] == "]"
            at = following + 1


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
