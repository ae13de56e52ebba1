"""Functions in Python that are compiled to C, against the same ones written in C, and against Python.

All through the Python host, in batches of 8,192 rows: what differs is the function.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin import Function, build, load
from arroyo_udf_plugin.host.fused import Fused, FusedCall
from conftest import BATCH_ROWS, Compare, note

HERE = Path(__file__).resolve().parent
N_BATCHES = 40
ROUNDS = 25


@pytest.fixture(scope="module")
def native() -> Any:
    return load(build(HERE / "native.py")).functions


@pytest.fixture(scope="module")
def in_c() -> Any:
    return load(build(HERE.parent / "examples" / "flights" / "udf.c")).functions


@pytest.mark.parametrize(
    ("name", "columns", "goal"),
    [("mph", ("distance", "air_time"), 1.5), ("tail", ("carrier", "tailnum"), 2.0)],
)
def test_against_c(
    native: Any, in_c: Any, flights: pa.Table, compare: Compare, name: str, columns: tuple[str, str], goal: float
) -> None:
    """Against the same function in C, which trusts its arguments more: it checks no zero, and knows no character."""
    batches = [batch.columns for batch in flights.select(columns).to_batches(BATCH_ROWS)]
    _compare(compare, f"{name}: native", native[name], in_c[name], "C", batches, goal)


def test_one_row_in_a_hundred_is_deferred(native: Any, in_c: Any, compare: Compare) -> None:
    choices = random.Random(1)
    names = [["N\u00e9" if choices.random() < 0.01 else "N14228" for _ in range(BATCH_ROWS)] for _ in range(N_BATCHES)]
    batches = [(pa.array(["UA"] * BATCH_ROWS), pa.array(column)) for column in names]
    _compare(compare, "tail: native, 1 % deferred", native["tail"], in_c["tail"], "C", batches, 3.0)


@pytest.mark.parametrize("name", ["mph", "tail"])
def test_all_rows_are_deferred(native: Any, compare: Compare, name: str) -> None:
    """The worst case, which must not be slower than Python: divisions by zero, texts that are not ASCII."""
    columns = {
        "mph": (pa.array(range(BATCH_ROWS)), pa.array([0] * BATCH_ROWS)),
        "tail": (pa.array(["AA"] * BATCH_ROWS), pa.array([f"\u00e9{number}" for number in range(BATCH_ROWS)])),
    }
    line, batches = f"{name}: native, all deferred", [columns[name]] * 4
    _compare(compare, line, native[name], native[f"{name}_python"], "Python", batches, 1.1)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The functions of tests/native_functions/corpus.py as they are, and as Python runs them."""
    source = (HERE.parent / "tests" / "native_functions" / "corpus.py").read_text()
    folder = tmp_path_factory.mktemp("corpus")
    built = []
    for name, text in (("corpus", source), ("corpus_python", source.replace("@udf\n", "@udf(native=False)\n"))):
        (folder / f"{name}.py").write_text(text)
        built.append(load(build(folder / f"{name}.py")).functions)
    return built[0], built[1]


DAYS = [f"{1990 + number % 40}-{1 + number % 12:02}-{1 + number % 28:02}" for number in range(BATCH_ROWS)]
FUNDINGS = [f"EC::H{2000 + number % 40}::{100_000 + number} (grant)" for number in range(BATCH_ROWS)]
WORDS = [["Running", "flies", "boxes", "glass", "Cars", "word"][number % 6] for number in range(BATCH_ROWS)]
AMOUNTS = [number / 7 for number in range(BATCH_ROWS)]
CORPUS: dict[str, tuple[list[Any], ...]] = {
    **dict.fromkeys(("cleandate", "extractday", "extractmonth", "extractyear"), (DAYS,)),
    **dict.fromkeys(("extractclass", "extractcode", "extractfunder", "extractid"), (FUNDINGS,)),
    **dict.fromkeys(("lowerize", "stem"), (WORDS,)),
    "converttoeuro": (AMOUNTS, [["USD", "chf"][number % 2] for number in range(BATCH_ROWS)]),
    "log_10": (AMOUNTS,),
}


@pytest.mark.parametrize("name", CORPUS)
def test_corpus(corpus: tuple[Any, Any], compare: Compare, name: str) -> None:
    batches = [tuple(map(pa.array, CORPUS[name]))] * 8
    _compare(compare, f"{name}: native", corpus[0][name], corpus[1][name], "Python", batches, 1.1)


