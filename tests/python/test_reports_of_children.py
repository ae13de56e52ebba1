"""A test whose child fails shows what the child has said (children.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import children

FAILS = """
import subprocess, sys

def test_quiet():
    subprocess.run([sys.executable, "-c", "import sys; sys.exit('the reason')"], check=True, capture_output=True)

def test_slow():
    # The child waits for the timeout, which ends it. Its output comes before that.
    said = "import sys, time; print('so far', flush=True); time.sleep(1000)"
    subprocess.run([sys.executable, "-c", said], timeout=1, stdout=subprocess.PIPE, text=True)
"""


def test_a_child_says_why(tmp_path: Path) -> None:
    (tmp_path / "test_children.py").write_text(FAILS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "children", "-p", "no:cacheprovider", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(children.__file__).parent)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 1, done.stderr
    for told in ("stderr of the child", "the reason", "stdout of the child", "so far"):
        assert told in done.stdout
