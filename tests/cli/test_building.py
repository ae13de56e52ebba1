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

from arroyo_udf_plugin.build import tools

CLI = [sys.executable, "-m", "arroyo_udf_plugin.cli"]
# By itself: the native thread would end it an hour later.
PATIENT = "from arroyo_udf_plugin.cli import main, stopping; stopping.PATIENCE = 3600.0; main()"
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
    command = [sys.executable, "-c", PATIENT, "build", str(tmp_path / "mine.c")]
    build = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
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


# The compiler ends by SIGKILL only. Ended at once by a second signal, the command would leave it.
WHILE_IT_STARTS_IN_A_COMMAND = """
import os, signal, subprocess, sys
from arroyo_udf_plugin.build import tools
from arroyo_udf_plugin.cli import stopping

class Interrupted(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.stderr.readline()
        print(self.pid, flush=True)
        os.kill(os.getpid(), signal.SIGINT)

subprocess.Popen = Interrupted
stopping.PATIENCE = 3600.0
with stopping.stoppable():
    tools.call(["sh", "-c", "trap '' TERM; echo ready >&2; while :; do sleep 1000; done"])
"""


def test_one_ctrl_c_while_a_compiler_starts_is_one_signal() -> None:
    done = subprocess.run([sys.executable, "-c", WHILE_IT_STARTS_IN_A_COMMAND], capture_output=True, text=True)
    assert done.returncode == 128 + signal.SIGINT, done.stderr
    assert done.stderr == "arroyo-udf: stopped by SIGINT\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_ctrl_c_while_a_compiler_starts_ends_it() -> None:
    done = subprocess.run([sys.executable, "-c", WHILE_IT_STARTS], capture_output=True, text=True, check=True)
    compiler, end = done.stdout.split()
    assert end == "interrupted"
    with pytest.raises(ProcessLookupError):
        os.kill(int(compiler), 0)


SIGNALLED = """
import signal, threading
from arroyo_udf_plugin.build import tools

def signalled():
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

def seen(line):
    threading.Timer(0.2, signalled).start()  # by then the main thread most likely waits
    return False

try:
    tools.call(["sh", "-c", "echo ready >&2; exec sleep 1000"], seen=seen)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_that_another_thread_gets_ends_a_compiler() -> None:
    """Nothing ends the wait of the main thread, in which alone Python calls the handler."""
    done = subprocess.run([sys.executable, "-c", SIGNALLED], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_lines_of_a_compiler_come_whole() -> None:
    """Also if they come in pieces, are not UTF-8, or have no end."""
    lines: list[str] = []
    script = r"printf a >&2; printf 'b\n\nc\377' >&2; printf '\r\nend' >&2; echo out"

    def seen(line: str) -> bool:
        lines.append(line)
        return False

    done = tools.call(["sh", "-c", script], seen=seen)
    assert lines == ["ab\n", "\n", "c\ufffd\r\n", "end"]
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "".join(lines), 0)
