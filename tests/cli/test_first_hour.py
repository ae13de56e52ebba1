"""The first hour of a new user, first_hour/first_hour.t: its commands with their output and exit status."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once
SCRIPT = Path(__file__).parent / "first_hour" / "first_hour.t"


def test_each_command_prints_what_a_newcomer_needs(tmp_path: Path) -> None:
    """cram shows what differs. `cram --interactive` in an activated environment renews the expected output."""
    environment = os.environ | {"PATH": f"{sys.prefix}/bin:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [f"{sys.prefix}/bin/cram", "--shell=/bin/bash", str(SCRIPT)], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_has_sixty_commands_and_twenty_five_mistakes() -> None:
    lines = SCRIPT.read_text().splitlines()
    assert sum(line.startswith("  $ ") for line in lines) >= 60
    assert sum(line in ("  [1]", "  [2]", "  [130]") for line in lines) >= 25
