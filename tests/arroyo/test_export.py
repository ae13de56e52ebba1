"""Our plugins in a host of Arroyo's interface, which is written against the published crates. The plugins on those
crates go through the same tests, where they can pass them."""

import pytest
from symbols import exported

OURS = ["python", "rust"]
ALL = [*OURS, "published"]
SYNC, ASYNC = {"__run"}, {"__start", "__send", "__drain_results", "__stop_runtime"}


def rows_of(lines):
    """Id and value of each row, in order of arrival, of one stream."""
    return [tuple(line.split(" ", 1)) for line in lines if line[:1].isdigit()]


# ---- Which symbols ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", OURS)
def test_the_only_function_is_exported_with_the_symbols_of_its_kind(library, language):
    assert exported(library(language, "add_one")) == SYNC | {"arroyo_udf_plugin"}
    for name in ("at_once", "blocks"):
        assert exported(library(language, name)) == ASYNC | {"arroyo_udf_plugin"}


@pytest.mark.parametrize("language", OURS)
def test_of_several_functions_the_named_one_is_exported(library, language):
    assert exported(library(language, "several")) == {"arroyo_udf_plugin"}
    assert exported(library(language, "several", arroyo="second")) == ASYNC | {"arroyo_udf_plugin"}


@pytest.mark.parametrize("language", OURS)
def test_an_unknown_function_is_refused_by_name(library, language):
    from arroyo_udf_plugin import BuildError

    with pytest.raises(BuildError, match="--arroyo third: its functions are first, second"):
        library(language, "several", arroyo="third")


# ---- Sync ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ALL)
def test_a_sync_function_answers_each_row_of_each_batch(host, library, language):
    lines = host.lines("call", library(language, "add_one"), types="i64", rows=10_000, batch=1_024)
    assert lines == [f"{n} {n + 1}" for n in range(10_000)] + ["lent 0"]


@pytest.mark.parametrize("language", ALL)
def test_nulls_and_texts_of_a_sync_function(host, library, language):
    lines = host.lines("call", library(language, "maybe"), types="i64?,string", rows=50, batch=7)
    assert lines == [f"{n} null" if n % 5 == 3 else f"{n} r{n} {n}" for n in range(50)] + ["lent 0"]
    # F3: not called where an argument that is not nullable is null.
    lines = host.lines("call", library(language, "str_len"), types="string?", rows=50)
    assert lines == [f"{n} null" if n % 5 == 3 else f"{n} {len(f'r{n}')}" for n in range(50)] + ["lent 0"]


@pytest.mark.parametrize("language", ALL)
def test_a_sync_function_runs_in_several_threads_at_once(host, library, language):
    lines = host.lines("call", library(language, "add_one"), types="i64", rows=5_000, batch=100, threads=4)
    assert lines == [f"{n} {n + 1}" for n in range(5_000)] + ["lent 0"]


@pytest.mark.parametrize("language", OURS)
def test_a_failed_row_fails_its_batch_and_says_which(host, library, language):
    done = host("call", library(language, "refuses"), types="i64", rows=8, batch=2)
    assert done.stdout.splitlines() == ["0 0", "1 1", "batch failed", "4 4", "5 5", "6 6", "7 7", "lent 0"]
    said = [line for line in done.stderr.splitlines() if line.startswith("arroyo-udf: ")]
    assert len(said) == 1
    assert said[0].startswith("arroyo-udf: refuses.refuses, row 1: ")
    assert "three" in done.stderr


@pytest.mark.parametrize("language", OURS)
def test_with_null_a_failed_row_is_null(host, library, language):
    done = host("call", library(language, "refuses", on_error="null"), types="i64", rows=8, batch=2)
    values = ["0 0", "1 1", "2 2", "3 null", "4 4", "5 5", "6 6", "7 7", "lent 0"]
    assert done.stdout.splitlines() == values
    assert "arroyo-udf: " not in done.stderr


@pytest.mark.parametrize("language", OURS)
def test_arguments_of_another_type_are_refused_and_released(host, library, language):
    done = host("call", library(language, "str_len"), types="i64", rows=2)
    assert done.stdout.splitlines() == ["batch failed", "lent 0"]
    assert 'argument text has the Arrow type "l", but is declared as "u"' in done.stderr


