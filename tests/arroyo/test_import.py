"""Libraries on the published crates in our host: their faults are outcomes, never a hang."""

import pyarrow as pa
import pytest

from arroyo_udf_plugin import AbiError, InvalidArgument, LoadError, RowError, load

INT, TEXT = pa.int64(), pa.string()
FIELDS = [pa.field("x", INT), pa.field("text", TEXT, nullable=False)]


@pytest.fixture(scope="module")
def imported(library):
    """The function of a library on the published crates."""

    def find(name, arguments=(INT,), returns=INT):
        plugin = load(library("published", name), arguments=list(arguments), returns=returns)
        return plugin.functions[name]

    return find


def drain_into(found, runtime):
    """Adds outcome, value and error by id of the rows that have ended."""
    batch = runtime.drain_results()
    for row in batch.to_pylist() if batch is not None else []:
        assert row["id"] not in found
        found[row["id"]] = (row["outcome"], row["value"], row["error"])


def collect(runtime, rows):
    """Outcome, value and error of each row by id, once `rows` have come."""
    found = {}
    while len(found) < rows:
        assert runtime.wait(60.0), f"{len(found)} of {rows} rows, and then nothing"
        drain_into(found, runtime)
    return found


VALUE, ERROR, TIMED_OUT = 0, 1, 2


# ---- Sync ------------------------------------------------------------------------------------------------------------


def test_a_sync_function_takes_arrays_as_any_other(imported):
    add_one = imported("add_one")
    numbers = pa.array(range(-5_000, 5_000))
    assert add_one(numbers).to_pylist() == list(range(-4_999, 5_001))
    assert add_one(numbers[17:4_000]).to_pylist() == list(range(-4_982, -999))
    assert add_one(pa.array([], INT)).to_pylist() == []
    chunked = add_one(pa.chunked_array([[1, 2], [], [3]], INT))
    assert chunked.to_pylist() == [2, 3, 4]


def test_nulls_and_texts_of_a_sync_function(imported):
    maybe = imported("maybe", FIELDS, pa.field("", TEXT))
    answer = maybe(pa.array([1, None, 3, 4]), pa.array(["a", "b", None, "d"]))
    assert answer.to_pylist() == ["a 1", None, None, "d 4"]
    assert imported("str_len", [TEXT])(pa.array(["", None, "\u20ac"])).to_pylist() == [0, None, 3]


def test_a_panic_is_the_error_of_its_row_alone(imported):
    refuses = imported("refuses")
    with pytest.raises(RowError, match=r"refuses\.refuses, row 3: the function panicked") as caught:
        refuses(pa.array(range(6)))
    assert set(caught.value.errors) == {3}
    outcomes = refuses.outcomes(pa.array(range(6))).to_pylist()
    assert [row["value"] for row in outcomes] == [0, 1, 2, None, 4, 5]


def test_wrong_declared_types_are_errors_of_rows(imported):
    with pytest.raises(RowError, match='answer has the Arrow type "l", but is declared as "u"'):
        imported("add_one", returns=TEXT)(pa.array([1]))
    with pytest.raises(RowError, match="the function panicked"):
        imported("add_one", [TEXT])(pa.array(["1"]))


# ---- Async -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("allowed_in_flight", [1, 7, 500])
def test_async_rows_come_once_with_their_values(imported, ordered, allowed_in_flight):
    echo, rows = imported("echo", FIELDS, pa.field("", TEXT)), 400
    numbers = pa.array([None if n % 5 == 3 else n for n in range(rows)], INT)
    texts = pa.array([None if n % 7 == 2 else f"r{n}" for n in range(rows)])
    with echo.start(ordered=ordered, allowed_in_flight=allowed_in_flight) as runtime:
        runtime.send(100, numbers, texts)
        found = collect(runtime, rows)
        assert not ordered or list(found) == list(range(100, 100 + rows))
        # F3: a null text prevents the call, which would see the value below the null.
        for n in range(rows):
            value = None if n % 5 == 3 or n % 7 == 2 else f"r{n} {n}"
            assert found[100 + n] == (VALUE, value, None)
        assert runtime.stop()


