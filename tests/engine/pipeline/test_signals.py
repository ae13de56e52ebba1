"""Ctrl-C and SIGTERM with checkpoints: the rows in flight end, a checkpoint is taken, and --resume goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from waiting import until

DRIVER = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for processes in the background
from arroyo_udf_plugin.cli import main
main()
"""

PIPELINE = """
name = "waiting"
[source]
type = "impulse"
rate = 1000
[[operators]]
plugin = "functions.so"
calls = ["again = {function}('N')"]
[[sinks]]
type = "parts"
path = "out"
"""

WAITS = "arroyo-udf: waits for the rows in flight and a checkpoint; a second signal ends it at once\n"
AGAIN = "arroyo-udf run p.toml --checkpoints state"
GO_ON = f"{AGAIN} --resume\n"


class Command:
    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def until(self, file: str) -> None:
        until(lambda: (self.folder / file).exists() or self.process.poll() is not None, file)
        assert self.process.poll() is None, self.process.communicate()

    def until_it_waits(self) -> None:
        """Until it has taken the first signal."""
        assert self.process.stderr is not None
        assert WAITS in iter(self.process.stderr.readline, "")

    def ended(self, status: int) -> str:
        """Waits for the end. Returns what it has said."""
        _, errors = self.process.communicate(timeout=60)
        assert self.process.returncode == status, errors
        return errors


@pytest.fixture
def start(folder: Path) -> Iterator[Any]:
    """start(function, *options): a run whose function has been called."""
    started: list[Command] = []

    def start(function: str, *options: str) -> Command:
        (folder / "p.toml").write_text(PIPELINE.format(function=function))
        command = Command(folder, "run", "p.toml", *options)
        started.append(command)
        command.until("called")
        return command

    yield start
    for command in started:
        command.process.kill()
        command.process.communicate()


