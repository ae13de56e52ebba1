"""Calls, and what is computed for them alone, are for rows that reach them. Each test counts the calls.

Random queries contain parts that would fail, or cost, for rows that do not reach them. Their values are those of plain
Python, row by row, and DataFusion's; and their calls are those that Python has made.
"""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext, udf
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.errors import InvalidArgument, RowError

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.once]

FUNCTIONS = """
from arroyo_udf_plugin import udf

def _called(name, n):
    with open("calls", "a") as file:
        file.write(f"{name} {n}\\n")

@udf
def f(n: int) -> int:
    _called("f", n)
    return n * 2 - 7

@udf
async def g(n: int) -> int:
    _called("g", n)
    return 9 - n

@udf
def p(n: int) -> bool:
    _called("p", n)
    return n % 3 == 0

@udf(volatility="volatile")
def ticket(n: int) -> int:
    _called("ticket", n)
    return n
"""
PLAIN: dict[str, Callable[[int], Any]] = {"f": lambda n: n * 2 - 7, "g": lambda n: 9 - n, "p": lambda n: n % 3 == 0}
ROWS = [
    {"a": a, "b": b, "c": c, "k": "xyz"[n % 3], "at": 600 * n}
    for n, (a, b, c) in enumerate(
        [
            *((0, 0, 0), (1, 0, 2), (2, 3, 0), (3, -1, 5), (None, 0, 1), (5, None, 0), (6, 2, None), (7, 0, -3)),
            *((8, 4, 4), (9, 0, 0), (10, -2, 0), (11, 1, 1), (None, None, None), (-13, 5, 0), (14, 0, 6), (15, 3, 2)),
        ]
    )
]
SCHEMA = pa.schema([*((name, pa.int64()) for name in "abc"), ("k", pa.string()), ("at", pa.timestamp("s"))])
TABLE = (
    "CREATE TABLE t (a BIGINT, b BIGINT, c BIGINT, k TEXT, at TIMESTAMP(0), WATERMARK FOR at AS at) WITH "
    "(connector = 'filesystem', path = 't.parquet', format = 'parquet', type = 'source'); "
    "CREATE TABLE out WITH (connector = 'filesystem', path = 'out', format = 'parquet', type = 'sink'); "
)
EMPTY = TABLE.replace("t.parquet", "empty.parquet")


@pytest.fixture(scope="session")
def plugin(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(FUNCTIONS, name="counted")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugin: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.Table.from_pylist(ROWS, SCHEMA), "t.parquet")
    pq.write_table(SCHEMA.empty_table(), "empty.parquet")
    (tmp_path / "counted.so").symlink_to(plugin)
    return tmp_path


def run(
    select: str, before: str = "", table: str = TABLE, **others: Any
) -> tuple[list[list[Any]], collections.Counter[str]]:
    """The rows, and how often each call was made."""
    for path in ("calls", *(f"out/{name}" for name in (os.listdir("out") if Path("out").exists() else ()))):
        Path(path).unlink(missing_ok=True)
    pipeline = Script("query.sql", f"{table}{before} INSERT INTO out {select}", ["counted.so"]).pipeline
    run_pipeline(pipeline.model_copy(update=others))
    found = pq.ParquetDataset("out").read().to_pylist() if os.path.exists("out") and os.listdir("out") else []
    calls = Path("calls").read_text().splitlines() if Path("calls").exists() else []
    return [list(row.values()) for row in found], collections.Counter(calls)


def values(select: str) -> list[Any]:
    return [row[0] for row in run(select)[0]]


# ---- Symptoms ----


def test_an_argument_that_fails_is_not_computed_for_rows_that_do_not_reach_the_call() -> None:
    found = values("SELECT CASE WHEN b <> 0 THEN f(a / b) END AS x FROM t WHERE a > 6")
    assert found == [None, f(2), None, f(-5), f(11), None, f(5)]


def f(n: int) -> int:
    return n * 2 - 7


