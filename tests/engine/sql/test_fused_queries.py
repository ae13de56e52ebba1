"""Nested calls of native functions in queries: EXPLAIN tells which are one pass, and rows are those of Python alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from sql_world import pipeline_of, run, run_killed

from arroyo_udf_plugin.engine.pipeline.explain import explained
from arroyo_udf_plugin.engine.pipeline.plan import plan
from arroyo_udf_plugin.host.fused import Fused

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.once]

SOURCE = """
from arroyo_udf_plugin import udf

@udf
def climb(alt: int | None) -> int:
    return 100 // (alt or 0)

@udf
def plus(a: int, b: int) -> int:
    return a + b

@udf
def mark(tail: str) -> str:
    return tail.lower() + "!"

@udf
def both(tail: str | None, n: int) -> str:
    return f"{tail or '?'}/{n}"

@udf
async def later(n: int) -> int:
    return n
"""
NESTED = "SELECT id, both(mark(tail), plus(climb(alt), id)) AS shown FROM flights"
ONE_PASS = "    in one pass: __r4 = both(mark(tail), plus(climb(alt), id))"


@pytest.fixture(scope="module")
def native(build_plugin: Callable[..., Path]) -> str:
    return str(build_plugin(SOURCE, name="fused"))


@pytest.fixture(scope="module")
def python(build_plugin: Callable[..., Path]) -> str:
    return str(build_plugin(SOURCE.replace("@udf\ndef", "@udf(native=False)\ndef"), name="fused"))


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each pass was given."""
    found, made = list[int](), Fused.run

    def counted(self: Fused, columns: Sequence[Any]) -> Any:
        found.append(len(columns[0]))
        return made(self, columns)

    monkeypatch.setattr(Fused, "run", counted)
    return found


def told(text: str, plugin: str) -> list[str]:
    planned = plan(pipeline_of(text, [plugin]))
    planned.close()
    return [line for line in explained(planned).splitlines() if "in one pass" in line]


@pytest.mark.parametrize("action", ["null", "drop"])
@pytest.mark.parametrize(
    "query",
    [
        NESTED,
        f"{NESTED} WHERE plus(climb(alt), id) > 20",
        "SELECT climb(alt) AS c, plus(climb(alt), id) AS p, upper(mark(mark(tail))) AS m FROM flights WHERE ok",
        "SELECT id, later(plus(plus(id, 1), 2)) AS l FROM flights",
        "SELECT id, CASE WHEN ok THEN plus(climb(alt), id) ELSE plus(plus(id, 1), 2) END AS p FROM flights",
    ],
)
def test_rows_are_those_of_python(native: str, python: str, passes: list[int], action: str, query: str) -> None:
    text = f"SET on_error = '{action}'; {query}"
    expected = run(text, [python])
    assert not passes
    shutil.rmtree("rows")
    assert run(text, [native]) == expected
    assert passes


def test_an_engine_that_is_killed_goes_on(native: str, python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"SET on_error = 'drop'; {NESTED}"
    found = run_killed(text, [native], monkeypatch)
    shutil.rmtree("rows")
    assert found == run(text, [python])


def test_explain_shows_passes(native: str, python: str) -> None:
    assert told(NESTED, native) == [ONE_PASS]
    assert told(NESTED, python) == []
    assert told(f"SET isolation = 'process'; {NESTED}", native) == []


@pytest.mark.parametrize(
    ("query", "passes"),
    [
        ("SELECT plus(climb(alt), id) AS p, climb(alt) AS c", ["__r1 = climb(alt), __r2 = plus(__r1, id)"]),
        ("SELECT plus(climb(alt), later(id)) AS p", []),
        ("SELECT later(plus(climb(alt), id)) AS p", ["__r2 = plus(climb(alt), id)"]),
        ("SELECT plus(climb(alt) + 1, id) AS p", []),
        ("SELECT climb(alt) AS c, mark(tail) AS m", []),
        (
            "SELECT CASE WHEN ok THEN plus(climb(alt), id) END AS p",
            ["__r3 = plus(climb(alt) if __g2, id) if __g2"],
        ),
    ],
)
def test_which_calls_are_one_pass(native: str, query: str, passes: list[str]) -> None:
    assert told(f"{query} FROM flights", native) == [f"    in one pass: {text}" for text in passes]