def assert_each_row_once() -> None:
    numbers = sorted(ds.dataset("out").to_table()["counter"].to_pylist())
    assert numbers
    assert numbers == list(range(len(numbers)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_drains(folder: Path, start: Any, number: signal.Signals) -> None:
    command = start("waits_for_a_file", "--checkpoints", "state")
    command.process.send_signal(number)
    command.until_it_waits()
    (folder / "go").touch()
    assert command.ended(0).endswith(f"stopped; go on with: {GO_ON}")
    assert_each_row_once()

    (folder / "called").unlink()
    resumed = start("waits_for_a_file", "--checkpoints", "state", "--resume")
    resumed.process.send_signal(number)
    assert resumed.ended(0).endswith(f"stopped; go on with: {GO_ON}")
    assert_each_row_once()


def test_rows_that_do_not_end_in_time_are_called_again(folder: Path, start: Any) -> None:
    """A quarter of the time for a stop is for the checkpoint."""
    command = start("waits_for_a_file", "--checkpoints", "state", "--stop-timeout", "8")
    command.process.send_signal(signal.SIGTERM)
    assert command.ended(0).endswith(f"stopped; go on with: {GO_ON}")
    assert not list(folder.glob("out/part-*"))

    (folder / "called").unlink()
    (folder / "go").touch()
    resumed = start("waits_for_a_file", "--checkpoints", "state", "--resume")
    resumed.process.send_signal(signal.SIGTERM)
    resumed.ended(0)
    assert_each_row_once()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_function_that_cannot_be_stopped_ends_with_the_signals_status(
    folder: Path, start: Any, number: signal.Signals
) -> None:
    command = start("blocks", "--checkpoints", "state", "--stop-timeout", "0.1")
    command.process.send_signal(number)
    assert command.ended(128 + number).endswith(
        f"stopped without a last checkpoint; go on from the latest one with: {AGAIN}\n"
    )


@pytest.mark.parametrize("function", ["waits", "blocks"])
def test_the_second_signal_ends_at_once(folder: Path, start: Any, function: str) -> None:
    command = start(function, "--checkpoints", "state", "--stop-timeout", "3600")
    command.process.send_signal(signal.SIGINT)
    command.until_it_waits()

    def ended() -> bool:
        command.process.send_signal(signal.SIGTERM)  # those that come together with the first are none
        return command.process.poll() is not None

    until(ended, "its end")
    _, errors = command.process.communicate(timeout=60)
    assert "arroyo-udf: stopped by SIGTERM\n" in errors
    # A shell shows both as 143: the last signal may come when Python has given up its handlers.
    assert command.process.returncode in (128 + signal.SIGTERM, -signal.SIGTERM)


SLOW = """
import pathlib, time
pathlib.Path("called").touch()
while not pathlib.Path("go").exists():
    time.sleep(0.01)  # the case itself: an import that takes its time

from arroyo_udf_plugin import udf

@udf
def f(x: int) -> int:
    return x
"""


def test_a_signal_before_the_start_says_how_to_go_on(folder: Path) -> None:
    """And that is possible, although nothing has begun."""
    (folder / "slow.py").write_text(f"{SLOW}# {folder}: no cache of builds knows it, so it is imported first\n")
    (folder / "p.toml").write_text(
        'name = "p"\n[source]\ntype = "impulse"\nrows = 3\n[[operators]]\nplugin = "slow.py"\ncalls = ["f(counter)"]\n'
        '[[sinks]]\ntype = "parts"\npath = "out"\n'
    )
    command = Command(folder, "run", "p.toml", "--checkpoints", "state")
    command.until("called")
    command.process.send_signal(signal.SIGTERM)
    errors = command.ended(128 + signal.SIGTERM)
    assert f"go on with: {AGAIN}\n" in errors
    (folder / "go").touch()
    Command(folder, *AGAIN.split()[1:]).ended(0)
    assert_each_row_once()


@pytest.mark.parametrize("function", ["waits", "blocks"])
def test_without_checkpoints_the_first_signal_ends_at_once(folder: Path, start: Any, function: str) -> None:
    command = start(function)
    command.process.send_signal(signal.SIGINT)
    assert command.ended(128 + signal.SIGINT) == "arroyo-udf: stopped by SIGINT\n"
    assert not list(folder.glob("out/part-*"))


def test_signals_that_come_together_are_one(folder: Path, start: Any) -> None:
    """`timeout` sends its signal to the process, and again to its group."""
    command = start("waits_for_a_file", "--checkpoints", "state")
    command.process.send_signal(signal.SIGSTOP)
    command.process.send_signal(signal.SIGTERM)
    command.process.send_signal(signal.SIGTERM)
    command.process.send_signal(signal.SIGCONT)
    command.until_it_waits()
    (folder / "go").touch()
    assert command.ended(0).endswith(f"stopped; go on with: {GO_ON}")


TOGETHER = """
import signal, threading
from arroyo_udf_plugin.cli import stopping

stopping.TOGETHER = 3600
with stopping.stoppable():
    requests = []
    signal.signal(signal.SIGUSR1, lambda *_: None)
    with stopping.drainable(lambda: requests.append(1)) as came:
        signal.raise_signal(signal.SIGUSR1)
        for _ in range(3):
            signal.raise_signal(signal.SIGTERM)
    assert (came, requests) == ([signal.SIGTERM], [1])
    stopping.TOGETHER = 0
    asked = threading.Event()
    with stopping.drainable(asked.set):
        signal.raise_signal(signal.SIGTERM)
        asked.wait()
        try:
            signal.raise_signal(signal.SIGINT)
            threading.Event().wait()
        except stopping.Stopped:
            print("stopped")
"""


def test_only_a_later_signal_is_a_second_one() -> None:
    done = subprocess.run([sys.executable, "-c", TOGETHER], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("stopped\n", "arroyo-udf: stopped by SIGINT\n")
    assert done.returncode == 128 + signal.SIGINT
