"""For the tests of Python plugins and of the host: a host that is not Python."""

import gc
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CC = shlex.split(os.environ.get("CC", "")) or ["cc"]


@pytest.fixture
def young() -> Iterator[None]:
    """Collections of garbage look at objects made from now on: at all those of a long session, each takes a second."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def bare_host(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[str]]:
    """bare_host(*plugins, threads=1, **environment): runs host.c with that environment alone; returns its output lines.

    The process must exit with status 0.
    """
    program = tmp_path_factory.mktemp("host") / "host"
    source = Path(__file__).parent / "host.c"
    include = ROOT / "native" / "include"
    command = [*CC, "-g", "-Wall", "-Wextra", "-Werror", f"-I{include}", str(source), "-o", str(program)]
    subprocess.run([*command, "-ldl", "-lpthread"], check=True)

    def run(*plugins: Path, threads: int = 1, **environment: str) -> list[str]:
        call = [str(program), str(threads), *map(str, plugins)]
        done = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        return (done.stdout + done.stderr).splitlines()

    return run