# Each call with what it takes: column n, or the values of call -1 - n.
NESTED: dict[str, tuple[tuple[str, ...], str, list[tuple[str, tuple[int, ...]]]]] = {
    "numbers": (
        ("distance", "air_time"),
        "score_by_hand",
        [("mph", (0, 1)), ("late", (0, 1)), ("score", (-1, -2))],
    ),
    "texts": (("carrier", "tailnum"), "name_by_hand", [("tail", (0, 1)), ("lowered", (-1,)), ("ending", (-2, 0))]),
}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("is_fused", [True, False])
def test_three_functions_in_one_pass(
    native: Any, flights: pa.Table, compare: Compare, kind: str, is_fused: bool
) -> None:
    """Against one function that does what the three do; and the three one after the other, with arrays between them."""
    names, by_hand, written = NESTED[kind]
    batches = [batch.columns for batch in flights.select(names).to_batches(BATCH_ROWS)]
    fused = Fused([FusedCall(native[name], given, name == written[-1][0]) for name, given in written])

    def one_after_the_other(columns: Sequence[pa.Array]) -> pa.Array:
        values: list[pa.Array] = []
        for name, given in written:
            values.append(native[name](*(columns[place] if place >= 0 else values[-1 - place] for place in given)))
        return values[-1]

    subject = (lambda columns: fused.run(columns)) if is_fused else one_after_the_other
    passed = fused.run(batches[0])
    assert passed is not None
    assert passed.deferred is None
    assert passed.values[0].equals(native[by_hand](*batches[0]))
    compare(
        f"{kind}: three functions {'in one pass' if is_fused else 'one after the other'}",
        lambda: [subject(columns) for columns in batches],
        lambda: [native[by_hand](*columns) for columns in batches],
        reference_name="one, by hand",
        n=len(flights),
        unit="ns/row",
        scale=1e9,
        goal=1.2 if is_fused else None,
    )


@pytest.fixture(scope="module")
def corpus_in_c() -> Any:
    return load(build(HERE / "corpus.c")).functions


@pytest.mark.parametrize("name", CORPUS)
def test_corpus_against_c(corpus: tuple[Any, Any], corpus_in_c: Any, compare: Compare, name: str) -> None:
    columns = tuple(map(pa.array, CORPUS[name]))
    native, in_c = corpus[0][name], corpus_in_c[name]
    assert native.outcomes(*columns).field("value").equals(in_c.outcomes(*columns).field("value"))
    _compare(compare, f"{name}: native", native, in_c, "C", [columns] * 8, None)


def test_the_whole_corpus_against_c(corpus: tuple[Any, Any], corpus_in_c: Any, benchmark: Any) -> None:
    """The median of those that are native; how many are, and which is farthest from C, is in the name of the line."""
    native = [name for name, function in corpus[0].items() if function.native]
    assert set(native) == CORPUS.keys() == corpus_in_c.keys()

    def measure() -> dict[str, tuple[float, float]]:
        return {name: _in_turns(corpus[0][name], corpus_in_c[name], CORPUS[name]) for name in native}

    found = benchmark.pedantic(measure, rounds=1)
    ratios = {name: ours / theirs for name, (ours, theirs) in found.items()}
    worst = max(ratios, key=ratios.__getitem__)
    line = f"corpus: {len(native)} of {len(corpus[0])} functions native, median; worst is {worst}, {ratios[worst]:.2f}"
    ours = statistics.median(ours for ours, _ in found.values())
    note(benchmark, line, ours, "ns/row", "C", statistics.median(ratios.values()), 1.7)


def _in_turns(native: Function, in_c: Function, columns: tuple[list[Any], ...]) -> tuple[float, float]:
    """The median times of both for a row, in ns."""
    arrays = tuple(map(pa.array, columns))
    spent: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for function, times in zip((native, in_c), spent, strict=True):
            start = time.process_time()
            for _ in range(8):
                function.outcomes(*arrays)
            times.append((time.process_time() - start) / 8 / BATCH_ROWS * 1e9)
    return statistics.median(spent[0]), statistics.median(spent[1])


def _compare(
    compare: Compare, line: str, subject: Function, reference: Function, name: str, batches: Any, goal: float | None
) -> None:
    compare(
        line,
        lambda: [subject.outcomes(*columns) for columns in batches],
        lambda: [reference.outcomes(*columns) for columns in batches],
        reference_name=name,
        n=sum(len(columns[0]) for columns in batches),
        unit="ns/row",
        scale=1e9,
        goal=goal,
    )
