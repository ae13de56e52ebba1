"""The asyncio executor of a Python plugin: one event loop on one thread serves all started functions of an interpreter.

How a row gets to its coroutine and back (the other half is native/python/src/asyncio):

- The host's `send` puts a batch into the native runtime; if the executor sleeps, an eventfd wakes the loop, which
  calls `turn`.
- `turn` lets idle *slots* go on. A slot is one long-lived Task: it takes attempt after attempt from the runtime, so
  a row needs no Task of its own, and a function that never suspends needs one slot for all of its rows. Values are
  converted, and calls run, in native code: the `Slot` is the Task's coroutine, and yields what its call yields.
- A slot that finds no attempt parks on its `Parker`; a turn steps it at once.
- A call that leaves a mark on its Task (a context variable, a reference, a cancellation) spends the slot: it ends, and
  a new one takes its place. So a call never meets another one's marks, as if each had a Task of its own.
- Results are visible to the host at once; it is woken when nothing is left to start, and at the end of a turn, not
  once per row.
- One more Task per runtime runs the Context's `init`, waits for the end, and runs its `close`.

Guarantees: any exception of a row ends that row only. Nothing here blocks the loop. Tasks left by calls run until the
runtime stops, and are cancelled before `close`; those left by `init`, after it. A runtime that has ended leaves no
cycle of references, so its memory and its descriptor do not wait for the garbage collector.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import sys
import threading
import time
import types
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import Context, ContextVar
from typing import Any

from .._native import (
    CLOSE_SECONDS,
    CLOSE_TOOK_TOO_LONG,
    GRACE_SECONDS,
    INIT_SECONDS,
    INIT_TOOK_TOO_LONG,
    AsyncioExecutor,
    Slot,
    answer,
    forget_thread,
    frame,
    know_thread,
    watch,
)
from .forked import end
from .stacks import describe, running, suspended

__all__ = ["blocked", "is_idle", "prepare", "start", "stop_loop", "threads"]

DESCRIPTORS = 16
"""More than a new event loop needs."""

LEFT_SECONDS = 1.0
"""How long to wait for cancelled Tasks that calls or `init` have left running."""

OUT_OF_MEMORY = "the asyncio executor failed: MemoryError"

NEXT_TURN_SECONDS = 0.1
"""When the next turn begins after one that failed."""

_lock = threading.RLock()  # making a loop may collect garbage, and a finalizer may start a function
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None
_stopping = False
_servers: set[_Server] = set()  # the loop itself keeps only weak references to Tasks
_blocked_at: set[str] = set()  # places that have been reported
_owner: ContextVar[object] = ContextVar("arroyo_udf_owner")
"""The owner of a Task: an object for a runtime's calls, or for its Context. Tasks inherit it from the Task that makes
them."""


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's, if it is installed. It aborts if it must close a descriptor below 3, or gets none for its pipes."""
    descriptors: list[int] = []
    try:
        while len(descriptors) < DESCRIPTORS:
            descriptors.append(os.eventfd(0))
    except OSError as error:
        raise OSError(
            error.errno, f"an event loop needs {DESCRIPTORS} free file descriptors: {error.strerror}"
        ) from None
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    if min(descriptors) < 3:  # the process has closed its standard streams
        return asyncio.new_event_loop()
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    global _thread
    if threading.get_ident() == threading.main_thread().ident:
        # Before 3.13 the thread that imported `threading` first is the main thread. Once it has ended, a new thread may
        # get its id, and a loop there would set signal handlers. So this thread keeps the id and another one serves.
        _thread = threading.Thread(target=_serve, args=(loop,), name="udf-loop", daemon=True)
        _thread.start()
        _thread.join()
        return
    asyncio.set_event_loop(loop)
    know_thread()
    process = os.getpid()
    try:
        while not _stopping:
            raised: BaseException | None = None
            try:
                loop.run_forever()
            except BaseException as error:  # SystemExit or KeyboardInterrupt in a Task or callback
                raised = error
            if os.getpid() != process:
                end(raised)
            if raised is not None:
                text = f"a task or a callback of the event loop has raised; the loop continues: {describe(raised)}"
                for server in list(_servers):
                    server.executor.warn(f"{server.name}: {text}")
    finally:
        forget_thread()
        asyncio.set_event_loop(None)
        loop.close()


