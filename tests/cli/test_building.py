"""A build says what it compiles, and its compilers end with it. cargo and cc are scripts here, which are quick."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

CLI = [sys.executable, "-m", "arroyo_udf_plugin.cli"]
CARGO = """\
#!/bin/sh
case "$*" in *--version*) echo "cargo 1.0 {name}"; exit;; esac
echo "    Updating crates.io index" >&2
echo "   Compiling tokio v1.40.0" >&2
echo "   Compiling plugin-mine v0.0.0 (/somewhere/plugin-mine)" >&2
echo "warning: unused variable: x" >&2
echo "    Finished release [optimized] target(s)" >&2
mkdir -p "$CARGO_TARGET_DIR/release"
echo library > "$CARGO_TARGET_DIR/release/libplugin_mine.so"
"""
# Stays until it is ended, with a child of its own.
HANGS = """\
#!/bin/sh
case "$*" in *--version*|*-MM*) exec cc "$@";; esac
sleep 1000 &
echo $! > "{file}"
wait
"""


def tool(folder: Path, name: str, text: str) -> dict[str, str]:
    """The environment in which `name` is a script; with a cache of its own."""
    (folder / "bin").mkdir(exist_ok=True)
    script = folder / "bin" / name
    script.write_text(text)
    script.chmod(0o755)
    path = f"{script.parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "XDG_CACHE_HOME": str(folder / "cache")}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source = tmp_path / "mine.rs"
    source.write_text("use arroyo_udf_plugin::udf;\n#[udf]\nfn f(x: i64) -> i64 { 1 }\n")
    return source


def test_a_cold_build_has_a_line_for_each_crate(source: Path) -> None:
    environment = tool(source.parent, "cargo", CARGO)
    done = subprocess.run([*CLI, "build", str(source)], env=environment, capture_output=True, text=True)
    assert done.stdout == f"{source.with_name('libmine.so')}\n"
    lines = ["updating crates.io index", "compiling tokio v1.40.0", "warning: unused variable: x"]
    assert done.stderr.splitlines() == lines, "of cargo's own lines those on crates, and the compiler's unchanged"


def test_a_build_on_a_terminal_has_one_changing_line(source: Path) -> None:
    terminal, end = pty.openpty()
    environment = tool(source.parent, "cargo", CARGO)
    subprocess.run([*CLI, "build", str(source)], env=environment, stderr=end, stdout=subprocess.DEVNULL, check=True)
    os.close(end)
    shown = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    erase = "\r\x1b[K"
    assert f"{erase}compiling tokio v1.40.0 ...{erase}compiling plugin-mine v0.0.0 ...{erase}warning: unused" in shown
    assert shown.endswith(erase)


def test_ctrl_c_ends_a_build_and_its_compilers(tmp_path: Path) -> None:
    (tmp_path / "mine.c").write_text('#include "arroyo_udf_plugin.h"\n')
    started = tmp_path / "started"
    os.mkfifo(started)
    environment = tool(tmp_path, "slow_cc", HANGS.format(file=started)) | {"CC": "slow_cc"}
    build = subprocess.Popen([*CLI, "build", str(tmp_path / "mine.c")], env=environment, stderr=subprocess.PIPE)
    compiler = int(started.read_text())
    descriptor = os.pidfd_open(compiler)
    build.send_signal(signal.SIGINT)
    build.communicate()
    assert build.returncode != 0
    ended, _, _ = select.select([descriptor], [], [], 60)
    os.close(descriptor)
    assert ended, "the compiler's own child still runs"
    assert not list(tmp_path.rglob("building-*"))


WHILE_IT_STARTS = """
import os, signal, subprocess, sys
from arroyo_udf_plugin.build import tools

class Interrupted(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        print(self.pid)
        os.kill(os.getpid(), signal.SIGINT)

subprocess.Popen = Interrupted
try:
    tools.call(["sleep", "1000"])
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_while_a_compiler_starts_ends_it() -> None:
    done = subprocess.run([sys.executable, "-c", WHILE_IT_STARTS], capture_output=True, text=True, check=True)
    compiler, end = done.stdout.split()
    assert end == "interrupted"
    with pytest.raises(ProcessLookupError):
        os.kill(int(compiler), 0)
