"""Worker processes from their start to their end: limits, interpreters, a host that is killed or interrupted."""

import os
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import PluginEnvironmentError, RowError, load

SOURCE = """
import os
import resource
import sys

from arroyo_udf_plugin import udf


@udf
def worker(a: int) -> int:
    return os.getpid()


@udf
def child(a: int) -> int:
    return os.fork() or os.execv("/bin/sleep", ["sleep", "600"])


@udf
def descriptors(a: int) -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


@udf
def becomes(fifo: str) -> str:
    os.execv("/bin/sh", ["sh", "-c", f": > {fifo}; exec sleep 600"])


@udf
def takes(mebibytes: int) -> int:
    return len(bytearray(mebibytes << 20))


@udf
def spins(a: int) -> int:
    while True:
        pass


@udf
def line(a: int) -> str:
    return sys.stdin.readline()


@udf
async def later(a: int) -> int:
    return a


@udf
def loaded(a: int) -> str:
    return " ".join(name for name in ("pyarrow", "numpy") if name in sys.modules)
"""
RUST = """
use arroyo_udf_plugin::udf;

#[udf]
fn plus(a: i64) -> i64 {
    assert!(a != 3, "three");
    if a == 4 { std::process::abort() }
    a + 1
}
"""
C = """
#include "arroyo_udf_plugin.h"

static const char *plus(int64_t a, int64_t *out) {
  *out = a == 4 ? *(volatile int64_t *)0 : a + 1;
  return a == 3 ? arroyo_udf_failure("three") : NULL;
}
ARROYO_UDF_FUNCTION(plus, int64, (int64, a));
ARROYO_UDF_PLUGIN(plus);
"""
ONE = pa.array([1], pa.int64())