def prepare() -> asyncio.AbstractEventLoop:
    """The loop, which runs. Raises an exception if the system refuses what a loop needs; a later call tries again."""
    global _loop, _thread
    with _lock:
        if _loop is None:
            loop = _new_loop()
            try:
                # In a turn of its own: as a reader it may come when threads that wait for the GIL have just been woken.
                loop.add_reader(watch(), loop.call_soon, answer)
                _thread = threading.Thread(target=_serve, args=(loop,), name="udf-loop", daemon=True)
                _thread.start()
            except BaseException:
                _thread = None
                loop.close()
                raise
            _loop = loop  # only now: a start that fails must not leave a loop that nobody runs
        return _loop


def stop_loop() -> None:
    """Ends the loop's thread before the interpreter ends. Waits at most a second."""
    global _stopping
    with _lock:
        _stopping = True
        if _loop is not None and _thread is not None and _thread.is_alive():
            for task in asyncio.all_tasks(_loop):
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # it ends with the process, as it should
            _loop.call_soon_threadsafe(_loop.stop)
            _thread.join(1.0)


def _after_fork() -> None:
    """In a child that a call has forked: it ends when the call awaits something. The loop's descriptors, which it would
    read, are shared with the parent; and the other calls are the parent's."""
    if _loop is not None and _thread is not None and threading.get_ident() == _thread.ident:
        sys.setprofile(_end_suspended)
        _loop.stop()  # for calls in Tasks of their own


def _end_suspended(frame: types.FrameType, event: str, _: object) -> None:
    """Ends the child when the Context's Task hands over to the loop: that is a return to a profile function.

    Where a call does so, its slot ends the child."""
    if event == "return" and frame.f_code is _Server.live.__code__:
        end(None)


os.register_at_fork(after_in_child=_after_fork)


def is_idle() -> bool:
    """Whether nothing is left on the loop. What is about to end has a second for it."""
    if _loop is None:
        return True
    try:
        return asyncio.run_coroutine_threadsafe(_settle(), _loop).result(2 * LEFT_SECONDS)
    except TimeoutError:
        return False


async def _settle() -> bool:
    own = {_current_task()}
    if others := asyncio.all_tasks() - own:
        await asyncio.wait(others, timeout=LEFT_SECONDS)
    return not _servers and asyncio.all_tasks() <= own


def threads() -> set[threading.Thread]:
    """The loop's threads: its own, and those that wait for calls of `asyncio.to_thread`."""
    pool = getattr(_loop, "_default_executor", None)
    return {thread for thread in (_thread, *getattr(pool, "_threads", ())) if thread is not None}


def start(executor: AsyncioExecutor) -> str | None:
    """Starts a runtime on the loop: creates the Context and waits for its init. Called in the host's thread.

    Returns why that failed, or None.
    """
    loop = prepare()
    if threading.current_thread() is _thread:
        return (
            "this thread runs the event loop of async functions, and would wait for itself: await start_async or"
            " call_async"
        )
    started: Future[str | None] = Future()  # no exception: its traceback would refer to the runtime
    server = _Server(loop, executor)
    loop.call_soon_threadsafe(server.begin, started)
    try:
        return started.result(INIT_SECONDS + GRACE_SECONDS)
    except TimeoutError:
        # The core stops the runtime, so it closes as soon as it has started.
        what = "init of the Context, or another call on the event loop, neither ends nor awaits"
        return describe(TimeoutError(f"not started within {INIT_SECONDS + GRACE_SECONDS:g} s: {what}"))
    except BaseException:  # Ctrl-C
        loop.call_soon_threadsafe(server.give_up_start)
        raise


def blocked() -> str | None:
    """What to report of the blocked loop's thread, with its stack (R9); None: this place has been reported. Called in
    another thread."""
    stack = running(None if _thread is None or _thread.ident is None else frame(_thread.ident))
    if stack and stack[-1] not in _blocked_at:
        _blocked_at.add(stack[-1])
        return (
            "the event loop is blocked, and with it every row of every async function: nothing has been awaited for"
            " half a second; await long operations, or use asyncio.to_thread:\n" + "\n".join(stack)
        )
    return None


