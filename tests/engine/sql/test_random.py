"""Random expressions with calls anywhere in them: the engine's results are DataFusion's."""

from __future__ import annotations

import os
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sql_world import reference, run

from arroyo_udf_plugin import load

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.once]

Texts = st.SearchStrategy[str]


def _written(pattern: str, *parts: Texts) -> Texts:
    """The pattern with an expression in each of its brackets."""
    return st.tuples(*parts).map(lambda found: pattern.format(*found))


def _case(inner: Texts) -> Texts:
    """For DataFusion 55, `1 IN ((CASE id WHEN id THEN id END), 3)` is null, whatever id is: such a CASE is left out."""
    parts = st.tuples(inner, inner, inner).filter(lambda found: found[0] != found[1])
    return parts.map(lambda found: f"(CASE {found[0]} WHEN {found[1]} THEN {found[2]} END)")


def _numbers(inner: Texts, conditions: Texts, texts: Texts) -> Texts:
    return st.one_of(
        _written("({} + {})", inner, inner),
        _written("({} - {})", inner, inner),
        _written("({} / nullif({}, 0))", inner, inner),
        _written("(CASE WHEN {} THEN {} WHEN {} THEN {} ELSE {} END)", conditions, inner, conditions, inner, inner),
        _case(inner),
        _written("coalesce({}, {}, {})", inner, inner, inner),
        _written("char_length({})", texts),
        _written("twice({})", inner),
        _written("add({}, {})", inner, inner),
    )


def _conditions(inner: Texts, numbers: Texts, texts: Texts) -> Texts:
    return st.one_of(
        _written("({} AND {})", inner, inner),
        _written("({} OR {} OR {})", inner, inner, inner),
        _written("(NOT {})", inner),
        _written("({} < {})", numbers, numbers),
        _written("({} IS NULL)", numbers),
        _written("({} BETWEEN {} AND {})", numbers, numbers, numbers),
        _written("({} IN ({}, {}))", numbers, numbers, numbers),
        _written("is_big({})", numbers),
        _written("is_plane({})", texts),
    )


def _texts(inner: Texts, numbers: Texts, conditions: Texts) -> Texts:
    return st.one_of(
        _written("({} || {})", inner, inner),
        _written("upper({})", inner),
        _written("(CASE WHEN {} THEN {} ELSE {} END)", conditions, inner, inner),
        _written("coalesce({}, {})", inner, inner),
        _written("plane({})", inner),
        _written("known({})", numbers),
        _written("label({}, {})", inner, numbers),
    )


def _expressions(depth: int) -> tuple[Texts, Texts, Texts]:
    """Numbers, conditions and texts."""
    numbers = st.sampled_from(["id", "alt", "f.alt", "CAST(small AS BIGINT)", "3", "-7", "CAST(NULL AS BIGINT)"])
    conditions = st.sampled_from(["ok", "f.ok", "true", "alt > 30", "tail IS NULL"])
    texts = st.sampled_from(["tail", "f.tail", "'it''s'", "'N'"])
    for _ in range(depth):
        numbers, conditions, texts = (
            numbers | _numbers(numbers, conditions, texts),
            conditions | _conditions(conditions, numbers, texts),
            texts | _texts(texts, numbers, conditions),
        )
    return numbers, conditions, texts


@st.composite
def queries(draw: st.DrawFn) -> str:
    numbers, conditions, texts = _expressions(3)
    items = draw(st.lists(numbers | conditions | texts, min_size=1, max_size=3))
    where = draw(st.none() | st.lists(conditions, min_size=1, max_size=3).map(" AND ".join))
    told = ", ".join(f"{item} AS c{number}" for number, item in enumerate(items))
    return f"SELECT {told} FROM flights AS f" + (f" WHERE {where}" if where else "")


# The same queries each time, unless RANDOM_QUERIES=2000 asks for others: DataFusion, which is the reference, makes
# mistakes of its own, and a new one must not stop a change that has nothing to do with it.
@settings(
    max_examples=int(os.environ.get("RANDOM_QUERIES", "60")),
    derandomize="RANDOM_QUERIES" not in os.environ,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(queries())
def test_random_expressions(text: str) -> None:
    with load("functions.so") as plugin:
        wanted = reference(text, dict(plugin.functions))
    shutil.rmtree("rows", ignore_errors=True)
    assert list(run(text, ["functions.so"]).values()) == list(wanted.values())
