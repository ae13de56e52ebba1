"""Which transactions a snapshot of the server has, and the wait until each of them has ended there, too.

A commit is in the log a moment before the server's own table of transactions says so. The snapshot of a new slot comes
from the log, so it may have a transaction that this table does not have yet (PostgreSQL's developers call this "Race
conditions in logical decoding"; it was found here with version 15). Rows that are read in this moment are those from
before the transaction, and the server may even note on them that it has failed.

Guarantees: what is read after the wait has all that was committed before the snapshot.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Sequence
from typing import Self

from ..interrupt import Interrupt
from .wire import Interrupted, Wire

_log = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds for the ends, before a log says what is waited for."""
_TURN = 0.01  # seconds between two looks


@dataclasses.dataclass(frozen=True)
class ServerSnapshot:
    """Transactions are numbers. Those below `lowest` have ended, those from `next` on have not; between them, those
    that are not `running` have."""

    lowest: int
    next: int
    running: frozenset[int]

    @classmethod
    def of(cls, text: str) -> Self:
        """text: as the server writes it."""
        lowest, following, running = text.split(":")
        return cls(int(lowest), int(following), frozenset(int(each) for each in running.split(",") if each))

    @classmethod
    def current(cls, wire: Wire) -> Self:
        """Of the transaction that is open there, otherwise of now."""
        ((text,),) = wire.rows("SELECT pg_current_snapshot()")
        return cls.of((text or b"").decode())

    def has_ended(self, transaction: int) -> bool:
        return transaction < self.lowest or (transaction < self.next and transaction not in self.running)

    def ahead_of(self, now: ServerSnapshot) -> Sequence[int]:
        """Transactions that have ended here, but not there."""
        return sorted(each for each in (*now.running, *range(now.next, self.next)) if self.has_ended(each))


def wait_for_ends(reader: Wire, control: Wire, interrupt: Interrupt, server: str) -> None:
    """Until all transactions that the one of `reader` has as ended have ended on the server. Raises Interrupted."""
    seen = ServerSnapshot.current(reader)
    late: float | None = time.monotonic() + PATIENCE
    while ahead := seen.ahead_of(ServerSnapshot.current(control)):
        if late is not None and time.monotonic() >= late:
            _log.warning("%s: waiting for transactions that commit: %s", server, ", ".join(map(str, ahead)))
            late = None
        if interrupt.wait(_TURN):
            raise Interrupted
