"""A slice's epochs in Redis: scripts write an epoch's rows together with its number.

    epochs = RedisEpochs(server, writing, "arroyo-udf:flights:out:0", history)
    epochs.begin(6)                                   at a start: from here on no older process writes
    epochs.write(7, lambda: staged.read(...))         again and again, also by another process

The number is in a hash of its own, the note: the history of epochs, the last whole epoch, the rows that are there of
the next one, and the process that may write. A script is a transaction: nobody sees a part of it, and Redis keeps all
of it or nothing. Many rows are several scripts, so that others need not wait for long.

Guarantees: each row is written once, whenever a process or the server ends, as long as the server keeps what it has
confirmed. A process that begins stops older ones: they raise Fenced. A key that holds something of another type is an
InvalidArgument before its script has written anything.

Assumes: nobody changes a note. That one is gone is noticed. One thread at a time.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

import pyarrow as pa

from ....errors import Fenced, InvalidArgument
from .server import RedisServer

Kind = Literal["string", "hash", "list", "stream"]
_ROWS, _BYTES = 10_000, 8 << 20  # of a script
_FIELDS = ("history", "epoch", "next", "rows", "writer")

# KEYS: the note. ARGV: writer, "1" if it has written before, history, and the number if the note says nothing.
_TAKE = """
local writer = redis.call('HGET', KEYS[1], 'writer')
if ARGV[2] == '1' and writer and writer ~= ARGV[1] then return 'fenced' end
if ARGV[4] and redis.call('HGET', KEYS[1], 'history') ~= ARGV[3] then
    redis.call('DEL', KEYS[1])
    redis.call('HSET', KEYS[1], 'history', ARGV[3], 'epoch', ARGV[4], 'next', '', 'rows', 0)
end
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'writer', ARGV[1]) end
return redis.call('HMGET', KEYS[1], 'history', 'epoch', 'next', 'rows', 'writer')
"""
# KEYS: the note, if there is one. ARGV: writer, epoch, rows before, rows after, "1" if these are the last ones, what
# and how; then keys and values of the rows, and of hashes a field between them.
_WRITE = """
if KEYS[1] then
    local noted = redis.call('HMGET', KEYS[1], 'writer', 'epoch', 'next', 'rows')
    if noted[1] ~= ARGV[1] then return noted[1] and 'fenced' or 'gone' end
    if tonumber(noted[2]) >= tonumber(ARGV[2]) then return 'written' end
    local done = noted[3] == ARGV[2] and noted[4] or '0'
    if done ~= ARGV[3] then return 'gone' end
end
local kind, how, most = ARGV[6], ARGV[7], ARGV[8]
local width, seen = kind == 'hash' and 3 or 2, {}
for at = 9, #ARGV, width do
    local key = ARGV[at]
    if not seen[key] then
        local found = redis.call('TYPE', key).ok
        if found ~= 'none' and found ~= kind then return {key, found} end
        seen[key] = true
    end
end
for at = 9, #ARGV, width do
    local key, value = ARGV[at], ARGV[at + 1]
    if kind == 'hash' then redis.call('HSET', key, value, ARGV[at + 2])
    elseif kind == 'stream' and most ~= '' then redis.call('XADD', key, 'MAXLEN', '~', most, '*', how, value)
    elseif kind == 'stream' then redis.call('XADD', key, '*', how, value)
    elseif kind == 'list' then redis.call(how == 'prepend' and 'LPUSH' or 'RPUSH', key, value)
    elseif how ~= '' then redis.call('SET', key, value, 'PX', how)
    else redis.call('SET', key, value) end
end
if kind == 'list' and most ~= '' then
    for key in pairs(seen) do
        if how == 'prepend' then redis.call('LTRIM', key, 0, tonumber(most) - 1)
        else redis.call('LTRIM', key, -tonumber(most), -1) end
    end
