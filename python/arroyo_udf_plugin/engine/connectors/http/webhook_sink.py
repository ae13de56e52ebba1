"""Rows that are sent to an address, each as an object of JSON in a request of its own, or several in an array.

With checkpoints, an epoch's rows wait in the checkpoints' store, and are sent when it is committed. Each request has a
key (Idempotency-Key) that follows from the pipeline, the sink, the slice, the epoch and the row, so a resumed engine
sends the same rows with the same keys. What was sent is noted there, too, before the rows go.

Guarantees: at least once; exactly once for a receiver who takes each key once. Requests that fail for a while are sent
again. What the receiver refuses is an error, or is dropped and told in the log.
"""

from __future__ import annotations

import collections
import hashlib
import hmac
import itertools
import json
import logging
import secrets
import threading
import time
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Annotated, Any, Literal, Self

import pyarrow as pa
import pydantic

from ....errors import InvalidArgument
from ..described import Output, Several
from ..interface import Json, LaterRows, Sealed, Stage
from ..json_writer import JsonTexts
from ..schemas import index_of
from ..staged_rows import StagedRows
from ..table_options import TableOptions, WrongOption, chosen
from .endpoint import CONNECTS, HttpEndpoint, Retries, endpoint_keys, library

_log = logging.getLogger(__name__)

PATIENCE = 120.0
"""Seconds for a receiver that is away."""
_STALLED = 30.0  # seconds for one answer


class WebhookOutput(HttpEndpoint, Output):
    """Rows that are sent to an address by POST."""

    type: Literal["webhook"] = "webhook"

    rows: Annotated[int, pydantic.Field(ge=1, le=10_000)] = 1
    """The rows of a request. One is an object; several are an array of objects."""

    concurrency: Annotated[int, pydantic.Field(ge=1, le=100)] = 10
    """The requests that are under way at once, of each slice. 1: rows arrive in their order."""

    secret: Annotated[str | None, pydantic.Field(repr=False, min_length=1)] = None
    """A secret that the receiver knows, too: each request has its HMAC-SHA256 over the body, `sha256=` and hexadecimal
    digits, in `signature_header`."""

    signature_header: Annotated[str, pydantic.Field(pattern=r"^[A-Za-z0-9-]+$")] = "X-Signature-256"
    """The header of signatures."""

    refused: Literal["fail", "drop"] = "fail"
    """What happens to a request that the receiver refuses for good, with a status such as 400."""

    columns: Several[str] | None = None
    """Those of the object; otherwise all."""

    timestamps: Literal["rfc3339", "unix_millis"] | None = None
    """How JSON has times: see sinks of files."""

    decimals: Literal["string", "number"] = "string"
    """How JSON has decimals. Not every reader keeps all digits of a number."""

    json_columns: Several[str] = ()
    """Columns whose texts are JSON."""

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        format_ = options.take("format")
        if format_ is not None and format_.value != "json":
            raise WrongOption(f"format = '{format_.value}': rows are sent as json", format_.at)
        keys = {
            "rows": options.read("sink.rows", int, "a whole number"),
            "concurrency": options.read("sink.concurrency", int, "a whole number"),
            "secret": options.text("sink.secret"),
            "signature_header": options.text("sink.signature_header"),
            "refused": options.one_of("sink.refused", {"fail": "fail", "drop": "drop"}),
            "timestamps": options.json_timestamps(),
            "decimals": options.json_decimals(),
            "json_columns": options.json_columns(),
        }
        return cls(**endpoint_keys(options), **chosen(keys))

    def check(self, schema: pa.Schema) -> None:
        self._texts(schema, "webhook")

    def sink(
        self, schema: pa.Schema, slice: int, stage: Stage | None, pipeline: str, name: str
    ) -> StagedWebhookSink | DirectWebhookSink:
        texts = self._texts(schema, name)
        if stage is None:
            return DirectWebhookSink(self, texts, name)
        return StagedWebhookSink(self, texts, slice, stage, pipeline, name)

    def _texts(self, schema: pa.Schema, name: str) -> _Texts:
        return _Texts(self, schema, f"{name} ({self.place})")


