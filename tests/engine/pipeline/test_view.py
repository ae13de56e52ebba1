"""What a running pipeline shows, on a terminal and elsewhere."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from arroyo_udf_plugin.cli.view import PlainLines, Rates, cells, view
from arroyo_udf_plugin.engine.execution.progress import CheckpointProgress, OperatorProgress, Progress, Subtask
from arroyo_udf_plugin.engine.operators.stages import Counts
from arroyo_udf_plugin.host.statistics import Latency

OPERATOR = OperatorProgress(
    name="speeds",
    subtasks=(Subtask(rows_in=2000, bytes_in=16_000, rows_out=1000, bytes_out=8_000, blocked=0.0),),
    watermark=None,
    in_flight=1200,
    held=1300,
    held_by_order=70,
    backing_off=0,
    stuck=0,
    retries=0,
    loop_blocked=0,
    lag=1.5,
    counts=Counts(errors=3, timed_out=4),
    failures=(),
    latency=Latency((*[0] * 35, 98, *[0] * 16, 2), max=0.02),
)


def progress(seconds: float, rows: int, **others: object) -> Progress:
    known = {
        "total": 5000,
        "dropped": 0,
        "dead_letters": 0,
        "failures": (),
        "sources": (),
        "sinks": (),
        "operators": (OPERATOR,),
        "checkpoint": None,
    }
    return Progress(seconds=seconds, rows_in=2 * rows, rows_out=rows, **(known | others))  # type: ignore[arg-type]


def test_a_line_each_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    lines = PlainLines("flights")
    for second in range(0, 26, 2):
        lines.show(progress(second, 100 * second))
    assert capsys.readouterr().err.splitlines() == [
        "flights: 2,000 of 5,000 rows read, 1,000 written, 100 rows/s, 1,200 in flight, 1,300 held",
        "flights: 4,000 of 5,000 rows read, 2,000 written, 100 rows/s, 1,200 in flight, 1,300 held",
    ]


def test_the_latest_checkpoint_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    PlainLines("flights").show(progress(10, 100, total=None, checkpoint=CheckpointProgress(7)))
    assert capsys.readouterr().err.startswith("flights: 200 rows read, 100 written, checkpoint 7, 10 rows/s")


def test_an_operator() -> None:
    assert cells(OPERATOR, 123.4) == (
        "speeds",
        "123",
        "1,200",
        "1,300",
        "70",
        "1.5 s",
        "3",
        "4",
        "1.05 ms",
        "20 ms",
    )


def test_rates_are_of_the_time_since_the_last_look() -> None:
    rates = Rates()
    assert rates.of("a", 100, 1.0) == 100
    assert rates.of("a", 300, 2.0) == 200
    assert rates.of("b", 300, 2.0) == 150
    assert rates.of("a", 300, 2.0) == 0


def test_without_rich_a_terminal_gets_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    for name in ("rich.console", "rich.live"):
        monkeypatch.setitem(sys.modules, name, None)
    with view("flights") as shown:
        assert isinstance(shown, PlainLines)
    assert "pip install 'arroyo_udf_plugin[engine]'" in capsys.readouterr().err


PIPELINE = """
name = "flights"
[source]
type = "files"
paths = ["flights.parquet"]
[[operators]]
plugin = "functions.so"
calls = ["plane(tail)"]
[[sinks]]
type = "blackhole"
"""


def test_a_terminal_gets_a_table(folder: Path) -> None:
    (folder / "p.toml").write_text(PIPELINE)
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    command = [sys.executable, "-m", "arroyo_udf_plugin.cli", "run", "p.toml"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        shown = b""
        try:
            while some := os.read(ours, 1 << 16):
                shown += some
        except OSError:  # the other end is closed
            pass
        assert process.stdout is not None
        assert process.stdout.read().startswith("flights: 3 rows read, 3 written; ")
    os.close(ours)
    text = shown.decode()
    for heading in ("rows/s", "in flight", "held", "by order", "lag", "errors", "timed out", "p50", "p99"):
        assert heading in text
    assert "3 of 3 rows read, 3 written" in text
