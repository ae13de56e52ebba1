"""docs/connectors.md: its sink passes, and the faults that it speaks of are found."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

TEXT = (Path(__file__).parents[2] / "docs" / "connectors.md").read_text()
(PROGRAM,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
(PRINTED,) = re.findall(r"^```text\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_its_program_prints_what_the_document_shows() -> None:
    assert run(PROGRAM).stdout == PRINTED


@pytest.mark.parametrize("line", ["self._disk.fsync(file.fileno())", "self._disk.sync(self._folder)"])
def test_without_a_fsync_it_is_broken(line: str) -> None:
    assert PROGRAM.count(line) == 1
    ended = run(PROGRAM.replace(line, "pass"))
    assert ended.returncode == 1
    assert "Broken: missing" in ended.stderr
