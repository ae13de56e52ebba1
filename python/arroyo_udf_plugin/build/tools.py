"""Runs compilers, each in a process group of its own: if the build ends early, as by Ctrl-C, so does the group.

What a long build does is logged, as INFO for the crates that it compiles and DEBUG for the author's own source. The
command line shows it (cli/building.py).
"""

from __future__ import annotations

import functools
import logging
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

LOG = logging.getLogger("arroyo_udf_plugin.build")
LEFT_SECONDS = 0.3
"""How long a compiler may remove its files after an early end."""
LOOK_SECONDS = 1.0
"""How often a wait is begun anew. A signal that comes just before it, or to another thread, ends none, and Python calls
its handler only between two of them."""


def call(
    command: list[str],
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    seen: Callable[[str], bool] = lambda line: False,
) -> subprocess.CompletedProcess[str]:
    """Runs a command; the answer has what it wrote. Raises OSError if it cannot be run.

    environment: variables to set for it. seen: called with each line on its stderr, at once; True keeps the line out of
    the answer.
    """
    variables = {**os.environ, **(environment or {})}
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        process = None
        try:
            with _without_signals():
                process = subprocess.Popen(
                    command,
                    cwd=folder,
                    env=variables,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.PIPE,
                    process_group=0,
                )
            assert process.stderr is not None
            with process.stderr:
                errors = "".join([line for line in _lines(process.stderr.fileno()) if not seen(line)])
            while process.returncode is None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(LOOK_SECONDS)
        except BaseException:
            if process is not None:
                _end(process)
            raise
        output.seek(0)
        return subprocess.CompletedProcess(command, process.returncode, output.read(), errors)


def _lines(descriptor: int) -> Iterator[str]:
    """What is written to a pipe, until its other end is closed."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    rest = b""
    while True:
        if not poll.poll(LOOK_SECONDS * 1000):
            continue
        data = os.read(descriptor, 1 << 16)
        *lines, rest = (rest + data).splitlines(keepends=True) or [b""]
        if data and rest.endswith(b"\n"):
            lines, rest = [*lines, rest], b""
        yield from (line.decode(errors="replace") for line in lines)
        if not data:
            break
    if rest:
        yield rest.decode(errors="replace")


def version_of(compiler: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """What a compiler says of itself. It is asked once, unless its file changes. Raises OSError if it cannot be run."""
    file = shutil.which(compiler[0])
    return _version_of(tuple(compiler), None if file is None else os.stat(file).st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _version_of(compiler: tuple[str, ...], changed: int | None) -> subprocess.CompletedProcess[str]:
    return call([*compiler, "--version"], environment={"LC_ALL": "C"})


def warn(text: str) -> None:
    """Writes a compiler's warnings to stderr."""
    if text:
        LOG.debug("")  # a line that is shown now ends
        sys.stderr.write(text)


@contextmanager
def _without_signals() -> Iterator[None]:
    """Handlers of signals, which may raise, run after the block: an exception inside Popen would lose its process."""
    came: list[int] = []
    former: dict[signal.Signals, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if callable(handler := signal.getsignal(signum)):
                    former[signum] = handler
                    signal.signal(signum, lambda number, _: came.append(number))
        yield
    finally:
        for signum, handler in former.items():
            signal.signal(signum, handler)
        for number in came:
            former[signal.Signals(number)](number, None)  # raised again, it would be the second one for cli/stopping.py


def _end(process: subprocess.Popen[bytes]) -> None:
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, signal_number)
            process.wait(LEFT_SECONDS)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
