"""Why rows failed: kinds, their counts and first rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin.engine.operators.failures import MOST_KINDS, Failures, together
from arroyo_udf_plugin.host.policy import LETTER


def letters(texts: Sequence[str], first: int = 1) -> pa.RecordBatch:
    rows = [
        {"failed_row": row, "failed_file": "a.csv", "failed_error": text, "failed_function": "f"}
        for row, text in enumerate(texts, first)
    ]
    return pa.RecordBatch.from_pylist(rows, LETTER)


def test_texts_that_begin_alike_are_one_kind() -> None:
    failures = Failures()
    new = failures.add(letters(["ValueError: only 7", "user 4 not found", "ValueError: only 3\n  at f"]))
    assert [(one.kind, one.rows) for one in new] == [("ValueError", 2), ("user # not found", 1)]
    assert failures.add(letters(["user 5.5 not found", "stopped\nhere"], first=4))[0].kind == "stopped"
    assert [(one.function, one.kind, one.rows, one.message) for one in failures.so_far] == [
        ("f", "ValueError", 2, "a.csv, row 1: ValueError: only 7"),
        ("f", "user # not found", 2, "a.csv, row 2: user 4 not found"),
        ("f", "stopped", 1, "a.csv, row 5: stopped"),
    ]


def test_control_characters_are_not_told_as_they_are() -> None:
    failures = Failures()
    (one,) = failures.add(letters(["ValueError: \x1b[31mred\x9b\r\n  at f"]))
    assert one.message == "a.csv, row 1: ValueError: \\x1b[31mred\\x9b\\r"


@settings(deadline=None)  # the first array of a process imports pandas
@given(st.lists(st.lists(st.text(max_size=5)), max_size=10))
def test_all_rows_are_counted_and_kinds_have_a_limit(batches: list[list[str]]) -> None:
    failures, first = Failures(), 1
    for texts in batches:
        failures.add(letters(texts, first))
        first += len(texts)
    assert sum(one.rows for one in failures.so_far) == first - 1
    assert len(failures.so_far) <= MOST_KINDS + 1


def test_many_kinds_are_told_as_one() -> None:
    failures = Failures()
    failures.add(letters([chr(ord("a") + number) for number in range(26)]))
    assert [one.rows for one in failures.so_far] == [1] * MOST_KINDS + [26 - MOST_KINDS]
    assert failures.so_far[-1].kind == "others"


def test_slices_are_told_together() -> None:
    first, second = Failures(), Failures()
    first.add(letters(["ValueError: 1", "late"]))
    second.add(letters(["ValueError: 2"], first=10))
    told = together([first.so_far, second.so_far])
    assert [(one.kind, one.rows, one.row) for one in told] == [("ValueError", 2, 1), ("late", 1, 2)]
