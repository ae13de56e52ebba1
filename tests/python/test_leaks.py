"""Memory, descriptors, threads and objects do not grow, whatever the outcome of the rows."""

import subprocess
import sys
from pathlib import Path

import pytest

from arroyo_udf_plugin import build


@pytest.mark.parametrize("suffix", [".py", ".rs"])
def test_nothing_grows(suffix: str, tmp_path: Path) -> None:
    """`make soak` runs the long form: a million calls and a thousand cycles."""
    program = Path(__file__).with_name("leaks.py")
    plugin = build(program.with_name(f"leaks_udf{suffix}"), tmp_path / "leaks.so")
    command = [sys.executable, str(program), str(plugin), "200000", "300"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
