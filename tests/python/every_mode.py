"""The tests of functions in every isolation: `pytest --isolation=process`, or `subinterpreter`, or `thread`.

With this option the files of FILES run, and their `load` opens plugins in that isolation. Nothing else in them differs,
so what they promise holds there too. What an isolation does not have is in NOT_HERE, each with the reason, which pytest
prints. A plugin for pytest; tests/conftest.py names it.

Assumes: tests call `arroyo_udf_plugin.load` in the process of pytest. Programs that tests start decide for themselves.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from arroyo_udf_plugin import load

ROOT = Path(__file__).resolve().parents[2]
MODES = ("thread", "subinterpreter", "process")

# The number of workers; one where rows share what the plugin's module keeps.
FILES = {
    "tests/python/test_annotations.py": 2,
    "tests/python/test_async.py": 1,
    "tests/python/test_asyncio.py": 1,
    "tests/python/test_awaited_calls.py": 1,
    "tests/python/test_batches.py": 1,
    "tests/python/test_blocking.py": 1,
    "tests/python/test_call_and_map.py": 1,
    "tests/python/test_call_info.py": 1,
    "tests/python/test_carried.py": 1,
    "tests/python/test_decorators.py": 1,
    "tests/python/test_deterministic.py": 1,
    "tests/python/test_ended.py": 1,
    "tests/python/test_executor.py": 1,
    "tests/python/test_lifecycle.py": 1,
    "tests/python/test_map.py": 1,
    "tests/python/test_misbehaving.py": 1,
    "tests/python/test_policy.py": 1,
    "tests/python/test_retry.py": 1,
    "tests/python/test_send_context.py": 1,
    "tests/python/test_statistics.py": 1,
    "tests/python/test_sync.py": 2,
    "tests/python/test_types.py": 2,
    "tests/python/test_vectorized.py": 1,
    "tests/python/test_vectorized_results.py": 1,
    "tests/abi/test_c_async.py": 1,
    "tests/abi/test_c_functions.py": 2,
    "tests/abi/test_row_texts.py": 2,
    "tests/native/test_rust_functions.py": 2,
}

INSIDE = "the test looks into the plugin's module, which is not in this interpreter"
LATER = "what a worker has counted comes with its next answer"
LANGUAGE = "refuses plugins in other languages by name"
NOT_NATIVE = "refuses types by name that need pyarrow"
OWN_HOST = "the test starts a host of its own, which loads into a thread"
PYARROW = "refuses a module by name that imports pyarrow"

# What an isolation does not have: tests by their file, or a whole file.
NOT_HERE: dict[str, dict[str, str | dict[str, str]]] = {
    "thread": {},
    "process": {
        "tests/python/test_asyncio.py": {
            "test_with_the_standard_loop": OWN_HOST,
        },
        "tests/python/test_executor.py": {
            "test_a_turn_that_fails_is_not_the_last_one": INSIDE,
            "test_calls_that_run_at_a_poisoning_are_cancelled_before_the_context_is_closed": INSIDE,
        },
        "tests/python/test_lifecycle.py": {
            "test_r12_start_gives_up_on_an_init_that_blocks_the_loop": INSIDE,
        },
        "tests/abi/test_c_async.py": {
            "test_a_call_that_timed_out_keeps_its_slot_until_it_is_completed": LATER,
            "test_completions_of_a_stuck_call_have_no_effect": LATER,
            "test_the_arguments_of_a_stuck_call_stay_when_it_has_ended_the_runtime": "a worker has copies of them",
            "test_the_first_completion_counts_and_others_are_counted": LATER,
            "test_too_many_stuck_calls_end_the_runtime": LATER,
        },
    },
    "subinterpreter": {
        "tests/python/test_annotations.py": {
            "test_times_of_day": NOT_NATIVE,
            "test_named_tuples_are_structs": NOT_NATIVE,
            "test_uuids_are_bytes_if_the_author_says_so": PYARROW,
            "test_uuids_of_parquet_files_are_their_bytes": PYARROW,
        },
        "tests/python/test_async.py": {
            "test_cancel_rows": NOT_NATIVE,
            "test_r4_a_slice_counts_its_own_bytes_only": NOT_NATIVE,
            "test_structs_of_one_batch_after_another": NOT_NATIVE,
        },
        "tests/python/test_asyncio.py": {
            "test_the_loop": "uvloop does not load there",
            "test_with_the_standard_loop": OWN_HOST,
        },
        "tests/python/test_awaited_calls.py": {
            "test_a_result_that_is_no_value_of_python_is_an_error_of_its_row": NOT_NATIVE,
            "test_arguments_that_are_lists": NOT_NATIVE,
        },
        "tests/python/test_batches.py": {
            "test_arrow_arrays_instead_of_lists": PYARROW,
            "test_structs_and_lists_as_items": PYARROW,
        },
        "tests/python/test_blocking.py": {
            "test_example[.rs]": LANGUAGE,
            "test_structs": NOT_NATIVE,
        },
        "tests/python/test_call_and_map.py": PYARROW,
        "tests/python/test_deterministic.py": {"test_values_are_those_of_a_call_for_each_row": NOT_NATIVE},
        "tests/python/test_executor.py": {
            "test_a_turn_that_fails_is_not_the_last_one": INSIDE,
            "test_a_start_in_the_loops_own_thread_is_refused_at_once": "a function loads no plugin there",
            "test_calls_that_run_at_a_poisoning_are_cancelled_before_the_context_is_closed": INSIDE,
        },
        "tests/python/test_lifecycle.py": {
            "test_r12_start_gives_up_on_an_init_that_blocks_the_loop": INSIDE,
        },
        "tests/python/test_map.py": PYARROW,
        "tests/python/test_misbehaving.py": {
            "test_converted_batches_are_told_apart": NOT_NATIVE,
            "test_datetime_whose_conversion_answers_something_else": PYARROW,
            "test_lists_that_raise_when_they_are_read": NOT_NATIVE,
        },
        "tests/python/test_retry.py": {
            "test_r7_a_retry_does_not_see_what_the_failed_attempt_changed": NOT_NATIVE,
        },
        "tests/python/test_sync.py": {
            "test_calls_within_a_call": PYARROW,
            "test_failed_rows_and_their_neighbours": PYARROW,
            "test_list_items_may_be_declared_nullable": PYARROW,
            "test_row_numbers_count_over_chunks": PYARROW,
            "test_vectorized_mistake_is_each_row_s_error": PYARROW,
        },
        "tests/python/test_types.py": PYARROW,
        "tests/python/test_vectorized.py": PYARROW,
        "tests/python/test_vectorized_results.py": PYARROW,
        "tests/abi/test_c_async.py": LANGUAGE,
        "tests/abi/test_c_functions.py": LANGUAGE,
        "tests/abi/test_row_texts.py": LANGUAGE,
        "tests/native/test_rust_functions.py": LANGUAGE,
    },
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--isolation", choices=MODES, help="run the tests of functions with plugins in this isolation")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if config.getoption("isolation") is None or collection_path.is_dir():
        return None
    return True if collection_path.relative_to(ROOT).as_posix() not in FILES else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mode = config.getoption("isolation")
    if mode is None:
        return
    there = set[tuple[str, str]]()
    for item in items:
        file, _, test = item.nodeid.partition("::")
        reasons = NOT_HERE[mode].get(file, {})
        for name in {test, test.partition("[")[0]}:  # with its parameters, or without
            there.add((file, name))
            if reason := reasons if isinstance(reasons, str) else reasons.get(name):
                item.add_marker(pytest.mark.skip(reason=f"{mode}: {reason}"))
    files = {file for file, _ in there}
    named = {(file, name) for file in files & NOT_HERE[mode].keys() for name in _names(NOT_HERE[mode][file])}
    if (gone := named - there) and not any("::" in argument for argument in config.args):
        raise pytest.UsageError(f"every_mode.py names tests that are not there: {sorted(gone)}")


def _names(reasons: str | dict[str, str]) -> Iterable[str]:
    return () if isinstance(reasons, str) else reasons


@pytest.fixture(scope="module", autouse=True)
def _isolation(request: pytest.FixtureRequest) -> Iterator[None]:
    """Gives `load` other defaults, which holds for every module that has imported it."""
    mode = request.config.getoption("isolation")
    if mode is None:
        yield
        return
    defaults = load.__kwdefaults__
    assert defaults is not None
    before = dict(defaults)
    workers = FILES[request.node.nodeid] if mode != "thread" else 1
    defaults.update(isolation=mode, workers=workers)
    yield
    defaults.update(before)