def test_a_runtime_that_dies_loses_no_row_and_is_replaced(imported):
    """A dying runtime reports nothing; the first row that it refuses shows it. Rows that it had taken are errors."""
    with imported("panics").start(allowed_in_flight=100_000, timeout=60.0) as runtime:
        runtime.send(0, pa.array(range(4)))
        sent, found = 4, {}
        while 3 not in found:
            runtime.send(sent, pa.array([sent]))
            sent += 1
            drain_into(found, runtime)
        found |= collect(runtime, sent - len(found))
        outcome, value, text = found[3]
        assert (outcome, value) == (ERROR, None)
        assert text.startswith("panics.panics, row 3: the library's runtime died with this row in flight")
        runtime.send(sent, pa.array(range(sent, sent + 40)))
        assert collect(runtime, 40) == {n: (VALUE, n, None) for n in range(sent, sent + 40)}


def test_silence_is_a_timeout(imported):
    """With one row at a time, no other row can show that the runtime has died."""
    with imported("panics").start(allowed_in_flight=1, timeout=2.0) as runtime:
        runtime.send(0, pa.array(range(6)))
        found = collect(runtime, 6)
        assert found.pop(3)[0] == TIMED_OUT
        assert found == {n: (VALUE, n, None) for n in (0, 1, 2, 4, 5)}


def test_rows_that_never_end_time_out_and_a_stop_ends_them(imported):
    """Every fourth row waits in the library for ever."""
    with imported("waits").start(timeout=2.0, ordered=False, max_attempts=1) as runtime:
        runtime.send(0, pa.array(range(8)))
        found = collect(runtime, 8)
        assert {n: outcome for n, (outcome, _, _) in found.items()} == {
            n: TIMED_OUT if n % 4 == 1 else VALUE for n in range(8)
        }
        runtime.send(8, pa.array([1, 1, 1]))
        assert runtime.stop("cancel", 0.0), "their runtime is ended, and with it the rows"


def test_several_runtimes_of_one_library(imported):
    at_once = imported("at_once")
    runtimes = [at_once.start() for _ in range(3)]
    for runtime in runtimes:
        runtime.send(0, pa.array(range(500)))
    for runtime in runtimes:
        assert collect(runtime, 500) == {n: (VALUE, n + 1, None) for n in range(500)}
        assert runtime.stop()
        runtime.release()


# ---- Loading ---------------------------------------------------------------------------------------------------------


def test_the_descriptor_of_an_imported_library(imported, library):
    function = imported("at_once", [pa.field("x", INT)], INT)
    assert repr(function) == "<async function at_once(x: int64) -> int64>"
    assert (function.arguments.field("x").nullable, function.returns_nullable) == (True, False)
    plugin = load(library("published", "add_one"), arguments=[INT], returns=INT)
    assert (plugin.name, plugin.language, list(plugin.functions)) == ("add_one", "arroyo", ["add_one"])


def test_missing_symbols_are_named(library, tmp_path):
    published = library("published", "add_one")
    with pytest.raises(LoadError, match=r"do not describe types: give them, as in load\(path, arguments="):
        load(published)
    with pytest.raises(InvalidArgument, match="give both `arguments` and `returns`"):
        load(published, arguments=[INT])
    with pytest.raises(InvalidArgument, match="at least one argument"):
        load(published, arguments=[], returns=INT)
    with pytest.raises(InvalidArgument, match="'int64' is not an Arrow type"):
        load(published, arguments=["int64"], returns=INT)
    with pytest.raises(AbiError, match="load it without arguments and returns"):
        load(library("rust", "add_one"), arguments=[INT], returns=INT)
    text = tmp_path / "text.so"
    text.write_text("no library")
    with pytest.raises(LoadError, match="cannot be opened as a shared library"):
        load(text, arguments=[INT], returns=INT)
