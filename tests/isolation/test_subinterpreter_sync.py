"""Sync functions in subinterpreters: the same answers as in a thread, from interpreters of their own."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import InvalidState, Plugin, PluginEnvironmentError, UnsupportedCall, UserCodeError, load

BuildPlugin = Callable[..., Path]
Answer = tuple[list[object], list[str | None]]

SOURCE = """
import datetime as dt
import decimal
import os
import threading
from arroyo_udf_plugin import udf

calls = 0

@udf
def plus(a: int, b: int) -> int:
    if a == 13:
        raise ValueError("unlucky")
    return a + b

@udf
def shout(text: str | None) -> str | None:
    return None if text is None or text == "quiet" else text.upper()

@udf
def later(moment: dt.datetime) -> dt.datetime:
    return moment + dt.timedelta(hours=1)

@udf
def next_day(day: dt.date) -> dt.date:
    return day + dt.timedelta(1)

@udf
def half(x: float) -> float:
    return x / 2

@udf
def flip(bit: bool) -> bool:
    return not bit

@udf
def reverse(data: bytes) -> bytes:
    return data[::-1]

@udf
def cents(price: decimal.Decimal) -> int:
    return int(price * 100)

@udf
def count(x: int) -> int:
    global calls
    calls += 1
    return calls

@udf
def meets(x: int, event: int) -> str:
    global calls
    calls += 1
    if x == 0:
        os.eventfd_read(event)
    if x == 1023:
        os.eventfd_write(event, 1)
    return f"{threading.get_ident()} {calls}"

@udf
def variable(x: int) -> str | None:
    return os.environ.get("ARROYO_UDF_TEST_VARIABLE")
"""


@pytest.fixture(scope="module")
def file(build_plugin: BuildPlugin) -> Path:
    return build_plugin(SOURCE, name="isolated")


@pytest.fixture(params=[1, 2], ids=["one", "two"])
def plugin(file: Path, request: pytest.FixtureRequest) -> Iterator[Plugin]:
    with load(file, isolation="subinterpreter", workers=request.param) as plugin:
        yield plugin


def answers(plugin: Plugin, function: str, *columns: pa.Array) -> Answer:
    """The values and the errors' texts, row by row, without the frames of the source."""
    outcomes = plugin.functions[function].outcomes(*columns)
    names = [field.name for field in outcomes.type]
    errors = outcomes.field("error").to_pylist() if "error" in names else [None] * len(outcomes)
    return outcomes.field("value").to_pylist(), errors