class _Texts:
    """Rows as texts of JSON. Raises InvalidArgument."""

    def __init__(self, described: WebhookOutput, schema: pa.Schema, name: str) -> None:
        names = schema.names if described.columns is None else described.columns
        self._at = [index_of(schema, column, f"{name}: ") for column in names]
        own = pa.schema([schema.field(at) for at in self._at])
        self._json = JsonTexts(name, own, described.timestamps, described.decimals, described.json_columns)

    def of(self, batch: pa.RecordBatch) -> pa.Table:
        return pa.table({"value": self._json.of(batch.select(self._at))})


class _Sender:
    """Sends bodies, several at once. Any thread."""

    def __init__(self, described: WebhookOutput) -> None:
        httpx = library()
        self._described = described
        self._client: Any = httpx.Client(
            headers={"Content-Type": "application/json", **described.headers},
            timeout=httpx.Timeout(_STALLED, connect=CONNECTS),
            limits=httpx.Limits(max_connections=described.concurrency),
        )
        self._pool = ThreadPoolExecutor(described.concurrency, "arroyo-udf-webhook")

    def send(self, texts: Iterable[pa.Table], key: str) -> None:
        """Returns when all have been taken. key: of all rows together. Raises InvalidArgument for the first that is
        not; others may be on their way then, and are waited for."""
        waiting = collections.deque[Future[None]]()
        stop = threading.Event()
        try:
            for own, body in self._requests(texts, key):
                waiting.append(self._pool.submit(self._send, own, body, stop))
                if len(waiting) > 2 * self._described.concurrency:
                    waiting.popleft().result()
            while waiting:
                waiting.popleft().result()
        finally:
            stop.set()
            for left in waiting:
                left.cancel()
            for left in waiting:
                if not left.cancelled():
                    left.exception()

    def _requests(self, texts: Iterable[pa.Table], key: str) -> Iterator[tuple[str, bytes]]:
        """The key and the body of each."""
        rows = (text.as_py() for table in texts for text in table.column("value"))
        size = self._described.rows
        for number in itertools.count():
            some = list(itertools.islice(rows, size))
            if not some:
                return
            body = some[0] if size == 1 else f"[{','.join(some)}]"
            own = hashlib.sha256(f"{key}/{number * size}/{size}".encode()).hexdigest()[:32]
            yield own, body.encode()

    def _send(self, key: str, body: bytes, stop: threading.Event) -> None:
        described, retries, until = self._described, Retries(), time.monotonic() + PATIENCE
        httpx, headers = library(), {"Idempotency-Key": key}
        if described.secret is not None:
            digest = hmac.new(described.secret.encode(), body, hashlib.sha256).hexdigest()
            headers[described.signature_header] = f"sha256={digest}"
        while not stop.is_set():
            asked: Mapping[str, str] = {}
            try:
                answer = self._client.post(described.endpoint, content=body, headers=headers)
            except (httpx.InvalidURL, httpx.UnsupportedProtocol):
                raise described.no_address() from None
            except httpx.TransportError as error:
                why = str(error) or type(error).__name__
            else:
                verdict, why, asked = described.verdict(answer.status_code), str(answer.status_code), answer.headers
                if verdict == "taken":
                    return
                if verdict == "refused" and described.refused == "fail":
                    raise described.refusal(answer.status_code, answer.content)
                if verdict == "refused":
                    _log.warning("%s refuses the request %s with %s: it is dropped", described.place, key, why)
                    return
            wait = retries.next(asked)
            if time.monotonic() + wait > until:
                raise described.away(why)
            stop.wait(wait)
        raise InvalidArgument(f"{described.place}: nothing more is sent")

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._client.close()


class StagedWebhookSink:
    """With checkpoints. slice: of this engine's rows."""

    def __init__(
        self, described: WebhookOutput, texts: _Texts, slice: int, stage: Stage, pipeline: str, name: str
    ) -> None:
        self.name = name
        self._place, self._texts, self._sender = described.place, texts, _Sender(described)
        self._staged = StagedRows(stage, "webhook", name, slice, described.place)
        self._stage, self._owner = stage, f"{stage.history}/{pipeline}/{name}"

    def write(self, batch: pa.RecordBatch) -> None:
        self._staged.add(self._texts.of(batch))

    def seal(self, epoch: int) -> Sealed | None:
        return self._staged.seal()

    def apply(self, epoch: int, stored: Json) -> None:
        if self._sent(stored["slice"]) < epoch:
            try:
                self._sender.send(self._staged.read(stored, epoch), f"{self._owner}/{stored['slice']}/{epoch}")
            except InvalidArgument as error:
                error.add_note(f"epoch {epoch} is committed: resume when the receiver takes its rows")
                raise
            self._note(stored["slice"], epoch)
        self._staged.delete(stored)

    def _named(self, slice: int) -> str:
        """The name in the store of what was sent last."""
        return f"webhook-{urllib.parse.quote(self.name, safe='')}/sent-{slice:03}"

    def _note(self, slice: int, epoch: int) -> None:
        """Before its rows are removed: nobody misses them then."""
        text = f"{self._owner}/{slice}/{epoch}"
        digest = hashlib.sha256(text.encode()).hexdigest()
        self._stage.put(self._named(slice), json.dumps({"sent": text, "sha256": digest}).encode())

    def _sent(self, slice: int) -> int:
        """The last epoch of which all rows have been taken. Raises InvalidArgument."""
        try:
            data = self._stage.get(self._named(slice))
        except FileNotFoundError:
            return 0
        try:
            noted = json.loads(data)
            text = noted["sent"]
            if hashlib.sha256(text.encode()).hexdigest() != noted["sha256"]:
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InvalidArgument(
                f"{self._place}: rows/{self._named(slice)} in the checkpoints' store is damaged: restore it from a "
                "copy, or remove it: then rows of the last epoch may be sent again, with the same keys"
            ) from None
        owner, _, epoch = text.rpartition("/")
        return int(epoch) if owner == f"{self._owner}/{slice}" else 0

    def check(self, committed: int, epoch: int, waiting: Sequence[Json]) -> None:
        for stored in waiting:
            if self._sent(stored["slice"]) < epoch:
                self._staged.check(stored, epoch)

    def clear(self, committed: int) -> None:
        self._staged.clear(committed)

    def later_rows(self, epoch: int, later: Mapping[int, Sequence[Json] | None]) -> LaterRows:
        has_rows = any(stored is None or len(stored) for stored in later.values())
        what = "were sent, and are sent again with other keys" if has_rows else "were not sent"
        return LaterRows(self.name, "doubled" if has_rows else "none", f"later rows of {self._place} {what}")

    def withdraw(self, epochs: Sequence[tuple[int, int]]) -> None:
        """Nothing takes back what was sent."""

    def finish(self) -> None:
        """There are checkpoints."""

    def close(self) -> None:
        self._sender.close()


class DirectWebhookSink:
    """Without checkpoints: rows are sent when they come."""

    def __init__(self, described: WebhookOutput, texts: _Texts, name: str) -> None:
        self.name = name
        self._texts, self._sender = texts, _Sender(described)
        self._run, self._batches = secrets.token_hex(16), itertools.count()

    def write(self, batch: pa.RecordBatch) -> None:
        self._sender.send([self._texts.of(batch)], f"{self._run}/{next(self._batches)}")

    def finish(self) -> None:
        """All rows have been taken."""

    def close(self) -> None:
        self._sender.close()
