"""`call_info()`: what a call can ask about itself (R10). The other half is native/python/src/call_info.rs.

Each call of an async or blocking function has its information in a context variable. Tasks that it makes, and
`asyncio.to_thread`, inherit it and keep it after the call has ended. Importing this module turns that on, for about
200 ns per call; so the package imports it only when a source asks for it.
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
    """One call for one row.

    row_id: the engine's number of the row.
    attempt: 1 for the row's first call, 2 for the next one after an error or a timeout.
    deadline: when the call or its row times out, in seconds of `time.monotonic()` (the event loop's `time()` is the
        same clock); None: never.
    idempotency_key: 24 bytes, the same for all calls for the row, even after a restart, and different for every other
        row: what the engine gave with it, such as where it comes from; if it gave none, the 16 bytes of the lineage
        given at `start`, then the row's id, most significant byte first.
    trace_parent: the engine's trace context of the row, as W3C defines it (`traceparent`); None: it gave none.
    """

    row_id: int
    attempt: int
    deadline: float | None
    idempotency_key: bytes
    trace_parent: str | None = None


def call_info() -> CallInfo:
    """Describes the current call: of the function itself, or of anything that it calls, awaits or spawns.

    Raises RuntimeError outside of calls of async and blocking functions: in sync functions, in the Context's init and
    close, and in threads that did not inherit the context variables (`asyncio.to_thread` does). Also raises it in a
    micro-batch, which has several rows: use `call_infos`.
    """
    row = _current("call_info").row()
    if row is None:
        raise RuntimeError("call_info() in a micro-batch, which is a call for several rows: use call_infos()")
    return _info(row)


def call_infos() -> tuple[CallInfo, ...]:
    """As `call_info`, also in a micro-batch: one per row, in the order of the lists."""
    return tuple(map(_info, _current("call_infos").rows()))


def _current(name: str) -> CurrentCall:
    call = _call.get(None)
    if call is None:
        raise RuntimeError(
            f"{name}() outside of a call: it is for async and blocking functions, and what they call, await or spawn;"
            " import it where your module begins, not within a call"
        )
    return call


def _info(fields: tuple[int, int, int, bytes, str | None]) -> CallInfo:
    row_id, attempt, deadline, idempotency_key, trace_parent = fields
    return CallInfo(row_id, attempt, None if deadline == _NEVER else deadline / 1e9, idempotency_key, trace_parent)
