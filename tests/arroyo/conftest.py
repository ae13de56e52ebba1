"""What the tests of Arroyo's interface share: the test host and the plugins on the published crates (a cargo workspace
of its own, in this folder), and our plugins with the same functions."""

import os
import shutil
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import functions
import pytest

from arroyo_udf_plugin import build

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

# library(language, function, **options of build) -> path
Library = Callable[..., Path]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of these belong to `make test-arroyo`. The first one waits for the workspace, a build of many crates."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.arroyo)
            item.add_marker(pytest.mark.timeout(2400))


@pytest.fixture(scope="session")
def workspace() -> Path:
    """The folder with the compiled workspace."""
    cargo = shutil.which("cargo")
    assert cargo, "cargo is missing: https://rustup.rs"
    target = ROOT / "build" / "arroyo"
    command = [cargo, "build", "--quiet", "--release", "--locked", "--workspace", "--bins", "--examples"]
    done = subprocess.run([*command, "--target-dir", str(target)], cwd=HERE, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target / "release"


@pytest.fixture(scope="session")
def library(workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Library:
    """The shared library of a function: library("python" | "rust" | "published", name, **options of build)."""
    folder = tmp_path_factory.mktemp("arroyo")

    def find(language: str, name: str, **options: Any) -> Path:
        if language == "published":
            return workspace / "examples" / f"lib{name}.so"
        text = functions.SEVERAL[language] if name == "several" else getattr(functions, language.upper())[name]
        out = folder / language / "-".join([name, *map(str, options.values())]) / f"{name}.so"
        if not out.exists():
            out.parent.mkdir(parents=True)
            source = out.with_suffix(functions.SUFFIXES[language])
            source.write_text(functions.HEADS[language] + textwrap.dedent(text))
            build(source, out, **options)
        return out

    return find


class Host:
    """The test host: every call is a process."""

    def __init__(self, program: Path) -> None:
        self.program = program

    def __call__(
        self, command: str, libraries: Path | list[Path], *, before: tuple[str, ...] = (), **options: object
    ) -> subprocess.CompletedProcess[str]:
        paths = ",".join(map(str, libraries if isinstance(libraries, list) else [libraries]))
        words = [f"{name}={value}" for name, value in options.items()]
        # Python plugins find their interpreter by themselves.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        line = [*before, str(self.program), command, paths, *words]
        return subprocess.run(line, capture_output=True, text=True, timeout=240, env=environment)

    def lines(self, command: str, libraries: Path | list[Path], **options: object) -> list[str]:
        """What a run that ends well has printed."""
        done = self(command, libraries, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()


@pytest.fixture(scope="session")
def host(workspace: Path) -> Host:
    return Host(workspace / "system")


@pytest.fixture(scope="session")
def jemalloc_host(workspace: Path) -> Host:
    return Host(workspace / "jemalloc")