# ---- Async -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ALL)
@pytest.mark.parametrize("cap", [1, 2, 10, 1_000])
def test_ordered_rows_come_once_and_in_order(host, library, language, cap):
    rows = 300
    lines = host.lines("stream", library(language, "echo"), types="i64?,string", rows=rows, cap=cap)
    expected = [(str(n), "null" if n % 5 == 3 else f"r{n} {n}") for n in range(rows)]
    assert rows_of(lines) == expected
    assert lines[-2:] == ["alive, 0 sends refused", "lent 0"]


@pytest.mark.parametrize("language", ALL)
@pytest.mark.parametrize("cap", [1, 10, 1_000])
def test_unordered_rows_come_once(host, library, language, cap):
    lines = host.lines("stream", library(language, "echo"), types="i64?,string", rows=300, cap=cap, ordered=0)
    expected = {(str(n), "null" if n % 5 == 3 else f"r{n} {n}") for n in range(300)}
    assert len(rows_of(lines)) == 300
    assert set(rows_of(lines)) == expected


@pytest.mark.parametrize("language", ALL)
@pytest.mark.parametrize("ordered", [0, 1])
def test_a_hundred_thousand_rows(host, library, language, ordered):
    rows = 100_000
    lines = host.lines("stream", library(language, "at_once"), types="i64", rows=rows, ordered=ordered, workers=2)
    expected = [(str(n), str(n + 1)) for n in range(rows)]
    assert (rows_of(lines) if ordered else sorted(rows_of(lines), key=lambda row: int(row[0]))) == expected
    assert lines[-2:] == ["alive, 0 sends refused", "lent 0"]


@pytest.mark.parametrize("language", ALL)
@pytest.mark.parametrize("ordered", [0, 1])
def test_rows_that_wait_for_a_drain_hold_nothing_back(host, library, language, ordered):
    """The host sends a whole batch before it drains."""
    options = {"types": "i64", "rows": 8_192, "cap": 10, "ordered": ordered, "drain": "end"}
    lines = host.lines("stream", library(language, "at_once"), **options)
    assert len(set(rows_of(lines))) == 8_192


@pytest.mark.parametrize("language", OURS)
@pytest.mark.parametrize("cap", [1, 10])
def test_a_send_is_pending_while_the_limit_runs_and_one_waits(host, library, language, cap):
    """All of these rows wait for ever."""
    lines = host.lines("accepted", library(language, "never"), types="i64", rows=cap + 5, cap=cap)
    assert lines == ["pending", f"accepted {cap + 1}"]


@pytest.mark.parametrize("language", OURS)
def test_ids_need_not_rise(host, library, language):
    lines = host.lines("stream", library(language, "at_once"), types="i64", rows=100, ids="fall")
    assert rows_of(lines) == [(str(2**64 - 1 - n), str(n + 1)) for n in range(100)]


@pytest.mark.parametrize("language", OURS)
def test_blocking_functions_are_async(host, library, language):
    lines = host.lines("stream", library(language, "blocks"), types="i64", rows=500, cap=4)
    assert rows_of(lines) == [(str(n), str(n + 1)) for n in range(500)]


@pytest.mark.parametrize("language", ALL)
def test_futures_that_are_never_polled_release_their_arguments(host, library, language):
    lines = host.lines("unpolled", library(language, "at_once"), types="i64", rows=20)
    assert lines == ["lent 20" if language == "published" else "lent 0"]


# ---- Faults ----------------------------------------------------------------------------------------------------------


def reports(done):
    return [line for line in done.stderr.splitlines() if line.startswith("arroyo-udf: ")]


@pytest.mark.parametrize("language", OURS)
@pytest.mark.parametrize("ordered", [0, 1])
def test_a_failed_row_ends_the_stream_after_those_that_had_a_value(host, library, language, ordered):
    options = {"types": "i64", "rows": 6, "cap": 1, "ordered": ordered, "drain": "end", "after": "send"}
    done = host("stream", library(language, "panics"), **options)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    came = rows_of(lines)
    assert came[:3] == [("0", "0"), ("1", "1"), ("2", "2")]
    assert "3" not in dict(came)
    assert not ordered or len(came) == 3
    assert "later send false" in lines
    assert any(line.startswith("dead, ") for line in lines)
    assert len(reports(done)) == 1
    assert reports(done)[0].startswith("arroyo-udf: panics.panics, row 3: ")
    assert "three" in done.stderr


