"""R2: Ctrl-C in a Python host whose main thread waits for a worker process."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from waiting import drained, until

from arroyo_udf_plugin import InvalidState, Plugin, load

SOURCE = """
import asyncio
import os
import threading

import pyarrow as pa

from arroyo_udf_plugin import udf


def tell(a):
    with open(os.environ["CALLS"], "a") as calls:
        calls.write(f"{a}\\n")


@udf
def waits(a: int) -> int:
    tell(a)
    if a == 2:
        threading.Event().wait()
    return a


@udf(vectorized=True)
def all_wait(a: pa.Int64Array) -> pa.Int64Array:
    tell(2)
    threading.Event().wait()
    return a


class Context:
    async def init(self) -> None:
        tell(2)
        try:
            await asyncio.Event().wait()
        finally:
            tell("over")


@udf
async def starts(context: Context, a: int) -> int:
    return a


@udf
def signals(a: int) -> int:
    os.kill(os.getppid(), a)
    tell(2)
    with open(os.environ["GATE"]) as gate:
        gate.read()
    return a


@udf
def worker(a: int) -> int:
    return os.getpid()


@udf
async def later(a: int) -> int:
    return a
"""
NUMBERS = pa.array([1, 2, 3], pa.int64())


@pytest.fixture(scope="module")
def file(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(SOURCE, name="interrupted")


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "calls"
    path.touch()
    monkeypatch.setenv("CALLS", str(path))
    return path


@pytest.fixture
def plugin(file: Path, calls: Path) -> Iterator[Plugin]:
    with load(file, isolation="process", workers=2) as plugin:
        yield plugin


@pytest.fixture
def interrupt(calls: Path) -> Iterator[Callable[[], None]]:
    """Begins to interrupt this thread once the worker is in the call for row 2."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in the background
    threads = []

    def begin() -> None:
        def body() -> None:
            until(lambda: "2" in calls.read_text().split(), "the call")
            signal.pthread_kill(main, signal.SIGINT)

        main = threading.get_ident()
        threads.append(threading.Thread(target=body))
        threads[-1].start()

    yield begin
    for thread in threads:
        thread.join()
    signal.signal(signal.SIGINT, former)


@pytest.mark.parametrize("function", ["waits", "all_wait"])
def test_it_ends_the_call_and_is_raised(
    plugin: Plugin, calls: Path, interrupt: Callable[[], None], function: str
) -> None:
    before = plugin.functions["worker"](NUMBERS)[0].as_py()
    interrupt()
    with pytest.raises(KeyboardInterrupt):
        plugin.functions[function](NUMBERS)
    assert "3" not in calls.read_text().split(), "no row after it is called"
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)
    assert plugin.functions["worker"](NUMBERS).to_pylist() != [before] * 3


def test_it_ends_all_shares_of_a_batch(plugin: Plugin, calls: Path, interrupt: Callable[[], None]) -> None:
    numbers = pa.array([2] + [0] * 255 + [2] + [0] * 255, pa.int64())
    interrupt()
    with pytest.raises(KeyboardInterrupt):
        plugin.functions["waits"](numbers)
    assert set(calls.read_text().split()) == {"2"}
    assert plugin.functions["worker"](numbers).to_pylist()


def test_it_ends_a_call_that_waits_for_the_call_of_another_thread(file: Path, calls: Path) -> None:
    two = pa.array([2], pa.int64())
    ended: list[str] = []

    def call(plugin: Plugin) -> None:
        with pytest.raises(InvalidState) as raised:
            plugin.functions["waits"](two)
        ended.append(str(raised.value))

    def interrupt() -> None:
        until(lambda: "arroyo_udf_plugin" in sys._current_frames()[main].f_code.co_filename, "the call of this thread")
        signal.pthread_kill(main, signal.SIGINT)

    main = threading.get_ident()
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    with load(file, isolation="process") as plugin:
        threads = [threading.Thread(target=call, args=[plugin]), threading.Thread(target=interrupt)]
        threads[0].start()
        until(lambda: "2" in calls.read_text().split(), "the call of the other thread")
        threads[1].start()
        with pytest.raises(KeyboardInterrupt):
            plugin.functions["worker"](two)
    for thread in threads:
        thread.join()
    signal.signal(signal.SIGINT, former)
    assert ended == ["interrupted.waits: the plugin was closed during this call"]