def test_values_of_all_native_types_are_as_in_a_thread(file: Path, plugin: Plugin) -> None:
    here = load(file)
    rows = 1_000
    numbers = pa.array([None if i % 7 == 0 else i for i in range(rows)], pa.int64())
    moment = here.functions["later"].arguments[0].type
    batches = {
        "plus": (numbers, pa.array(range(rows), pa.int64())),
        "shout": (pa.array(["a", None, "quiet", "\u20ac" * 9] * (rows // 4)),),
        "later": (numbers.cast(moment),),
        "next_day": (pa.array([i if i % 5 else None for i in range(rows)], pa.int32()).cast(pa.date32()),),
        "half": (numbers.cast(pa.float64()),),
        "flip": (pa.array([True, None, False, True] * (rows // 4)),),
        "reverse": (pa.array([b"", b"ab", None, b"\x00\xff"] * (rows // 4)),),
    }
    for name, columns in batches.items():
        assert answers(plugin, name, *columns) == answers(here, name, *columns), name
        slices = [column[3:] for column in columns]
        assert answers(plugin, name, *slices) == answers(here, name, *slices), name
        nothing = [column[:0] for column in columns]
        assert answers(plugin, name, *nothing) == answers(here, name, *nothing), name


def test_r2_an_exception_is_the_error_of_its_row_with_its_number_in_the_batch(file: Path, plugin: Plugin) -> None:
    numbers = pa.array([13 if i in (0, 511, 512, 999) else 2 for i in range(1_000)], pa.int64())
    values, errors = answers(plugin, "plus", numbers, numbers)
    assert (values, errors) == answers(load(file), "plus", numbers, numbers)
    assert [row for row, text in enumerate(errors) if text] == [0, 511, 512, 999]


def test_each_interpreter_has_the_module_to_itself_and_a_thread_of_its_own(file: Path) -> None:
    """The worker that waits in the first share runs that one alone, and the other one the rest."""
    event = os.eventfd(0)
    with load(file, isolation="subinterpreter", workers=2) as two:
        answered = two.functions["meets"](pa.array(range(1_024)), pa.array([event] * 1_024)).to_pylist()
    os.close(event)
    threads, calls = zip(*(map(int, text.split()) for text in answered), strict=True)
    assert len({*threads[:256]}) == len({*threads[256:]}) == 1
    assert len({*threads, threading.get_ident()}) == 3
    assert [*calls] == [*range(1, 257), *range(1, 769)]


def test_a_batch_is_not_cut_into_shares_that_are_not_worth_waking_a_thread(file: Path) -> None:
    with load(file, isolation="subinterpreter", workers=2) as two:
        assert two.functions["count"](pa.array(range(511), pa.int64())).to_pylist() == [*range(1, 512)]


def test_several_threads_of_a_host_call_at_once(file: Path) -> None:
    numbers = pa.array(range(1_000), pa.int64())
    got: list[list[object]] = []
    with load(file, isolation="subinterpreter", workers=2) as plugin:

        def call() -> None:
            for _ in range(5):
                got.append(answers(plugin, "plus", numbers, numbers)[0])

        threads = [threading.Thread(target=call) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert got == [[2 * a if a != 13 else None for a in range(1_000)]] * 30


def test_one_plugin_is_open_in_two_modes(file: Path) -> None:
    one = pa.array([1], pa.int64())
    here = load(file)
    with load(file, isolation="subinterpreter") as there:
        before = here.functions["count"](one)[0].as_py()
        assert there.functions["count"](one)[0].as_py() == 1
        assert here.functions["count"](one)[0].as_py() == before + 1


def test_a_closed_plugin_refuses_calls_by_name_and_starts_anew(file: Path) -> None:
    one = pa.array([1], pa.int64())
    with load(file, isolation="subinterpreter") as plugin:
        assert plugin.functions["count"](one).to_pylist() == [1]
    with pytest.raises(InvalidState, match=r"isolated\.count: the plugin is closed: load it again"):
        plugin.functions["count"](one)
    plugin.close()
    with load(file, isolation="subinterpreter") as plugin:
        assert plugin.functions["count"](one).to_pylist() == [1]


def test_the_environment_is_that_of_the_process_when_the_plugin_is_loaded(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = pa.array([1], pa.int64())
    for value in ("first", "second"):
        monkeypatch.setenv("ARROYO_UDF_TEST_VARIABLE", value)
        with load(file, isolation="subinterpreter") as plugin:
            assert plugin.functions["variable"](one).to_pylist() == [value]


def test_a_type_that_pyarrow_converts_is_refused_by_name_and_the_others_run(plugin: Plugin) -> None:
    text = r'isolated.cents: the argument "price" is a decimal, which needs pyarrow, .* choose isolation="process" or'
    with pytest.raises(UnsupportedCall, match=text):
        plugin.functions["cents"](pa.array([1]).cast(plugin.functions["cents"].arguments[0].type))
    assert plugin.functions["half"](pa.array([1.0])).to_pylist() == [0.5]


NEEDS = """
import {module}
from arroyo_udf_plugin import udf

@udf
def plus(x: int) -> int:
    return x + 1
"""


@pytest.mark.parametrize("module", ["numpy", "pyarrow.compute"])
def test_a_module_that_does_not_load_in_a_subinterpreter_is_named_with_what_to_choose(
    build_plugin: BuildPlugin, module: str
) -> None:
    path = build_plugin(NEEDS.format(module=module))
    package = module.partition(".")[0]
    text = f'imports {package}, which does not load in a subinterpreter .*: choose isolation="process" or "thread"'
    with pytest.raises(PluginEnvironmentError, match=text):
        load(path, isolation="subinterpreter")
    assert load(path).functions["plus"](pa.array([1])).to_pylist() == [2]


def test_a_module_that_fails_says_where(build_plugin: BuildPlugin) -> None:
    source = """
    import threading
    from arroyo_udf_plugin import udf

    if threading.get_ident() != threading.main_thread().ident:
        raise LookupError("not here")

    @udf
    def plus(x: int) -> int:
        return x + 1
    """
    with pytest.raises(UserCodeError, match=r"its module failed at import\n(.*\n)*.*LookupError: not here"):
        load(build_plugin(source, name="fails"), isolation="subinterpreter")


PROGRAM = """
import sys
import threading
import pyarrow as pa
from arroyo_udf_plugin import load
plugin = load(sys.argv[1], isolation="subinterpreter", workers=2)
numbers = pa.array(range(1000), pa.int64())
threads = [threading.Thread(target=plugin.functions["half"], args=(numbers.cast("double"),)) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(plugin.functions["plus"](pa.array([1]), pa.array([2])).to_pylist())
if sys.argv[2] == "close":
    plugin.close()
"""


@pytest.mark.parametrize("end", ["close", "leave"])
def test_r18_a_process_ends_without_a_word_in_development_mode(file: Path, end: str) -> None:
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", PROGRAM, str(file), end]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[3]\n", "")


FORKS = """
import ctypes
import os
import sys
import pyarrow as pa
from arroyo_udf_plugin import InvalidState, load
plugin = load(sys.argv[1], isolation="subinterpreter", workers=2)
numbers = pa.array([1])
child = ctypes.PyDLL(None).fork()  # as a host in C forks; CPython itself does not survive os.fork with a subinterpreter
if child == 0:
    try:
        plugin.functions["plus"](numbers, numbers)
    except InvalidState as error:
        print(error, flush=True)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(plugin.functions["plus"](numbers, numbers).to_pylist())
"""


def test_r13_a_forked_child_is_told_to_load_the_plugin(file: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORKS, str(file)], capture_output=True, text=True, timeout=300)
    refused = "isolated.plus: this process was forked from the one that opened the plugin: load the plugin here"
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{refused}\n7\n[2]\n", "")