end
if KEYS[1] and ARGV[5] == '1' then redis.call('HSET', KEYS[1], 'epoch', ARGV[2], 'next', '', 'rows', 0)
elseif KEYS[1] then redis.call('HSET', KEYS[1], 'next', ARGV[2], 'rows', ARGV[4]) end
return 'written'
"""


@dataclasses.dataclass(frozen=True)
class RedisWriting:
    """kind: what each row becomes. how: the field of streams, "append" or "prepend" of lists, the milliseconds that
    strings live. most: the length of lists and streams."""

    kind: Kind
    how: str = ""
    most: int | None = None

    def rows(self, server: RedisServer, client: Any, note: str | None, head: tuple[Any, ...], rows: pa.Table) -> Any:
        """What the script says. Raises InvalidArgument, RedisError."""
        columns = [column.to_pylist() for column in rows.columns]
        values = [value for row in zip(*columns, strict=True) for value in row]
        most = "" if self.most is None else self.most
        script = client.register_script(_WRITE)
        said = script([] if note is None else [note], [*head, self.kind, self.how, most, *values])
        if isinstance(said, list):
            key, found = (text.decode(errors="replace") for text in said)
            raise InvalidArgument(
                f"{server.place}: the key {key!r} is a {found}, and no {self.kind}: rename it, or choose another "
                "key_prefix"
            )
        return said


@dataclasses.dataclass(frozen=True)
class RedisNote:
    """What a note says. epoch: the last whole one. rows: of `next` that are there."""

    history: str
    epoch: int
    next: int | None
    rows: int

    def done(self, epoch: int) -> int:
        """The rows of an epoch that are there."""
        return self.rows if self.next == epoch else 0


def noted(server: RedisServer, client: Any, note: str) -> RedisNote | None:
    """Without a change of anything. Raises InvalidArgument."""
    return _noted(server.ask(client, lambda client: client.hmget(note, _FIELDS)))


def _noted(fields: list[bytes | None]) -> RedisNote | None:
    history, epoch, next_, rows, _ = fields
    if history is None or epoch is None:
        return None
    return RedisNote(history.decode(), int(epoch), int(next_) if next_ else None, int(rows or 0))


class RedisEpochs:
    """note: the key of the note."""

    def __init__(self, server: RedisServer, client: Any, writing: RedisWriting, note: str, history: str) -> None:
        self._server, self._client, self._writing = server, client, writing
        self._note, self._history = note, history
        self._writer, self._is_known = secrets.token_hex(8), False

    def begin(self, number: int) -> None:
        """number: of the last epoch that may be there, if the note says nothing. Raises Fenced, InvalidArgument."""
        self._server.ask(self._client, lambda client: self._take(client, number))

    def write(self, epoch: int, rows: Callable[[], Iterable[pa.Table]]) -> None:
        """Does nothing if the epoch is there. Raises Fenced, InvalidArgument."""
        self._server.ask(self._client, lambda client: self._write(client, epoch, rows))

    def _take(self, client: Any, *number: int) -> RedisNote | None:
        """From here on, this process may write."""
        before = "1" if self._is_known else ""
        said = client.register_script(_TAKE)([self._note], [self._writer, before, self._history, *number])
        if said == b"fenced":
            raise self._fenced()
        found = _noted(said)
        self._is_known = found is not None
        return found

    def _write(self, client: Any, epoch: int, rows: Callable[[], Iterable[pa.Table]]) -> None:
        found = self._take(client)
        if found is None or found.history != self._history:
            raise forgotten(self._server, self._note, epoch)
        if found.epoch >= epoch:
            return
        at = found.done(epoch)
        try:
            parts = list(_parts(rows(), at))
        except InvalidArgument as error:
            last = noted(self._server, client, self._note)
            if last is not None and last.epoch >= epoch:  # rows are removed once they are written
                raise self._fenced() from error
            raise
        for number, part in enumerate(parts, 1):
            is_last = "1" if number == len(parts) else ""
            head = self._writer, epoch, at, at + part.num_rows, is_last
            said = self._writing.rows(self._server, client, self._note, head, part)
            if said == b"fenced":
                raise self._fenced()
            if said != b"written":
                raise forgotten(self._server, self._note, epoch)
            at += part.num_rows

    def _fenced(self) -> Fenced:
        return Fenced(
            f"{self._server.place}: another process writes there for this pipeline, as {self._note} says. This one "
            "stops; leave it to the other one, or resume when that has ended"
        )


def _parts(tables: Iterable[pa.Table], done: int) -> Iterator[pa.Table]:
    """Rows behind the first ones, each part as large as a script may be. There is at least one, perhaps without rows:
    it says that the epoch is whole."""
    is_any = False
    for table in tables:
        skipped = min(done, table.num_rows)
        table, done = table.slice(skipped), done - skipped
        rows = max(1, min(_ROWS, _BYTES * table.num_rows // max(1, table.nbytes)))
        for start in range(0, table.num_rows, rows):
            is_any = True
            yield table.slice(start, rows)
    if not is_any:
        yield pa.table({})


def forgotten(server: RedisServer, note: str, epoch: int) -> InvalidArgument:
    """Whether an epoch was written cannot be known any more."""
    return InvalidArgument(
        f"{server.place}: the key {note} is gone, which says whether rows of epoch {epoch} are there: the server has "
        "lost data, or somebody has removed it. Bring the data back, begin anew with other checkpoints, or go back to "
        "an older checkpoint (--restore), after which later rows come twice"
    )


def of_slices(found: Mapping[int, RedisNote], history: str) -> dict[int, int]:
    """The last whole epochs of this history, by slice."""
    return {slice: last.epoch for slice, last in found.items() if last.history == history}