@pytest.mark.parametrize(
    "select",
    [
        "SELECT CASE WHEN b <> 0 THEN f(a / b) END AS x FROM t",
        "SELECT CASE WHEN b = 0 THEN 1 ELSE f(a / b) END AS x FROM t",
        "SELECT CASE b WHEN 0 THEN 1 ELSE f(a / b) END AS x FROM t",
        "SELECT CASE WHEN k = 'x' THEN f(CAST(replace(k, 'x', '7') AS BIGINT)) END AS x FROM t",
        "SELECT a FROM t WHERE b = 0 OR p(a / b)",
        "SELECT a FROM t WHERE b <> 0 AND p(a / b)",
        "SELECT a FROM t WHERE NOT (b = 0 OR p(a / b))",
        "SELECT coalesce(CASE WHEN b = 0 THEN 1 END, f(a / b)) AS x FROM t",
        "SELECT b <> 0 AND c <> 0 AND p(a / b) AND p(a / c) AS x FROM t",
        "SELECT CASE WHEN b <> 0 THEN CASE WHEN a / b > 1 THEN f(g(a / b)) END END AS x FROM t",
        "SELECT CASE WHEN b <> 0 THEN f(a / b) + a / b ELSE g(a) END AS x FROM t",
        "SELECT CASE WHEN b <> 0 AND p(a / b) THEN f(a) WHEN c <> 0 AND p(a / c) THEN g(a) END AS x FROM t",
    ],
)
def test_a_guarded_part_does_not_end_the_job(select: str) -> None:
    assert run(select)[0]


def test_no_row_vanishes_where_sql_has_null() -> None:
    before = "SET on_error = 'drop';"
    found, _ = run("SELECT CASE WHEN b <> 0 THEN f(a / b) END AS x FROM t", before)
    assert len(found) == len(ROWS)


def test_a_volatile_guard_is_evaluated_once() -> None:
    found, calls = run("SELECT CASE WHEN random() < 0.5 THEN f(c) ELSE f(c + 1) END AS x, c FROM t WHERE c IS NOT NULL")
    assert all(x in (f(c), f(c + 1)) for x, c in found)
    assert sum(calls.values()) == len(found)


def test_each_call_behind_a_volatile_condition_is_shown() -> None:
    """A sample of calls in OR: whatever is called decides."""
    many = "CREATE TABLE many (counter BIGINT UNSIGNED) WITH (connector = 'impulse', message_count = '300');"
    found, calls = run("SELECT CAST(counter AS BIGINT) AS n FROM many WHERE random() < 0.5 OR p(counter)", many)
    shown = {row[0] for row in found}
    called = {int(call.split()[1]) for call in calls}
    assert {n for n in called if n % 3 == 0} <= shown
    assert set(range(300)) - called <= shown
    assert not {n for n in called if n % 3} & shown


def test_a_volatile_argument_makes_two_calls() -> None:
    _, calls = run("SELECT f(CAST(random() * 0 AS BIGINT) + a) AS x, f(CAST(random() * 0 AS BIGINT) + a) AS y FROM t")
    assert sum(calls.values()) == 2 * sum(row["a"] is not None for row in ROWS)


def test_a_volatile_operand_is_computed_once() -> None:
    found, _ = run(
        "SELECT CASE CAST(random() * 2 AS BIGINT) WHEN 0 THEN f(0) WHEN 1 THEN f(1) ELSE f(2) END AS x FROM t"
    )
    assert {row[0] for row in found} <= {f(0), f(1), f(2)}


@pytest.mark.parametrize(
    ("select", "count"),
    [
        ("SELECT CASE WHEN a > 5 THEN f(a) END AS x, f(a) AS y FROM t", 14),
        ("SELECT CASE WHEN a > 5 THEN f(a) END AS x, CASE WHEN a > 8 THEN f(a) END AS y FROM t", 8),
        ("SELECT CASE WHEN a > 9 THEN f(a) END AS x, CASE WHEN a > 5 THEN f(a) END AS y FROM t", 8),
        ("SELECT CASE WHEN f(a) > 5 THEN f(a) ELSE f(a) + 1 END AS x FROM t", 14),
        ("SELECT f(a) AS x, f(t.a) AS y FROM t WHERE f(a) > 100", 14),
        ("SELECT CASE WHEN a < 3 THEN f(a) WHEN a < 8 THEN f(a) END AS x FROM t", 8),
    ],
)
def test_a_call_is_made_once_for_each_row_that_reaches_it_anywhere(select: str, count: int) -> None:
    _, calls = run(select)
    assert sum(calls.values()) == count


def test_a_volatile_function_is_called_wherever_it_stands() -> None:
    _, calls = run("SELECT ticket(a) AS x, ticket(a) AS y FROM t")
    assert sum(calls.values()) == 28


def test_conditions_without_calls_come_first_unless_they_may_fail() -> None:
    _, calls = run("SELECT a FROM t WHERE p(a) AND a % 2 = 0")
    assert all(int(call.split()[1]) % 2 == 0 for call in calls)
    found, _ = run("SELECT a FROM t WHERE g(b) <> 9 AND a / b > 1")
    assert [row[0] for row in found] == [6, 8, 11, 15]


