"""The README is right: its commands run, its output is what they print, its code is that of the examples."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

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


class Ran(NamedTuple):
    folder: Path
    output: str


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """All commands but make's, in order, in one shell in an empty folder, and what they print.

    `build/` stands for the clone's; the environment is the one that runs this test.
    """
    folder = tmp_path_factory.mktemp("readme")
    (folder / "build").symlink_to(ROOT / "build")
    script = "".join(text for text in SHELL if text not in MAKE)
    assert "build/venv-3.11/bin/activate" in script
    script = script.replace("build/venv-3.11", str(Path(sys.prefix)))
    done = subprocess.run(["sh", "-euc", script], cwd=folder, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    return Ran(folder, done.stdout)


@pytest.fixture(scope="module")
def hosts(commands: Ran) -> list[str]:
    """What the Python that loads plugins prints, block by block, after the commands that build them."""
    printed = []
    for block in HOSTS:
        done = subprocess.run([sys.executable, "-c", block], cwd=commands.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    return printed


def test_output_is_what_the_readme_says(commands: Ran, hosts: list[str]) -> None:
    for expected in (text for language, text in BLOCKS if language == "text"):
        assert expected in commands.output or expected in hosts


def test_python_hosts(hosts: list[str]) -> None:
    sync, asynchronous = hosts
    assert "28.8" in sync
    assert "3 None 1" in asynchronous, "the row that fails"


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