@pytest.mark.parametrize("language", OURS)
def test_with_null_a_failed_row_is_null_and_the_others_come(host, library, language):
    done = host("stream", library(language, "panics", on_error="null"), types="i64", rows=6)
    assert rows_of(done.stdout.splitlines()) == [(str(n), "null" if n == 3 else str(n)) for n in range(6)]
    assert "alive, 0 sends refused" in done.stdout
    assert not reports(done)


@pytest.mark.parametrize("language", OURS)
def test_a_timeout_ends_the_stream_after_those_that_had_a_value(host, library, language):
    options = {"types": "i64", "rows": 3, "timeout_ms": 1000, "ordered": 0}
    done = host("stream", library(language, "waits"), **options)
    assert sorted(rows_of(done.stdout.splitlines())) == [("0", "0"), ("2", "2")]
    assert "dead, 0 sends refused" in done.stdout
    assert [line.partition(" in attempt")[0] for line in reports(done)] == [
        "arroyo-udf: waits.waits, row 1: timed out (timeout 1 s)"
    ]


@pytest.mark.parametrize("language", OURS)
def test_with_null_a_row_that_timed_out_is_null(host, library, language):
    plugin = library(language, "waits", on_error="null")
    lines = host.lines("stream", plugin, types="i64", rows=3, timeout_ms=1000)
    assert rows_of(lines) == [("0", "0"), ("1", "null"), ("2", "2")]


@pytest.mark.parametrize("language", OURS)
def test_no_calls_at_once_are_refused(host, library, language):
    done = host("stream", library(language, "at_once"), types="i64", rows=2, cap=0)
    assert "dead, 2 sends refused" in done.stdout
    assert "allowed_in_flight is 0" in done.stderr
    assert "lent 0" in done.stdout


def test_an_init_that_fails_ends_the_stream(host, library):
    done = host("stream", library("python", "late"), types="i64", rows=2)
    assert any(line.startswith("dead, ") for line in done.stdout.splitlines())
    assert len(reports(done)) == 1
    assert "no database" in done.stderr


def test_a_plugin_that_finds_no_python_says_so_once(host, library, monkeypatch):
    monkeypatch.setenv("ARROYO_UDF_PYTHON", "/nowhere/python")
    done = host("stream", library("python", "at_once"), types="i64", rows=2)
    assert "dead, 2 sends refused" in done.stdout
    assert "lent 0" in done.stdout
    assert len(reports(done)) == 1
    assert "there is no Python at /nowhere/python" in done.stderr
    done = host("call", library("python", "add_one"), types="i64", rows=2, batch=1)
    assert done.stdout.splitlines() == ["batch failed", "batch failed", "lent 0"]
    assert len(reports(done)) == 1


# ---- Ends ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ALL)
def test_a_stop_while_rows_run_returns_and_everything_is_released(host, library, language):
    lines = host.lines("abandon", library(language, "waits"), types="i64", rows=50, how="stop", ordered=0)
    assert lines == ["busy", "lent 0"]


@pytest.mark.parametrize("language", ALL)
def test_the_process_may_exit_while_rows_run(host, library, language):
    done = host("abandon", library(language, "waits"), types="i64", rows=50, how="exit", ordered=0)
    assert (done.returncode, done.stdout) == (0, "busy\n"), done.stderr


# ---- Company ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("allocator", ["system", "jemalloc"])
def test_several_plugins_and_handles_in_one_process(host, jemalloc_host, library, allocator):
    plugins = [library(language, "at_once") for language in ALL] + [library("python", "heavy")]
    the_host = jemalloc_host if allocator == "jemalloc" else host
    rows, handles = 3_000, 3
    lines = the_host.lines("stream", plugins, types="i64", rows=rows, handles=handles, workers=1)
    came = rows_of(lines)
    assert len(came) == rows * len(plugins) * handles
    assert set(came) == {(str(n), str(n + 1)) for n in range(rows)}
    assert lines.count("alive, 0 sends refused") == len(plugins) * handles
    assert lines[-1] == "lent 0"


@pytest.mark.parametrize("language", ALL)
def test_in_a_host_with_jemalloc(jemalloc_host, library, language):
    lines = jemalloc_host.lines("stream", library(language, "echo"), types="i64?,string", rows=500)
    assert [value for _, value in rows_of(lines)] == ["null" if n % 5 == 3 else f"r{n} {n}" for n in range(500)]
    lines = jemalloc_host.lines("call", library(language, "maybe"), types="i64?,string", rows=500, batch=64)
    assert lines == [f"{n} null" if n % 5 == 3 else f"{n} r{n} {n}" for n in range(500)] + ["lent 0"]
