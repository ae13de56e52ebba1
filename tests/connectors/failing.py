"""Engines of tests that may fail: an engine that waits for more rows must not keep the test from ending."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator


@contextlib.contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """The process, which is killed if the block raises."""
    with process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise
