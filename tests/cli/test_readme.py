"""README and guides are right: their commands run and print what they say; their code is that of the examples."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
GUIDES = [
    README,
    *(
        ROOT / "docs" / f"{name}.md"
        for name in ("files", "functions", "isolation", "native", "pipelines", "python", "sql", "types")
    ),
]
EXAMPLES = [path for path in (ROOT / "examples").glob("*/*") if path.suffix in (".py", ".rs", ".c", ".sql")]


def blocks(guide: Path) -> list[tuple[str, str]]:
    """(language, text) of each fenced block, in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", guide.read_text(), flags=re.DOTALL | re.MULTILINE)


def is_program(language: str, text: str) -> bool:
    """Whether a block is run as it is; other code is a part of an example."""
    return language == "python" and re.search(r"import .*\b(load|run_pipeline)\b", text) is not None


PARTS = [
    pytest.param(text, id=f"{guide.stem}-{number}")
    for guide in GUIDES
    for number, (language, text) in enumerate(blocks(guide))
    if language in ("python", "rust", "c", "sql") and not is_program(language, text)
]
MAKE = sorted(set(re.findall("`(make [a-z-]+)`", README.read_text())))


@pytest.mark.parametrize("command", MAKE)
def test_make_targets_exist(command: str) -> None:
    """`make demo` takes a minute: here make only says what it would do."""
    done = subprocess.run([*command.split(), "-n"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_commands_and_programs_print_what_the_guide_says(guide: Path, tmp_path: Path) -> None:
    """All commands but make's, and all programs, in order, in an empty folder, in the environment that runs this test.

    A block `text` is the last lines of what the block before it has printed.
    """
    for name in ("build", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    folder, printed = tmp_path, ""
    environment = os.environ | {"PATH": f"{sys.prefix}/bin:{os.environ['PATH']}"}
    for language, text in blocks(guide):
        if language == "text":
            assert printed.endswith(text), printed
            continue
        if language == "sh":
            script = re.sub("^make.*", "", text, flags=re.M).replace("build/venv-3.11", sys.prefix)
            command = ["sh", "-euc", f"{script}\npwd > {tmp_path}/folder"]
        elif is_program(language, text):
            command = [sys.executable, "-c", text]
        else:
            continue
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, text + done.stderr
        printed = done.stdout
        if language == "sh":
            folder = Path((tmp_path / "folder").read_text().strip())


@pytest.mark.parametrize("part", PARTS)
def test_code_is_that_of_the_examples(part: str) -> None:
    assert any(part in path.read_text() for path in EXAMPLES)


def test_links_lead_somewhere() -> None:
    for text in (README.read_text(), (ROOT / "CONTRIBUTING.md").read_text()):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
            assert (ROOT / target).exists(), target
