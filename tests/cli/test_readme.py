"""The README is right: its commands run, its output is what they print, its code is that of the examples."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
# (language, text) of each fenced block, in order.
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)
SHELL = [text for language, text in BLOCKS if language == "sh"]
MAKE = [text for text in SHELL if text.startswith("make ")]
HOSTS = [text for language, text in BLOCKS if language == "python" and "import load" in text]
EXAMPLES = {
    "python": [
        "examples/blocking/udf.py",
        "examples/flights/udf.py",
        "examples/idempotent/udf.py",
        "examples/retry/udf.py",
        "examples/user_name/batched.py",
    ],
    "rust": ["examples/flights/udf.rs", "examples/user_name/udf.rs"],
    "c": ["examples/flights/udf.c", "examples/own_thread/udf.c"],
}


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert {language for language, _ in BLOCKS} == {"sh", "text", "python", "rust", "c"}


@pytest.mark.parametrize("command", [line for text in MAKE for line in text.splitlines()])
def test_make_targets_exist(command: str) -> None:
    """`make test` runs these tests and `make demo` takes a minute: here make only says what it would do."""
    done = subprocess.run([*command.split(), "-n"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_commands_and_python_hosts(tmp_path: Path) -> None:
    """All commands but make's, in order, in one shell in an empty folder; then each block of Python that loads plugins;
    and the output is what the README says.

    `build/` stands for the clone's; the environment is the one that runs this test.
    """
    (tmp_path / "build").symlink_to(ROOT / "build")
    script = "".join(text for text in SHELL if text not in MAKE)
    assert "build/venv-3.11/bin/activate" in script
    script = script.replace("build/venv-3.11", str(Path(sys.prefix)))
    printed = []
    for command in (["sh", "-euc", script], *([sys.executable, "-c", block] for block in HOSTS)):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ)
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert "28.8" in printed[1], "a sync function"
    assert "3 None 1" in printed[2], "an async function, and the row that fails"
    for expected in (text for language, text in BLOCKS if language == "text"):
        assert any(expected in output for output in printed)


@pytest.mark.parametrize(
    ("language", "block"),
    [(language, text) for language, text in BLOCKS if language in EXAMPLES and text not in HOSTS],
)
def test_code_is_that_of_the_examples(language: str, block: str) -> None:
    assert any(block in (ROOT / path).read_text() for path in EXAMPLES[language])


def test_links_lead_somewhere() -> None:
    for text in (README, (ROOT / "CONTRIBUTING.md").read_text()):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
            assert (ROOT / target).exists(), target