def test_a_case_with_many_calls_is_no_long_text() -> None:
    """Each branch is decided by one number, not by all conditions before it."""

    def length(branches: int) -> int:
        whens = " ".join(f"WHEN a = {n} THEN f(b + {n})" for n in range(branches))
        text = f"{TABLE} INSERT INTO out SELECT CASE {whens} END AS x FROM t"
        pipeline = Script("query.sql", text, ["counted.so"]).pipeline
        return sum(len(str(operator)) for operator in pipeline.operators)

    assert length(120) < 2.2 * length(60)


# ---- Aggregates ----


def test_a_filter_comes_before_calls() -> None:
    select = "SELECT tumble(interval '1 day') AS w, sum(f(a)) FILTER (WHERE k = 'x') AS s FROM t GROUP BY w"
    found, calls = run(select)
    wanted = [row["a"] for row in ROWS if row["k"] == "x" and row["a"] is not None]
    assert found[0][1] == sum(map(f, wanted))
    assert calls == collections.Counter(f"f {a}" for a in wanted)


def test_an_aggregate_does_not_fail_for_rows_that_its_filter_leaves_out() -> None:
    found, _ = run(
        "SELECT tumble(interval '1 day') AS w, sum(a / b) FILTER (WHERE b <> 0) AS s, "
        "count(a) FILTER (WHERE random() < 0.5) AS n FROM t GROUP BY w"
    )
    assert found[0][1] == sum(int(row["a"] / row["b"]) for row in ROWS if row["a"] is not None and row["b"])


def test_a_volatile_filter_decides_once() -> None:
    found, calls = run(
        "SELECT tumble(interval '1 day') AS w, count(f(c)) FILTER (WHERE c IS NOT NULL AND random() < 0.5) AS n "
        "FROM t GROUP BY w"
    )
    assert found[0][1] == sum(calls.values())


# ---- Random queries ----


@dataclass
class Row:
    """values: of the columns. made: the results of calls, by their texts: a call is made once."""

    values: dict[str, Any]
    made: dict[str, Any] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def call(self, text: str, name: str, n: Any) -> Any:
        if text not in self.made:
            self.made[text] = None if n is None else PLAIN[name](n)
            self.calls += [] if n is None else [f"{name} {n}"]
        return self.made[text]


Evaluate = Callable[[Row], Any]


@dataclass(frozen=True)
class Part:
    """An expression, and the same in Python. fails, calls: whether there is a division, or a call, in it. operands: of
    AND, if it is one."""

    text: str
    value: Evaluate
    fails: bool = False
    calls: bool = False
    operands: tuple[Part, ...] = ()

    @property
    def conjuncts(self) -> list[Part]:
        """As conditions of WHERE: null is as good as false."""
        return [one for part in self.operands for one in part.conjuncts] or [self]


def _of(text: str, value: Evaluate, *parts: Part) -> Part:
    return Part(text, value, any(part.fails for part in parts), any(part.calls for part in parts))


def _column(name: str) -> Part:
    return Part(name, lambda row: row.values[name])


def _constant(n: int) -> Part:
    return Part(str(n), lambda row: n)


def _strict(left: Part, sign: str, right: Part, compute: Callable[[Any, Any], Any]) -> Part:
    def value(row: Row) -> Any:
        one, other = left.value(row), right.value(row)
        return None if one is None or other is None else compute(one, other)

    found = _of(f"({left.text} {sign} {right.text})", value, left, right)
    return Part(found.text, value, True, found.calls) if sign == "/" else found


def _quotient(n: int, d: int) -> int:
    return abs(n) // abs(d) * (1 if (n < 0) == (d < 0) else -1)


def _called(name: str, argument: Part) -> Part:
    text = f"{name}({argument.text})"
    return Part(text, lambda row: row.call(text, name, argument.value(row)), argument.fails, True)


def _case(condition: Part, then: Part, otherwise: Part) -> Part:
    def value(row: Row) -> Any:
        return (then if condition.value(row) else otherwise).value(row)

    text = f"CASE WHEN {condition.text} THEN {then.text} ELSE {otherwise.text} END"
    return _of(text, value, condition, then, otherwise)


def _case_of(operand: Part, first: Part, then: Part, second: Part, other: Part) -> Part:
    def value(row: Row) -> Any:
        found = operand.value(row)
        for when, result in ((first, then), (second, other)):
            if (wanted := when.value(row)) is not None and found == wanted:
                return result.value(row)
        return None

    text = f"CASE {operand.text} WHEN {first.text} THEN {then.text} WHEN {second.text} THEN {other.text} END"
    return _of(text, value, operand, first, then, second, other)


