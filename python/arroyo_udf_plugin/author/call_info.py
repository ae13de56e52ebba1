"""`call_info()`: what a call can ask about itself (R10). The other half is native/python/src/call_info.rs.

Each call of an async or blocking function finds its information in a context variable, so the Tasks that it makes, and
`asyncio.to_thread`, know it as well, and go on knowing it after the call has ended. Calls are told from the import of
this module on, which costs each some 200 nanoseconds; so it is imported only by those who ask.
"""

from contextvars import ContextVar
from dataclasses import dataclass

from .._native import CurrentCall, set_call_variable

__all__ = ["CallInfo", "call_info", "call_infos"]

_call: ContextVar[CurrentCall] = ContextVar("arroyo_udf_call")
set_call_variable(_call)

_NEVER = 2**64 - 1


@dataclass(frozen=True, slots=True)
class CallInfo:
    """About one call, for one row.

    row_id: as the engine has numbered the row.
    attempt: 1 for the first call for the row, 2 for the next after an error or a timeout.
    deadline: when the call, or its row, times out, in seconds of `time.monotonic()`, which is the event loop's `time()`
        as well; None for never.
    idempotency_key: 24 bytes, the same for all calls for the row, also after a restore, and for no other row: the 16
        bytes of the lineage that the engine has given at `start`, and the row's id, most significant byte first.
    """

    row_id: int
    attempt: int
    deadline: float | None
    idempotency_key: bytes


def call_info() -> CallInfo:
    """About the call within which this is called, from the function itself or from what it calls, awaits or spawns.

    Raises RuntimeError where there is none: outside of the calls of async and blocking functions, in the Context's init
    and close, and in threads that have not inherited the context variables (those of `asyncio.to_thread` have); and in
    a micro-batch.
    """
    row = _current("call_info").row()
    if row is None:
        raise RuntimeError("call_info() in a micro-batch, which is a call for several rows: use call_infos()")
    return _info(row)


def call_infos() -> tuple[CallInfo, ...]:
    """As `call_info`, in a micro-batch as well: one for each row, in the order of the lists."""
    return tuple(map(_info, _current("call_infos").rows()))


def _current(name: str) -> CurrentCall:
    call = _call.get(None)
    if call is None:
        raise RuntimeError(
            f"{name}() outside of a call: it is for async and blocking functions, and what they call, await or spawn;"
            " import it where your module begins, not within a call"
        )
    return call


def _info(fields: tuple[int, int, int, bytes]) -> CallInfo:
    row_id, attempt, deadline, idempotency_key = fields
    return CallInfo(row_id, attempt, None if deadline == _NEVER else deadline / 1e9, idempotency_key)
