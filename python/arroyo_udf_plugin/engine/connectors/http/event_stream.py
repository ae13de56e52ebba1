"""The syntax of server-sent events, as HTML has it.

    stream = EventStream("7")
    for event in stream.feed(b"id: 8\\ndata: a\\n\\n"): event.id, event.name, event.data

Guarantees: lines end with CR, LF or both, wherever parts of the stream begin. An event without data is none. What the
end of the stream cuts off is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class ServerEvent:
    """id: the last one that was told, by this event or by one before."""

    id: str
    name: str
    data: bytes


class EventStream:
    """last_id: of the events before. retry: the seconds that the server wants to be left alone before somebody comes
    back; None: it does not say."""

    def __init__(self, last_id: str) -> None:
        self.retry: float | None = None
        self._id, self._rest, self._is_first = last_id, b"", True
        self._data: list[bytes] = []
        self._name = ""

    def feed(self, part: bytes) -> Iterator[ServerEvent]:
        """part: the next bytes, as they come."""
        text = self._rest + part
        if self._is_first:
            if len(text) < 3 and b"\xef\xbb\xbf".startswith(text):
                self._rest = text
                return
            text, self._is_first = text.removeprefix(b"\xef\xbb\xbf"), False
        is_cut = text.endswith(b"\r")  # perhaps a LF follows
        whole = text[:-1] if is_cut else text
        lines = whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop() + (b"\r" if is_cut else b"")
        for line in lines:
            if (event := self._line(line)) is not None:
                yield event

    def _line(self, line: bytes) -> ServerEvent | None:
        if not line:
            data, name = self._data, self._name
            self._data, self._name = [], ""
            return ServerEvent(self._id, name or "message", b"\n".join(data)) if data else None
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode(errors="replace")
        elif field == b"id" and b"\0" not in value:
            self._id = value.decode(errors="replace")
        elif field == b"retry" and value.isdigit():
            self.retry = int(value) / 1000
        return None