def _coalesce(left: Part, right: Part) -> Part:
    def value(row: Row) -> Any:
        found = left.value(row)
        return right.value(row) if found is None else found

    return _of(f"coalesce({left.text}, {right.text})", value, left, right)


def _logic(left: Part, word: str, right: Part) -> Part:
    def value(row: Row) -> Any:
        decides = word == "OR"
        found = left.value(row)
        if found is decides:
            return found
        other = right.value(row)
        if other is decides:
            return other
        return None if found is None or other is None else not decides

    found = _of(f"({left.text} {word} {right.text})", value, left, right)
    return dataclasses.replace(found, operands=(left, right) if word == "AND" else ())


def _not(inner: Part) -> Part:
    def value(row: Row) -> Any:
        found = inner.value(row)
        return None if found is None else not found

    return _of(f"(NOT {inner.text})", value, inner)


def _is_null(inner: Part) -> Part:
    return _of(f"({inner.text} IS NULL)", lambda row: inner.value(row) is None, inner)


_ZERO = {name: _strict(_column(name), "=", _constant(0), lambda one, other: one == other) for name in "bc"}
_NO_ZERO = {name: _strict(_column(name), "<>", _constant(0), lambda one, other: one != other) for name in "bc"}


@st.composite
def numbers(draw: st.DrawFn, depth: int, divisors: frozenset[str] = frozenset()) -> Part:
    """divisors: columns that are not 0 here."""
    kinds = ["column", "constant"] + (["divide"] * 3 if divisors else [])
    if depth:
        kinds += ["add", "case", "guard", "guard", "operand", "coalesce", "call", "call"]
    kind = draw(st.sampled_from(kinds))
    if kind == "column":
        return _column(draw(st.sampled_from("abc")))
    if kind == "constant":
        return _constant(draw(st.sampled_from([0, 3, 12])))
    if kind == "divide":
        name = draw(st.sampled_from(sorted(divisors)))
        return _strict(draw(numbers(max(depth - 1, 0), divisors)), "/", _column(name), _quotient)
    inner = numbers(depth - 1, divisors)
    if kind == "add":
        return _strict(draw(inner), "+", draw(inner), lambda one, other: one + other)
    if kind == "case":
        return _case(draw(conditions(depth - 1, divisors)), draw(inner), draw(inner))
    if kind == "guard":
        name = draw(st.sampled_from("bc"))
        within = numbers(depth - 1, divisors | {name})
        if draw(st.booleans()):
            return _case(_NO_ZERO[name], draw(within), draw(inner))
        return _case(_ZERO[name], draw(inner), draw(within))
    if kind == "operand":
        return _case_of(*(draw(inner) for _ in range(5)))
    if kind == "coalesce":
        return _coalesce(draw(inner), draw(inner))
    return _called(draw(st.sampled_from("fg")), draw(inner))


@st.composite
def conditions(draw: st.DrawFn, depth: int, divisors: frozenset[str] = frozenset()) -> Part:
    kinds = ["compare", "null"]
    if depth:
        kinds += ["and", "or", "not", "guard and", "guard or", "call", "call"]
    kind = draw(st.sampled_from(kinds))
    number = numbers(max(depth - 1, 0), divisors)
    if kind == "compare":
        return _strict(draw(number), ">", draw(number), lambda one, other: one > other)
    if kind == "null":
        return _is_null(draw(number))
    if kind == "call":
        return _called("p", draw(number))
    inner = conditions(depth - 1, divisors)
    if kind == "not":
        return _not(draw(inner))
    if kind in ("and", "or"):
        return _logic(draw(inner), kind.upper(), draw(inner))
    name = draw(st.sampled_from("bc"))
    within = conditions(depth - 1, divisors | {name})
    if kind == "guard and":
        return _logic(_NO_ZERO[name], "AND", draw(within))
    return _logic(_ZERO[name], "OR", draw(within))


@dataclass(frozen=True)
class Select:
    items: list[Part]
    where: list[Part]

    @property
    def text(self) -> str:
        items = ", ".join(f"{item.text} AS x{n}" for n, item in enumerate(self.items))
        where = " AND ".join(part.text for part in self.where)
        return f"SELECT {items} FROM t" + (f" WHERE {where}" if where else "")

    @property
    def ordered(self) -> list[Part]:
        """The conditions as they are checked: those without calls that cannot fail come first."""
        first = next((place for place, part in enumerate(self.where) if part.calls), len(self.where))
        early = [part for n, part in enumerate(self.where) if n < first or not (part.calls or part.fails)]
        return early + [part for n, part in enumerate(self.where) if n >= first and (part.calls or part.fails)]

    def row(self, row: Row) -> list[Any] | None:
        if not all(part.value(row) for part in self.ordered):
            return None
        return [item.value(row) for item in self.items]