class _SlotTask(asyncio.Task[None]):
    """The Task of a slot. A change to it that would outlast the call spends the slot."""

    __slots__ = ()

    def touch(self) -> None:
        slot = self.get_coro()
        assert isinstance(slot, Slot)
        slot.touch()

    def cancel(self, msg: Any | None = None) -> bool:
        self.touch()
        return super().cancel(msg)

    def add_done_callback(self, fn: Callable[[Any], object], /, *, context: Context | None = None) -> None:
        self.touch()
        super().add_done_callback(fn, context=context)

    def set_name(self, value: object, /) -> None:
        self.touch()
        super().set_name(value)


class _Server:
    """One runtime on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, executor: AsyncioExecutor) -> None:
        self.loop = loop
        self.executor = executor
        self.name = executor.name()
        self.process = os.getpid()
        self.context: Any = None
        self.of_calls, self.of_context = object(), object()  # owners of Tasks
        self.clean = Context()  # each call starts from a copy
        self.clean.run(_owner.set, self.of_calls)
        self.slots = 0
        self.stuck: set[asyncio.Task[None]] = set()
        self.most_slots = executor.allowed_in_flight()
        self.closing = False
        self.settled = loop.create_future()
        self.life: asyncio.Task[None] | None = None

    # ---- The Context ----

    def begin(self, started: Future[str | None]) -> None:
        _servers.add(self)
        context = Context()
        context.run(_owner.set, self.of_context)
        self.life = asyncio.Task(self.live(started), loop=self.loop, name=self.name, context=context)

    def give_up_start(self) -> None:
        """The host no longer waits for init."""
        if self.life is not None:
            self.life.cancel()

    async def live(self, started: Future[str | None]) -> None:
        """Runs init and close in one Task with one context, so that close may leave what init has entered."""
        failure = None
        try:
            try:
                await self.init()
            except BaseException as error:
                self.end_child(error)
                started.set_result(describe(_without_our_frames(error)))
                self.closing = True
                self.context = None
                self.loop.remove_reader(self.executor.fileno())
            else:
                self.end_child(None)
                started.set_result(None)
                await self.until_settled()
                self.executor.count_left_behind(await self.cancel_left(self.of_calls))
                failure = await self.close()
            await self.cancel_left(self.of_context)
        finally:
            _servers.discard(self)
            self.executor.closed(failure)

    async def init(self) -> None:
        context_class = self.executor.context_class()
        if context_class is not None:
            self.context = context_class()
            if hasattr(self.context, "init"):
                await _within(INIT_SECONDS, self.context.init, INIT_TOOK_TOO_LONG)
            self.executor.set_context(self.context)
        self.executor.set_clean(self.clean)
        self.executor.set_schedule(lambda: self.loop.call_soon(self.turn))
        self.executor.set_slot_ended(self.slot_ended)
        self.loop.add_reader(self.executor.fileno(), self.turn)
        self.turn()

    def end_child(self, raised: BaseException | None) -> None:
        """Ends the process if the Context has forked it: the loop, and what it watches, are the parent's."""
        if os.getpid() != self.process:
            end(raised)

    async def until_settled(self) -> None:
        while not self.settled.done():
            try:
                await asyncio.wait([self.settled])
            except asyncio.CancelledError:  # user code cancels all Tasks of the loop; this one is needed
                _current_task().uncancel()

    async def close(self) -> str | None:
        """Closes the Context after the last attempt has ended (R12). Returns why that failed, or None."""
        try:
            if not self.executor.is_given_up() and hasattr(self.context, "close"):  # else the stop has reported it
                await _within(CLOSE_SECONDS, self.context.close, CLOSE_TOOK_TOO_LONG)
                self.end_child(None)
        except BaseException as error:
            self.end_child(error)
            return describe(_without_our_frames(error))
        finally:
            self.context = None
        return None

    async def cancel_left(self, owner: object) -> int:
        """Cancels the Tasks that the owner has left running; waits a second for them. Returns their number."""
        count = 0
        until = time.monotonic() + LEFT_SECONDS
        known: set[asyncio.Task[Any]] = {_current_task()}
        while left := {task for task in asyncio.all_tasks() - known if self.is_left(task, owner)}:
            known |= left  # Tasks that they make while they end come next
            count += len(left)
            for task in left:
                task.cancel()
            try:
                await asyncio.wait(left, timeout=max(0.0, until - time.monotonic()))
            except asyncio.CancelledError:  # they may cancel this Task, too
                _current_task().uncancel()
        return count

    def is_left(self, task: asyncio.Task[Any], owner: object) -> bool:
        """Whether the owner has left this Task running."""
        return not isinstance(task, _SlotTask) and _context_of(task).get(_owner) is owner

    # ---- Rows ----

    def turn(self) -> None:
        """One turn: cancel, give up, start. The eventfd wakes the loop for it, or the runtime schedules it.

        Most turns only let idle slots start rows, and are native.
        """
        if self.closing:
            return
        executor = self.executor
        try:
            if executor.turn():
                return
            cancelled, stuck = executor.orders()
            for task in cancelled:
                task.cancel()
            late = set(cancelled)
            for task, row in stuck:
                self.give_up_on(task, row, late=task in late)
            if executor.start_idle():
                # All slots are busy. Double them from turn to turn, because a function that rarely suspends needs few.
                for _ in range(min(max(1, self.slots), self.most_slots - self.slots)):
                    self.add_slot()
            if executor.end_turn():
                self.closing = True
                self.loop.remove_reader(executor.fileno())
                executor.end_idle()  # not in a Task, which cannot step another one
                self.settled.set_result(None)
        except BaseException as error:
            no_memory = isinstance(error, MemoryError)  # nor for a description
            executor.poison(OUT_OF_MEMORY if no_memory else f"the asyncio executor failed: {describe(error)}")
            # There are still calls to cancel, and a Context to close.
            self.loop.call_later(NEXT_TURN_SECONDS, self.turn)
            raise

    def give_up_on(self, task: asyncio.Task[None], row: int, *, late: bool) -> None:
        """The attempt in this Task has not ended in time: it continues, but no longer counts (R8).

        late: its cancellation reaches it only now, because the loop was blocked, or had no processor.
        """
        self.slots -= 1
        self.stuck.add(task)
        if late:
            self.loop.call_later(GRACE_SECONDS, self.report_stuck, task, row)
        else:
            self.report_stuck(task, row)

    def report_stuck(self, task: asyncio.Task[None], row: int) -> None:
        if not task.done():
            stack = "\n".join(suspended(task))
            self.executor.warn(f"{self.name}, row {row}: a call ignores its cancellation, in\n{stack}")

    def add_slot(self) -> None:
        context = self.clean.copy()
        slot = self.executor.slot(context)
        task = _SlotTask(slot, loop=self.loop, name=self.name, context=context)
        slot.attach(task)
        self.slots += 1

    def slot_ended(self, task: asyncio.Task[None]) -> None:
        """A call has spent the slot of this Task, or the runtime closes."""
        if task in self.stuck:
            self.stuck.discard(task)
        else:
            self.slots -= 1
        if not self.closing and self.executor.may_start():
            self.add_slot()


async def awaited(awaitable: Awaitable[Any]) -> Any:
    """A coroutine that awaits what a function has returned: another kind of awaitable, or a coroutine that somebody
    keeps. The native half calls this."""
    return await awaitable


async def _within(seconds: float, call: Callable[[], Awaitable[object]], too_long: str) -> None:
    """Awaits the call. Raises a TimeoutError with that text if it takes more than so many seconds."""
    timeout = asyncio.timeout(seconds)
    try:
        async with timeout:
            await call()
    except TimeoutError as error:
        if timeout.expired():
            raise TimeoutError(too_long) from error
        raise


def _without_our_frames(error: BaseException) -> BaseException:
    """The exception without the frames of this file, the outermost of its traceback: they refer to the runtime, and
    user code may keep the exception."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return error.with_traceback(frames)


def _current_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


def _context_of(task: asyncio.Task[Any]) -> Context:
    """The context of a Task. Before 3.12 only the garbage collector knows it."""
    if sys.version_info >= (3, 12):
        return task.get_context()
    return next(
        (referent for referent in gc.get_referents(task) if isinstance(referent, Context)), contextvars.Context()
    )