@pytest.fixture(scope="module")
def file(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(SOURCE, name="life")


def ends(process: int, seconds: float = 30) -> bool:
    """Whether a process, which is not a child of this one, ends."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "os._exit(0)", "pass"])
def test_a_worker_never_outlives_its_host(file: Path, end: str) -> None:
    program = f"""
        import os, sys
        import pyarrow as pa
        from arroyo_udf_plugin import load
        one = pa.array([1], pa.int64())
        plugin = load(sys.argv[1], isolation="process")
        print(plugin.functions["worker"](one)[0].as_py(), plugin.functions["child"](one)[0].as_py(), flush=True)
        {end}
    """
    host = [sys.executable, "-c", textwrap.dedent(program), str(file)]
    with subprocess.Popen(host, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        worker, child = map(int, running.stdout.readline().split())
        assert running.wait(60) == (-9 if "kill" in end else 0)
        assert ends(worker)
        assert ends(child)  # what the function has started


def test_a_program_in_the_place_of_a_worker_does_not_outlive_the_host(file: Path, tmp_path: Path) -> None:
    program = """
        import os, sys
        from arroyo_udf_plugin import load
        import pyarrow as pa
        plugin = load(sys.argv[1], isolation="process")
        print(plugin.functions["worker"](pa.array([1]))[0].as_py(), flush=True)
        plugin.functions["becomes"](pa.array([sys.argv[2]]))
    """
    host = [sys.executable, "-c", textwrap.dedent(program), str(file), str(tmp_path / "fifo")]
    os.mkfifo(tmp_path / "fifo")
    with subprocess.Popen(host, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        worker = int(running.stdout.readline())
        (tmp_path / "fifo").read_text()  # until the program has begun
        running.kill()
    assert ends(worker)


def test_a_process_that_a_function_has_made_does_not_hide_the_death_of_its_worker(file: Path) -> None:
    with load(file, isolation="process") as plugin:
        first = plugin.functions["worker"](ONE)[0].as_py()
        child = plugin.functions["child"](ONE)[0].as_py()
        os.kill(first, signal.SIGKILL)
        assert ends(first)
        assert plugin.functions["worker"](ONE)[0].as_py() != first
        assert ends(child)


def test_ctrl_c_at_a_terminal_is_the_hosts_alone(file: Path) -> None:
    with load(file, isolation="process") as plugin:
        process = plugin.functions["worker"](ONE)[0].as_py()
        os.kill(process, signal.SIGINT)
        assert plugin.functions["worker"](ONE)[0].as_py() == process


def test_standard_input_of_a_worker_is_empty(file: Path) -> None:
    with load(file, isolation="process") as plugin:
        assert plugin.functions["line"](ONE).to_pylist() == [""]


def test_a_worker_starts_without_pyarrow(file: Path) -> None:
    with load(file, isolation="process") as plugin:
        assert plugin.functions["loaded"](ONE).to_pylist() == [""]


def test_the_memory_of_a_worker_can_be_limited(file: Path) -> None:
    with load(file, isolation="process", memory_limit=512 << 20) as plugin:
        takes = plugin.functions["takes"]
        assert takes(pa.array([1], pa.int64())).to_pylist() == [1 << 20]
        with pytest.raises(RowError, match=r"life.takes, row 1: MemoryError"):
            takes(pa.array([1, 1024, 1], pa.int64()))


def test_a_limit_of_memory_that_is_too_small_for_a_worker_is_named(file: Path) -> None:
    with (
        load(file, isolation="process", memory_limit=1 << 20) as plugin,
        pytest.raises(PluginEnvironmentError, match=r"life.worker: no worker process: .*; its memory_limit is 1048576"),
    ):
        plugin.functions["worker"](ONE)


def test_the_processor_time_of_a_worker_can_be_limited(file: Path) -> None:
    with load(file, isolation="process", cpu_limit=1) as plugin:
        with pytest.raises(
            RowError,
            match=r"life.spins, row 0: .*signal 24 \(SIGXCPU\): it has used up its processor time \(cpu_limit\) during",
        ):
            plugin.functions["spins"](ONE)
        assert plugin.functions["takes"](ONE).to_pylist() == [1 << 20]


def test_a_worker_does_not_keep_a_low_limit_of_descriptors(file: Path) -> None:
    program = """
        import resource, sys
        import pyarrow as pa
        from arroyo_udf_plugin import load
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))
        print(load(sys.argv[1], isolation="process").functions["descriptors"](pa.array([1]))[0])
    """
    host = [sys.executable, "-c", textwrap.dedent(program), str(file)]
    assert subprocess.run(host, capture_output=True, text=True, timeout=120, check=True).stdout == "300\n"


def test_a_started_function_takes_a_thread_and_five_descriptors_for_each_worker(file: Path) -> None:
    """As docs/isolation.md says."""
    program = """
        import os, sys
        from arroyo_udf_plugin import load
        later = load(sys.argv[1], isolation="process", workers=2).functions["later"]
        used = lambda: [len(os.listdir(f"/proc/self/{what}")) for what in ("task", "fd")]
        started = [later.start()]
        before = used()
        started += [later.start() for _ in range(3)]
        print(*(now - then for now, then in zip(used(), before)))
    """
    done = subprocess.check_output([sys.executable, "-c", textwrap.dedent(program), str(file)], text=True)
    assert done == f"{3 * 2 * 1} {3 * 2 * 5}\n"


def test_a_worker_that_cannot_start_is_an_error_of_the_call(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for python, why in [
        ("/nowhere/python", "life.worker: no worker process: /nowhere/python cannot be started: No such file"),
        ("/bin/false", "the worker process ended with exit status 1"),
    ]:
        monkeypatch.setenv("ARROYO_UDF_PYTHON", python)
        with load(file, isolation="process") as plugin, pytest.raises(PluginEnvironmentError, match=why):
            plugin.functions["worker"](ONE)


def test_development_mode_has_nothing_to_say_in_the_host_or_the_worker(
    build_plugin: Callable[..., Path],
) -> None:
    file = build_plugin(
        """
        import sys
        from arroyo_udf_plugin import udf

        @udf
        def modes(a: int) -> str:
            if a == 1:
                sys.exit()
            return f"{sys.flags.dev_mode} {sys.warnoptions}"

        class Context:
            async def init(self) -> None: ...
            async def close(self) -> None: ...

        @udf
        async def later(context: Context, a: int) -> int:
            return a

        @udf(blocking=True)
        def blocks(a: int) -> int:
            return a
        """,
        name="modes",
    )
    program = """
        import sys
        import pyarrow as pa
        from arroyo_udf_plugin import load
        with load(sys.argv[1], isolation="process", workers=2) as plugin:
            print(plugin.functions["modes"](pa.array([0]))[0])
            print(plugin.functions["modes"].outcomes(pa.array([1]))[0]["outcome"])
            print(plugin.functions["later"](pa.array([1])), plugin.functions["blocks"](pa.array([1])))
        load(sys.argv[1], isolation="process").functions["later"].start().send(0, pa.array([1]))
    """
    environment = os.environ | {"PYTHONDEVMODE": "1", "PYTHONWARNINGS": "error"}
    host = [sys.executable, "-c", textwrap.dedent(program), str(file)]
    done = subprocess.run(host, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("True ['default', 'error']\n1\n"), done.stdout


@pytest.mark.parametrize(("source", "suffix", "how"), [(RUST, ".rs", "6 (SIGABRT)"), (C, ".c", "11 (SIGSEGV)")])
def test_functions_in_other_languages_crash_alone_too(
    build_plugin: Callable[..., Path], source: str, suffix: str, how: str
) -> None:
    with load(build_plugin(source, suffix=suffix, name="native"), isolation="process") as plugin:
        outcomes = plugin.functions["plus"].outcomes(pa.array(range(7), pa.int64()))
    assert outcomes.field("value").to_pylist() == [1, 2, 3, None, None, 6, 7]
    errors = outcomes.field("error").to_pylist()
    assert errors[3].startswith("native.plus, row 3: ")
    assert "three" in errors[3]
    assert errors[4] == f"native.plus, row 4: the worker process was killed by signal {how} during this call"
    assert [row for row, text in enumerate(errors) if text] == [3, 4]