def test_it_ends_a_start(plugin: Plugin, calls: Path, interrupt: Callable[[], None]) -> None:
    interrupt()
    with pytest.raises(KeyboardInterrupt):
        plugin.functions["starts"].start()
    assert "over" not in calls.read_text(), "it comes before init has used up its time"
    with plugin.functions["later"].start() as runtime:
        runtime.send(0, NUMBERS)
        assert drained(runtime, 3)["value"].to_pylist() == [1, 2, 3]


def test_what_another_handler_raises_ends_the_call_too(plugin: Plugin, calls: Path) -> None:
    class Enough(Exception):
        pass

    def handler(*_: object) -> None:
        raise Enough

    former = signal.signal(signal.SIGUSR1, handler)
    main = threading.get_ident()

    def body() -> None:
        until(lambda: "2" in calls.read_text().split(), "the call")
        signal.pthread_kill(main, signal.SIGUSR1)

    thread = threading.Thread(target=body)
    thread.start()
    try:
        with pytest.raises(Enough):
            plugin.functions["waits"](NUMBERS)
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, former)


def test_a_call_in_another_thread_goes_on(plugin: Plugin) -> None:
    """The main thread gets the signal, and waits for nothing of ours."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    got = []
    thread = threading.Thread(target=lambda: got.append(plugin.functions["waits"](pa.array([1, 3], pa.int64()))))
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, former)
        thread.join()
    assert [values.to_pylist() for values in got] == [[1, 3]]


def test_a_host_that_is_interrupted_leaves_no_worker(file: Path, calls: Path) -> None:
    program = """
        import signal, sys
        import pyarrow as pa
        from arroyo_udf_plugin import load
        signal.signal(signal.SIGINT, signal.default_int_handler)
        plugin = load(sys.argv[1], isolation="process")
        print(plugin.functions["worker"](pa.array([1]))[0], flush=True)
        plugin.functions["waits"](pa.array([2]))
    """
    host = [sys.executable, "-c", textwrap.dedent(program), str(file)]
    with subprocess.Popen(host, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        worker = int(running.stdout.readline())
        until(lambda: "2" in calls.read_text().split(), "the call")
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    assert running.returncode == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_a_handler_of_a_signal_cannot_wait_for_the_call_that_it_interrupts(
    file: Path, calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would wait for ever: the call goes on when the handler has returned."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    monkeypatch.setenv("GATE", str(gate))
    refused: list[str] = []

    with load(file, isolation="process") as plugin:

        def call_again(number: int, frame: object) -> None:
            for call in (lambda: plugin.functions["worker"](NUMBERS), lambda: plugin.functions["later"].start()):
                with pytest.raises(InvalidState) as raised:
                    call()
                refused.append(str(raised.value))
            with gate.open("w"):
                pass

        former = signal.signal(signal.SIGUSR1, call_again)
        try:
            assert plugin.functions["signals"](pa.array([int(signal.SIGUSR1)])).to_pylist() == [signal.SIGUSR1]
        finally:
            signal.signal(signal.SIGUSR1, former)
        assert plugin.functions["worker"](NUMBERS).null_count == 0
    text = "a call of this plugin waits in this thread, and this one would wait for it: make it in another thread"
    assert refused == [f"interrupted.{name}: {text}" for name in ("worker", "later")]


def test_a_handler_of_a_signal_closes_the_plugin_whose_call_it_interrupts(file: Path, calls: Path) -> None:
    """It would wait for ever for the worker of that call. The call ends next, and the worker with the plugin."""
    program = """
        import os, signal, sys
        import pyarrow as pa
        from arroyo_udf_plugin import InvalidState, load
        plugin = load(sys.argv[1], isolation="process")
        worker = plugin.functions["worker"](pa.array([1]))[0].as_py()
        runtime = plugin.functions["later"].start()
        signal.signal(signal.SIGUSR1, lambda *_: plugin.close())
        print("ready", flush=True)
        try:
            plugin.functions["waits"](pa.array([2]))
        except InvalidState as error:
            print(error)
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            print("its worker has ended")
    """
    host = [sys.executable, "-c", textwrap.dedent(program), str(file)]
    with subprocess.Popen(host, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        running.stdout.readline()
        until(lambda: "2" in calls.read_text().split(), "the call")
        running.send_signal(signal.SIGUSR1)
        try:
            output, errors = running.communicate(timeout=60)
        finally:
            running.kill()
    closed = "interrupted.waits: the plugin was closed during this call"
    assert output.splitlines() == [closed, "its worker has ended"], errors
