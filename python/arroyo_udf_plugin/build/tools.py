"""Runs compilers, each in a process group of its own: if the build ends early, as by Ctrl-C, so does the group.

What a long build does is logged, as INFO for the crates that it compiles and DEBUG for the author's own source. The
command line shows it (cli/building.py).
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LOG = logging.getLogger("arroyo_udf_plugin.build")
LEFT_SECONDS = 0.3
"""How long a compiler may remove its files after an early end."""


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
                    encoding="utf-8",
                    errors="replace",
                )
            assert process.stderr is not None
            with process.stderr:
                errors = "".join([line for line in process.stderr if not seen(line)])
            process.wait()
        except BaseException:
            if process is not None:
                _end(process)
            raise
        output.seek(0)
        return subprocess.CompletedProcess(command, process.returncode, output.read(), errors)


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


def _end(process: subprocess.Popen[str]) -> None:
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, signal_number)
            process.wait(LEFT_SECONDS)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
