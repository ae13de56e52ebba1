"""Ctrl-C and SIGTERM end every command, whatever it does.

    with stoppable():
        ...

The first signal raises `Stopped` in the main thread, so that files and runtimes are left as after any exception. At the
second, or if the command is still there a second later (a function computes in native code, or catches the exception),
a native thread ends the process: see native/python/src/signals.rs.

A pipeline with checkpoints is `drainable`: the first signal asks it to end, with a last checkpoint.

Guarantees: the exit status is 128 and the signal's number; standard error gets one line. Signals that were ignored
before (`nohup`, jobs in the background of a script) stay ignored.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

from .._native import say_stopped, watch_signals

__all__ = ["Stopped", "drainable", "stoppable"]

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE = 1.0
"""How long a command may take to end by itself, in seconds."""
TOGETHER = 0.2
"""Signals so shortly after the first are the same request, in seconds."""


class Stopped(KeyboardInterrupt):
    """A signal has come. Plugins and the host let it pass, as any KeyboardInterrupt (R2)."""


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Ends the block, and the process with it, by a signal. Does nothing in another thread than the main one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    over = False

    def stop(number: int, _frame: object) -> None:
        if not came:
            came.append(number)
            logging.getLogger("arroyo_udf_plugin").disabled = True  # one line is enough
            if not over:
                raise Stopped

    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    watch_signals(reading, PATIENCE)
    former_wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    former = {
        signum: signal.signal(signum, stop) for signum in SIGNALS if signal.getsignal(signum) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        over = True
        if not came:
            for signum, handler in former.items():
                signal.signal(signum, handler)
            signal.set_wakeup_fd(former_wakeup)
            os.write(writing, b"\0")
            os.close(writing)
        if came:  # whatever has become of the exception
            say_stopped(came[0])
            raise SystemExit(128 + came[0])


@contextlib.contextmanager
def drainable(request: Callable[[], None]) -> Iterator[list[int]]:
    """Within `stoppable`, a block that ends by itself some time after it has been asked to: the first signal calls
    `request`, in another thread, and the next one is a first one for `stoppable`.

    Yields the signal that has come, if one has. Signals that come together, as `timeout` of coreutils sends them, are
    one. Does nothing in another thread than the main one.
    """
    came: list[int] = []
    is_second = False
    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    main = threading.get_ident()

    def listen() -> None:
        # Not in a handler: the system may give a signal to any thread, and then nothing wakes a main thread that waits.
        nonlocal is_second
        first = 0.0
        while (number := os.read(reading, 1)[0]) != 0:
            if number not in former:  # a handler of somebody else
                continue
            if not came:
                first = time.monotonic()
                came.append(number)
                request()
            elif time.monotonic() - first > TOGETHER:
                is_second = True
                signal.pthread_kill(main, number)
                return

    def end(number: int, _frame: object) -> None:
        if is_second:
            undo()
            signal.raise_signal(number)

    def undo() -> None:
        for signum, handler in former.items():
            signal.signal(signum, handler)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)

    reading, writing = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(writing, False)
    wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)  # the native thread does not see these signals
    former = {
        signum: signal.signal(signum, end) for signum in SIGNALS if signal.getsignal(signum) is not signal.SIG_IGN
    }
    listening = threading.Thread(target=listen, name="arroyo-udf-signals", daemon=True)
    listening.start()
    try:
        yield came
    finally:
        undo()
        os.write(writing, b"\0")
        listening.join()
        os.close(reading)
        os.close(writing)


# A child would write its signals into the pipe, too.
os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))