@st.composite
def selects(draw: st.DrawFn) -> Select:
    items = draw(st.lists(numbers(3) | conditions(3), min_size=1, max_size=3))
    where = draw(st.lists(conditions(2), max_size=3))
    return Select(items, [part for one in where for part in one.conjuncts])


def of_datafusion(text: str) -> list[list[Any]]:
    """Row by row: it computes both operands of AND and OR if rows differ. Of `a OR (b OR (a OR c))` it makes
    `b OR a OR c`, so that b may fail: such queries are no examples."""
    found = []
    for row in ROWS:
        context = SessionContext()
        for name, function in PLAIN.items():
            returns = pa.bool_() if name == "p" else pa.int64()

            def call(column: pa.Array, function: Any = function, returns: Any = returns) -> pa.Array:
                return pa.array([None if n is None else function(n) for n in column.to_pylist()], returns)

            context.register_udf(udf(call, [pa.int64()], returns, "volatile", name=name))
        context.register_record_batches("t", [[pa.RecordBatch.from_pylist([row], SCHEMA)]])
        try:
            found += [list(one.values()) for one in context.sql(text).to_arrow_table().to_pylist()]
        except Exception as error:
            if "Divide by zero" not in str(error):
                raise
            reject()
    return found


_MANY = settings(
    max_examples=int(os.environ.get("GUARDED_QUERIES", "40")),
    derandomize="GUARDED_QUERIES" not in os.environ,  # as in test_random.py
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@_MANY
@given(selects())
def test_random_guards(select: Select) -> None:
    rows = [Row(row) for row in ROWS]
    wanted = [found for row in rows if (found := select.row(row)) is not None]
    assert of_datafusion(select.text) == wanted
    found, calls = run(select.text)
    assert found == wanted
    assert calls == collections.Counter(call for row in rows for call in row.calls)


@_MANY
@given(selects())
def test_random_guards_over_all_rows(select: Select) -> None:
    """DataFusion has both operands of AND and OR for a batch of rows, so some of what fails fails without calls, too.
    It leaves out calls whose results do not matter. When it plans, it computes what conditions of CASE are for a row of
    nulls: those calls it makes without any rows, too."""
    rows = [Row(row) for row in ROWS]
    wanted = [found for row in rows if (found := select.row(row)) is not None]
    try:
        found, calls = run(f"{select.text} LIMIT 99")
    except InvalidArgument as error:
        if "Divide by zero" not in str(error):
            raise
        reject()
    assert found == wanted
    others = set(calls) - {call for row in rows for call in row.calls}
    assert not others or others <= set(run(f"{select.text} LIMIT 99", table=EMPTY)[1])


def test_a_call_of_constants_over_all_rows_is_made_if_a_row_reaches_it() -> None:
    """Once, if the function is not volatile."""
    assert run("SELECT f(3) AS x, ticket(4) AS y FROM t WHERE a > 6 LIMIT 99") == (
        [[-1, 4]] * 7,
        collections.Counter({"f 3": 1, "ticket 4": 7}),
    )
    assert run("SELECT f(3) AS x, ticket(4) AS y FROM t WHERE a > 99 LIMIT 99") == ([], collections.Counter())
    assert set(run("SELECT f(ticket(4)) AS x FROM t WHERE a > 6 LIMIT 99")[1]) == {"ticket 4", "f 4"}
    drawn, _ = run("SELECT f(CAST(random() * 1000000000 AS BIGINT)) AS x FROM t WHERE a > 6 LIMIT 99")
    assert len({row[0] for row in drawn}) == 7
    found, calls = run("SELECT CASE WHEN b = 0 THEN ticket(b + 1) WHEN a > 8 THEN ticket(5) END AS x FROM t LIMIT 99")
    assert calls == collections.Counter({"ticket 1": 6, "ticket 5": [row[0] for row in found].count(5)})


def test_a_row_that_reaches_a_failing_part_fails() -> None:
    with pytest.raises(RowError, match=r"(?i)divide by zero"):
        run("SELECT CASE WHEN b = 0 THEN f(a / b) END AS x FROM t")
