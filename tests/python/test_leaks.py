"""Nothing grows, whatever becomes of the rows: memory, descriptors, threads, objects."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path


def test_nothing_grows(build_plugin: Callable[..., Path]) -> None:
    """`make check-memory` runs the long form: a million calls and a thousand cycles."""
    program = Path(__file__).with_name("leaks.py")
    command = [sys.executable, str(program), str(build_plugin(program.with_name("leaks_udf.py"))), "200000", "300"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
