"""Connections to PostgreSQL in a thread of their own, whose waits another thread can end.

    with Wire(conninfo, interrupt, server) as wire:
        rows = wire.rows("SELECT 1")
        wire.begin_copy("START_REPLICATION ...")
        while (data := wire.copied()) is None:
            wire.wait(10.0)

Guarantees: psycopg is imported only when a connection is made. An error has no password. What passes by itself, such as
a server that restarts, is `Lost`; anything else is `Refused`, with the server's code.

Assumes: one thread; `interrupt` may be set by any.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from ....errors import InvalidArgument
from ..interrupt import Interrupt

_log = logging.getLogger(__name__)

_PARAMETERS = {"client_encoding": "UTF8", "fallback_application_name": "arroyo_udf"}
_OPTIONS = {
    # Texts that mean the same everywhere:
    "timezone": "UTC",
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    # A snapshot may take its time:
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
_CONNECT_SECONDS = "10"
_PATIENCE = 10.0  # seconds for an answer, before a log says what is waited for
_PASSING = ("08", "57P", "53", "58", "XX")  # classes of codes: the connection, a restart, resources
_PASSING_TEXTS = ("the database system is", "too many clients", "connection slots are reserved", "terminating")

Row = Sequence[bytes | None]


class Lost(Exception):
    """The connection is, or there is none yet. The same may succeed later."""


class Interrupted(Exception):
    """The interrupt was set."""


class Refused(Exception):
    """code: an SQLSTATE, or an empty text for a connection that was refused."""

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code


def driver() -> Any:
    """psycopg. Raises InvalidArgument."""
    try:
        import psycopg
        import psycopg.conninfo
    except ImportError as error:
        raise InvalidArgument(
            "changes of PostgreSQL need psycopg: pip install 'arroyo_udf_plugin[postgresql]'"
        ) from error
    return psycopg


def conninfo(uri: str, **more: str) -> str:
    """uri: may have options of its own. Raises InvalidArgument."""
    psycopg = driver()
    try:
        given = psycopg.conninfo.conninfo_to_dict(uri)
    except psycopg.Error:
        raise InvalidArgument("uri: write postgresql://USER:${PASSWORD}@HOST/DATABASE") from None
    options = " ".join([given.pop("options", None) or "", *(f"-c {name}={value}" for name, value in _OPTIONS.items())])
    given = {"connect_timeout": _CONNECT_SECONDS} | given | _PARAMETERS | {"options": options.strip()} | more
    return str(psycopg.conninfo.make_conninfo(**given))


class Wire:
    """server: its name, for people. Raises Lost, Refused, and Interrupted from all that waits."""

    def __init__(self, conninfo: str, interrupt: Interrupt, server: str) -> None:
        self._interrupt, self._server = interrupt, server
        self._pq = driver().pq
        self._connection = self._pq.PGconn.connect(conninfo.encode())
        if self._connection.status != self._pq.ConnStatus.OK:
            text = self._text()
            self._connection.finish()
            passes = "FATAL:" not in text or any(passing in text for passing in _PASSING_TEXTS)
            raise Lost(text) if passes else Refused(text, "")
        self._connection.nonblocking = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.finish()

    @property
    def pid(self) -> int:
        """Of the server's process."""
        return int(self._connection.backend_pid)

    def literal(self, text: bytes) -> str:
        escaped: bytes = self._pq.Escaping(self._connection).escape_literal(text)
        return escaped.decode()

    # ---- Statements ----

    def rows(self, statement: str, waits_for: str = "an answer") -> list[Row]:
        """waits_for: what the log says if it takes long."""
        result = self._result(statement, waits_for)
        fields = range(result.nfields)
        return [[result.get_value(row, field) for field in fields] for row in range(result.ntuples)]

    def begin_copy(self, statement: str) -> None:
        """Both sides may send from now on."""
        self._result(statement, "an answer")

    def _result(self, statement: str, waits_for: str) -> Any:
        self._asked(lambda: self._connection.send_query(statement.encode()))
        late: float | None = time.monotonic() + _PATIENCE
        while True:
            self._asked(self._connection.consume_input)
            if not self._connection.is_busy():
                break
            try:
                self.wait(1.0)
            except Interrupted:
                self._connection.get_cancel().cancel()
                raise
            if late is not None and time.monotonic() > late:
                _log.warning("%s: waiting for %s", self._server, waits_for)
                late = None
        result = self._connection.get_result()
        states = self._pq.ExecStatus
        if result is None:
            raise Lost(self._text())
        if result.status in (states.TUPLES_OK, states.COMMAND_OK):
            while self._connection.get_result() is not None:
                pass
            return result
        if result.status == states.COPY_BOTH:
            return result
        raise self._failure(result)

    # ---- What is copied ----

    def copied(self) -> bytes | None:
        """The next message; None: there is none now."""
        size, data = self._connection.get_copy_data(1)
        if size > 0:
            return bytes(data)
        if size == 0:
            return None
        result = self._connection.get_result()
        raise Lost(self._text()) if result is None else self._failure(result)

    def look(self) -> None:
        """Takes what has arrived."""
        self._asked(self._connection.consume_input)

    def wait(self, seconds: float) -> None:
        """Until something arrives, at most so long."""
        if self._interrupt.wait(seconds, self._connection.socket):
            raise Interrupted

    def send(self, message: bytes) -> None:
        self._asked(lambda: self._connection.put_copy_data(message))
        self._asked(self._connection.flush)

    # ---- Errors ----

    def _asked(self, ask: Any) -> None:
        try:
            ask()
        except driver().Error:
            raise Lost(self._text()) from None

    def _text(self) -> str:
        return " ".join(self._connection.get_error_message().split()) or "the connection was lost"

    def _failure(self, result: Any) -> Exception:
        code = (result.error_field(self._pq.DiagnosticField.SQLSTATE) or b"").decode()
        text = (result.error_field(self._pq.DiagnosticField.MESSAGE_PRIMARY) or b"").decode("utf-8", "replace")
        if not code or code.startswith(_PASSING):
            return Lost(text or self._text())
        return Refused(text, code)
