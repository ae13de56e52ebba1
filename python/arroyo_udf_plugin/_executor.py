"""The asyncio driver of a Python plugin: one event loop on one thread serves all started functions of the interpreter.

How a row gets to its coroutine and back (the other half is native/python/src/executor.rs):

- The host's `send` puts a batch into the native runtime; if this driver sleeps, an eventfd wakes the loop, which calls
  `turn`.
- `turn` lets idle *slots* go on. A slot is one long-lived Task: it takes attempt after attempt from the runtime, so
  a row needs no Task of its own, and a function that never suspends needs one slot for all of its rows. Values are
  converted, and the function is called, in native code (`Slot.begin`, `ended`, `failed`), which answers the coroutine
  to await.
- A slot that finds no attempt parks on its `Parker`; `fire()` steps it at once.
- Results are visible to the host at once; it is woken once a turn, not once a row.

Guarantees: an exception of a row, whatever its kind, ends that row only. Nothing here waits while it holds the loop.
"""

from __future__ import annotations

import asyncio
import io
import logging
import signal
import threading
from collections.abc import Awaitable
from typing import Any

from . import _native
from ._traceback import describe

__all__ = ["start", "stop_loop"]

INIT_SECONDS = 10.0
"""How long the Context's `init` may take (R12)."""

_log = logging.getLogger("arroyo_udf_plugin")
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they stay with the host's threads
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop, _thread
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_serve, args=(_loop,), name="udf-loop", daemon=True)
            _thread.start()
        return _loop


def stop_loop() -> None:
    """Ends the loop's thread, before the interpreter ends. Waits at most a second for it."""
    with _lock:
        if _loop is not None and _thread is not None and _thread.is_alive():
            _loop.call_soon_threadsafe(_loop.stop)
            _thread.join(1.0)


def start(runtime: _native.Runtime) -> None:
    """Makes a runtime work, called in the host's thread: creates the Context, waits for its init.

    Raises what the Context raised, or TimeoutError.
    """
    server = _Server(_running_loop(), runtime)
    asyncio.run_coroutine_threadsafe(server.open(), server.loop).result()


class _Server:
    """One runtime on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, runtime: _native.Runtime) -> None:
        self.loop = loop
        self.runtime = runtime
        self.context: Any = None
        self.idle: list[_native.Parker] = []
        self.tasks: list[asyncio.Task[None]] = []  # the loop itself keeps only weak references
        self.most_tasks = runtime.allowed_in_flight()
        self.closing = False

    async def open(self) -> None:
        context_class = self.runtime.context_class()
        if context_class is not None:
            self.context = context_class()
            if hasattr(self.context, "init"):
                try:
                    await asyncio.wait_for(self.context.init(), INIT_SECONDS)
                except TimeoutError as error:
                    raise TimeoutError(f"init of the Context took more than {INIT_SECONDS:g} s") from error
            self.runtime.set_context(self.context)
        self.runtime.serve(lambda: self.loop.call_soon(self.turn))
        self.loop.add_reader(self.runtime.fileno(), self.turn)
        self.turn()

    def turn(self) -> None:
        """Does what there is to do now; called when the eventfd wakes the loop, or scheduled by the runtime."""
        if self.closing:
            return
        runtime, idle = self.runtime, self.idle
        try:
            for task in runtime.begin_turn():
                task.cancel()
            for row, stuck in runtime.take_stuck():
                self.report_stuck(row, stuck)
            while idle and runtime.may_start():
                idle.pop().fire()
            if runtime.may_start():
                # All slots are at work. Twice as many from turn to turn: a function that hardly suspends needs few.
                # At most one for each attempt that may run; stuck ones do not count, and keep their slots.
                for _ in range(max(1, min(len(self.tasks), self.most_tasks - len(self.tasks)))):
                    self.tasks.append(self.loop.create_task(self.slot()))
            if not runtime.end_turn():
                if runtime.is_settled():
                    self.closing = True
                    self.loop.remove_reader(runtime.fileno())
                    while idle:  # every slot is, and ends now; here, for a Task cannot be stepped within another one
                        idle.pop().fire()
                    self.tasks = [self.loop.create_task(self.close())]
                else:
                    runtime.again()
        except BaseException as error:
            runtime.poison(f"the driver failed: {describe(error)}")
            raise

    def report_stuck(self, row: int, task: asyncio.Task[None] | None) -> None:
        """Says, once, that an attempt ignores its cancellation, and where it is (R8)."""
        stack = io.StringIO()
        if task is not None:
            task.print_stack(limit=5, file=stack)
        _log.warning("%s, row %d: a call ignores its cancellation\n%s", self.runtime.name(), row, stack.getvalue())

    async def slot(self) -> None:
        slot = self.runtime.slot()
        slot.attach(asyncio.current_task())
        begin, ended, failed = slot.begin, slot.ended, slot.failed
        parker = _native.parker(self.loop)
        awaitable: Awaitable[Any] | None = begin()
        try:
            while True:
                if awaitable is None:
                    if self.closing:
                        return
                    self.idle.append(parker)
                    try:
                        await parker
                    except asyncio.CancelledError:
                        continue  # somebody cancels all Tasks of the loop; a slot goes on
                    awaitable = begin()
                    continue
                try:
                    result = await awaitable
                except BaseException as error:
                    awaitable = failed(error)
                else:
                    awaitable = ended(result)
        finally:
            slot.attach(None)

    async def close(self) -> None:
        """Ends the Context, after the last attempt has ended (R12)."""
        failure = None
        if hasattr(self.context, "close"):
            try:
                await self.context.close()
            except BaseException as error:
                failure = describe(error)
        self.context = None
        self.runtime.closed(failure)
