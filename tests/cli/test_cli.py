"""The commands as a user types them, each in its own process."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from arroyo_udf_plugin.cli.telling import duration

CLI = [sys.executable, "-m", "arroyo_udf_plugin.cli"]


def cli(*arguments: object, cwd: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*CLI, *map(str, arguments)], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done


@pytest.fixture(scope="module")
def plugin(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(
        """
from arroyo_udf_plugin import udf

@udf
def half(x: int) -> int:
    if x % 2:
        raise ValueError(f"{x} is odd")
    return x // 2

@udf(timeout=2.5, allowed_in_flight=7, ordered=False)
async def later(x: int, y: str | None) -> str | None:
    return y
""",
        ".py",
    )


@pytest.fixture(scope="module")
def again(build_plugin: Callable[..., Path]) -> Path:
    """Each row succeeds at the second call."""
    return build_plugin(
        """
from arroyo_udf_plugin import udf

tried = set()

@udf(retry_on="error", max_attempts=2, backoff=0.001)
async def again(x: int) -> int:
    if x not in tried:
        tried.add(x)
        raise ValueError("not at once")
    return x
""",
        name="again",
    )


@pytest.mark.parametrize(("language", "ending"), [("python", "py"), ("rust", "rs"), ("c", "c")])
def test_new_build_run(tmp_path: Path, language: str, ending: str) -> None:
    """The folder from `new` builds and runs as its README says."""
    cli("new", "mine", "--lang", language, cwd=tmp_path)
    readme = (tmp_path / "mine" / "README.md").read_text()
    commands = [line.split()[1:] for line in readme.splitlines() if line.startswith("    arroyo-udf ")]
    assert [command[0] for command in commands] == ["run", "build", "run", "inspect"]
    assert commands[0][1] == commands[1][1] == f"mine/mine.{ending}"
    for command in commands:
        cli(*command, cwd=tmp_path)
    lines = (tmp_path / "mine" / "out.csv").read_text().splitlines()
    assert lines[0] == "flight,distance,air_time,mph"
    assert lines[1] == f"1545,1400,227,{1400 * 60 / 227}"
    assert lines[3] == "1141,NA,160,"


def test_new_refuses_a_folder_that_exists(tmp_path: Path) -> None:
    cli("new", "mine", "--lang", "c", cwd=tmp_path)
    done = cli("new", "mine", "--lang", "c", cwd=tmp_path, status=1)
    assert "mine exists already: choose another name" in done.stderr


@pytest.mark.parametrize("name", ["My", "1st", "a-b", "a/b", ""])
def test_new_refuses_a_name(tmp_path: Path, name: str) -> None:
    assert "cannot name a plugin" in cli("new", name, "--lang", "python", cwd=tmp_path, status=1).stderr
    assert list(tmp_path.iterdir()) == []


def test_new_where_no_folder_can_be_made_is_told_in_one_line() -> None:
    done = cli("new", "mine", "--lang", "c", cwd=Path("/proc"), status=1)
    assert done.stderr.startswith("Error: /proc/mine cannot be made: ")
    assert len(done.stderr.splitlines()) == 1


def test_build_takes_a_path_and_prints_it(tmp_path: Path) -> None:
    cli("new", "mine", "--lang", "c", cwd=tmp_path)
    done = cli("build", "mine/mine.c", "-o", "elsewhere.so", cwd=tmp_path)
    assert Path(done.stdout.strip()).samefile(tmp_path / "elsewhere.so")


def test_build_shows_where_the_mistake_is(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from arroyo_udf_plugin import udf\n\n@udf\ndef f(x) -> int:\n    return x\n")
    assert "mine.py:" in cli("build", "mine.py", cwd=tmp_path, status=1).stderr
    assert not (tmp_path / "libmine.so").exists()


def test_build_locked(tmp_path: Path) -> None:
    """A source without dependencies needs no lock; others have one after their first build."""
    cli("new", "mine", "--lang", "python", cwd=tmp_path)
    cli("build", "--locked", "--offline", "mine/mine.py", cwd=tmp_path)
    source = tmp_path / "mine" / "mine.py"
    source.write_text(f'# /// script\n# dependencies = ["cffi"]\n# ///\n{source.read_text()}')
    assert (
        "there is none: build once without --locked"
        in cli("build", "--locked", "mine/mine.py", cwd=tmp_path, status=1).stderr
    )
    cli("build", "mine/mine.py", cwd=tmp_path)
    cli("build", "--locked", "--offline", "mine/mine.py", cwd=tmp_path)


def test_inspect_json(plugin: Path, tmp_path: Path) -> None:
    described = json.loads(cli("inspect", plugin, "--json", cwd=tmp_path).stdout)
    assert described["language"] == "python"
    assert described["abi_version"] == 1
    assert int(described["hash"], 16)
    assert described["functions"] == [
        {
            "name": "half",
            "kind": "sync",
            "vectorized": False,
            "native": True,
            "not_native": None,
            "volatility": None,
            "documentation": None,
            "arguments": [{"name": "x", "type": "int64", "nullable": False}],
            "returns": {"type": "int64", "nullable": False},
            "options": None,
            "chosen": [],
            "timeout": None,
        },
        {
            "name": "later",
            "kind": "async",
            "vectorized": False,
            "native": False,
            "not_native": "Python: its kind: native is for a `def` that gives one value for each row, in line 10",
            "volatility": None,
            "documentation": None,
            "arguments": [
                {"name": "x", "type": "int64", "nullable": False},
                {"name": "y", "type": "string", "nullable": True},
            ],
            "returns": {"type": "string", "nullable": True},
            "options": {
                "ordered": False,
                "allowed_in_flight": 7,
                "timeout": 2.5,
                "deadline": None,
                "max_rows": 16_384,
                "max_bytes": 64 << 20,
                "max_attempts": 3,
                "retry_on": "timeout",
                "backoff": 0.1,
                "max_backoff": 10.0,
                "seed": None,
                "idempotent": False,
                "max_stuck": 7,
                "deterministic": False,
            },
            "chosen": ["ordered", "allowed_in_flight", "timeout"],
            "timeout": None,
        },
    ]


def test_inspect_shows_documentation_volatility_and_source(build_plugin: Callable[..., Path], tmp_path: Path) -> None:
    text = """
        from arroyo_udf_plugin import udf

        @udf(volatility="stable")
        def rate(currency: str) -> float:
            '''Euros for one unit.

            Of the day.
            '''
            return 1.0
        """
    plugin = build_plugin(text, name="rates")
    lines = cli("inspect", plugin, cwd=tmp_path).stdout.splitlines()
    assert lines[2] == f"source           {plugin.with_name('rates.py')}"
    after = lines.index("rate(currency: string) -> double")
    assert lines[after + 1 :] == ["    sync, native, stable", "    Euros for one unit.", "", "    Of the day."]
    of_source = cli("inspect", plugin.with_name("rates.py"), cwd=tmp_path).stdout.splitlines()
    assert of_source == lines


def test_inspect_text(plugin: Path, tmp_path: Path) -> None:
    lines = cli("inspect", plugin, cwd=tmp_path).stdout.splitlines()
    assert "half(x: int64) -> int64" in lines
    assert "    sync, native" in lines
    assert "later(x: int64, y: string or null) -> string or null" in lines
    (options,) = (line for line in lines if line.startswith("    async, "))
    assert options == "    async, ordered=False, allowed_in_flight=7, timeout=2.5"
    (defaults,) = (line for line in lines if line.startswith("    by default: "))
    assert "deadline=None" in defaults
    assert "max_attempts=3" in defaults


def test_run_prints_a_summary(plugin: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("x\n2\n3\nNA\n")
    command = ["run", f"{plugin}:half", "in.csv", "--args", "x", "--out", "out.csv", "--on-error", "drop"]
    done = cli(*command, cwd=tmp_path)
    assert done.stdout.startswith("out.csv: 2 rows written of 3 read; 2 values (1 null), 1 error, 0 timed out; ")
    assert "; 0 nulled, 1 dropped, 0 dead letters; " in done.stdout
    assert "\n1 row failed in half, such as in.csv, row 2: ValueError: 3 is odd\n" in done.stdout
    assert done.stderr == ""  # no progress bar: that is for terminals
    summary = json.loads(cli(*command, "--json", cwd=tmp_path).stdout)
    assert summary["function"] == "half"
    (failure,) = summary["calls"][0]["failures"]
    assert failure.pop("text").startswith("ValueError: 3 is odd\n  at half, ")
    assert failure == {"function": "half", "kind": "ValueError", "rows": 1, "file": "in.csv", "row": 2}
    assert (summary["rows"], summary["values"], summary["errors"], summary["dropped"]) == (3, 2, 1, 1)
    assert summary["seconds"] > 0
    assert (tmp_path / "out.csv").read_text() == "x,half\n2,1\nNA,\n"


def test_r16_run_prints_statistics(plugin: Path, again: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("x\n2\n3\n4\n")
    command = ["run", again, "in.csv", "--args", "x", "--out", "out.csv"]
    line = cli(*command, cwd=tmp_path).stdout.splitlines()[1]
    time = r"[0-9.]+ (us|ms|s)"
    took = rf"a row took {time} \(p50\), {time} \(p99\), {time} at most"
    assert re.fullmatch(rf"calls: 3 retries, 0 stuck, 0 blocked, 0 left behind, 0 discarded; {took}", line), line
    found = json.loads(cli(*command, "--json", cwd=tmp_path).stdout)["statistics"]
    assert (found["values"], found["retries"], found["latency"]["rows"]) == (3, 3, 3)
    assert 0.001 / 2 <= found["latency"]["p50"] <= found["latency"]["p99"] <= found["latency"]["max"]
    half = ["run", f"{plugin}:half", "in.csv", "--args", "x", "--out", "out.csv", "--on-error", "null"]
    assert "calls:" not in cli(*half, cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0000123, "12.3 us"),
        (0.001, "1 ms"),
        (0.1234, "123 ms"),
        (7.0, "7 s"),
        (12345.6, "12346 s"),
        (0.0009996, "1000 us"),
    ],
)
def test_times_are_readable(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_run_with_options(plugin: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("x,y\n2,a\n")
    later = ["run", f"{plugin}:later", "in.csv", "--args", "x,y", "--out", "out.csv"]
    cli(*later, "--option", "timeout=5", "--option", "retry_on=timeout,error", cwd=tmp_path)
    wrong = cli(*later, "--option", "timeout=soon", cwd=tmp_path, status=2).stderr
    assert "has timeout='soon'; write seconds" in wrong
    half = ["run", f"{plugin}:half", "in.csv", "--args", "x", "--out", "out.csv", "--option", "timeout=5"]
    assert "half is sync" in cli(*half, cwd=tmp_path, status=1).stderr


def test_run_and_replay_dead_letters(plugin: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("x\n2\n3\n")
    command = ["run", f"{plugin}:half", "in.csv", "--args", "x", "--out", "out.csv"]
    policy = ["--on-error", "dead_letter", "--dead-letter", "dead.parquet"]
    done = cli(*command, *policy, cwd=tmp_path)
    assert "; 0 nulled, 0 dropped, 1 dead letter; " in done.stdout
    assert (tmp_path / "out.csv").read_text() == "x,half\n2,1\n"
    command[2] = "dead.parquet"
    assert "3 is odd" in cli(*command, cwd=tmp_path, status=1).stderr
    assert json.loads(cli(*command, *policy, "--force", "--json", cwd=tmp_path).stdout)["dead_letters"] == 1


def test_run_fails_with_the_row(plugin: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("x\n2\n3\n")
    done = cli("run", f"{plugin}:half", "in.csv", "--args", "x", "--out", "out.csv", cwd=tmp_path, status=1)
    assert "Error: plugin.half, in.csv, row 2: ValueError: 3 is odd\n" in done.stderr
    assert not (tmp_path / "out.csv").exists()


def test_run_needs_one_function(plugin: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("x\n2\n")
    rest = ["in.csv", "--args", "x", "--out", "out.csv"]
    assert "name one as" in cli("run", plugin, *rest, cwd=tmp_path, status=1).stderr
    assert (
        "has no function 'none'; it has half, later"
        in cli("run", f"{plugin}:none", *rest, cwd=tmp_path, status=1).stderr
    )


def test_run_of_a_file_that_is_not_a_plugin(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("x\n2\n")
    (tmp_path / "none.so").write_text("not a library")
    done = cli("run", "none.so:f", "in.csv", "--args", "x", "--out", "out.csv", cwd=tmp_path, status=1)
    assert "none.so" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("is_async", "shown_at_the_end"), [(False, b", errors=0"), (True, b", running=0, errors=0")])
def test_progress_on_a_terminal(
    plugin: Path, again: Path, tmp_path: Path, is_async: bool, shown_at_the_end: bytes
) -> None:
    (tmp_path / "in.csv").write_text("x\n" + "2\n" * 1000)
    terminal, end = pty.openpty()
    termios.tcsetwinsize(end, (24, 120))
    function = again if is_async else f"{plugin}:half"
    command = [*CLI, "run", function, "in.csv", "--args", "x", "--out", "out.csv"]
    subprocess.run(command, cwd=tmp_path, stderr=end, stdout=subprocess.DEVNULL, check=True)
    os.close(end)
    shown = b""
    try:
        while part := os.read(terminal, 4096):
            shown += part
    except OSError:  # EIO: nobody holds the other end any more
        pass
    finally:
        os.close(terminal)
    assert b"rows/s" in shown
    assert shown_at_the_end in shown


def test_a_run_of_a_function_imports_no_models_of_pipelines() -> None:
    """They cost a fifth of a second at each start."""
    program = """
import sys
import arroyo_udf_plugin.cli
import arroyo_udf_plugin.engine.file_run.replay
heavy = {"pydantic", "rich", "obstore", "adbc_driver_manager"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", program], check=True)
