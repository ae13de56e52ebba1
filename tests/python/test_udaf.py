"""Aggregates and table functions of Python sources: `@udaf`, `@udtf` (F8, F9)."""

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_udf_plugin import (
    BuildError,
    InvalidArgument,
    Plugin,
    RowError,
    UnsupportedCall,
    UserCodeError,
    load,
    udaf,
    udtf,
)

BuildPlugin = Callable[..., Path]

LISTS = """
import datetime
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from arroyo_udf_plugin import udaf, udf, udtf


@udf(native=False)
def twice(a: int) -> int:
    return 2 * a


@udaf(volatility="immutable")
@dataclass
class total:
    \"\"\"The sum of all values.\"\"\"

    sum: int = 0
    count: int = 0

    def update(self, values: list[int]) -> None:
        self.sum += sum(values)
        self.count += len(values)

    def merge(self, other: "total") -> None:
        self.sum += other.sum
        self.count += other.count

    def finish(self) -> int | None:
        return self.sum if self.count else None


@dataclass
class Day:
    day: datetime.date
    texts: list[str]


@udaf
@dataclass
class diary:
    days: list[Day] = field(default_factory=list)

    def update(self, day: list[datetime.date], text: list[str | None]) -> None:
        for when, what in zip(day, text, strict=True):
            if what == "fire":
                raise ValueError(f"burnt on {when}")
            self.days.append(Day(when, ["nothing" if what is None else what]))

    def merge(self, other: "diary") -> None:
        if other.days == self.days:
            raise ValueError("the same twice")
        self.days += other.days

    def finish(self) -> list[str]:
        if len(self.days) == 3:
            raise ValueError("three is too many")
        return [f"{day.day}: {', '.join(day.texts)}" for day in self.days]


class Word(NamedTuple):
    word: str
    place: int | None


@udtf(volatility="stable")
def words(text: str, most: int | None) -> Iterator[Word]:
    for place, word in enumerate(text.split()):
        if word == "stop":
            raise ValueError("stopped")
        yield Word(word, place if most is None or place < most else None)


@udtf
def letters(text: str) -> list[str]:
    return list(text)
"""
ARRAYS = """
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_udf_plugin import udaf


@udaf
@dataclass
class weighted:
    total: float = 0.0
    rows: int = 0
    names: int = 0

    def update(self, values: pa.DoubleArray, weights: pa.DoubleArray, name: list[str]) -> None:
        self.total += pc.sum(pc.multiply(values, weights)).as_py() or 0.0
        self.rows += len(values)
        self.names += len(set(name))

    def merge(self, other: "weighted") -> None:
        self.total += other.total
        self.rows += other.rows

    def finish(self) -> str:
        return f"{self.total} of {self.rows}, {self.names}"
"""
MODES = ["thread", "process"]


@pytest.fixture(scope="module")
def file(build_plugin: BuildPlugin) -> Path:
    return build_plugin(LISTS, name="lists")


@pytest.fixture(scope="module")
def plugin(file: Path) -> Plugin:
    return load(file)


def aggregate(plugin: Plugin, name: str) -> Any:
    return plugin.functions[name]


def test_what_a_host_sees(plugin: Plugin) -> None:
    assert [(f.name, f.kind) for f in plugin.functions.values()] == [
        ("twice", "sync"),
        ("words", "table"),
        ("letters", "table"),
        ("total", "aggregate"),
        ("diary", "aggregate"),
    ]
    total, words = plugin.functions["total"], plugin.functions["words"]
    assert (total.documentation, total.volatility, words.volatility) == (
        "The sum of all values.",
        "immutable",
        "stable",
    )
    assert plugin.functions["diary"].documentation == ""
    assert total.arguments == pa.schema([pa.field("values", pa.int64(), False)])
    assert (total.returns, total.returns_nullable) == (pa.int64(), True)
    assert aggregate(plugin, "total").state == pa.struct(
        [pa.field("sum", pa.int64(), False), pa.field("count", pa.int64(), False)]
    )
    row = pa.struct([pa.field("word", pa.utf8(), False), pa.field("place", pa.int64())])
    assert words.returns == pa.list_(pa.field("item", row, False))
    assert plugin.functions["letters"].returns.value_type.field(0) == pa.field("letters", pa.utf8(), False)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="has no subinterpreters")
def test_a_subinterpreter_has_no_structs_and_says_so(file: Path) -> None:
    with load(file, isolation="subinterpreter") as plugin:
        assert plugin.functions["twice"]([1]).to_pylist() == [2]
        with pytest.raises(
            UnsupportedCall, match=r"lists\.total\.update: .* is a struct.* choose isolation=\"process\""
        ):
            plugin.functions["total"]([1])


@pytest.mark.parametrize("mode", MODES)
def test_the_steps_in_every_mode(file: Path, mode: Any) -> None:
    with load(file, isolation=mode) as plugin:
        total = aggregate(plugin, "total")
        states = total.update(None, pa.array([[1, 2], [], [None, 3]]))
        assert states.to_pylist() == [{"sum": 3, "count": 2}, {"sum": 0, "count": 0}, {"sum": 3, "count": 1}]
        states = total.update(states, pa.array([[4], [5], []], pa.list_(pa.int64())))
        merged = total.merge(states, states.take(pa.array([2, 1, 0])))
        assert merged.to_pylist() == [{"sum": 10, "count": 4}, {"sum": 10, "count": 2}, {"sum": 10, "count": 4}]
        assert total.finish(pa.concat_arrays([merged, pa.nulls(1, total.state)])).to_pylist() == [10, 10, 10, None]
        assert plugin.functions["words"](["b a", "", None], [1, 1, 1]).to_pylist() == [
            [{"word": "b", "place": 0}, {"word": "a", "place": None}],
            [],
            None,
        ]
        assert plugin.functions["letters"](["hi"]).to_pylist() == [[{"letters": "h"}, {"letters": "i"}]]


def test_a_call_takes_all_rows_as_one_group(plugin: Plugin) -> None:
    total = plugin.functions["total"]
    assert total([1, None, 2]) == pa.scalar(3)
    assert total(pa.chunked_array([[1], [], [4]], pa.int64())) == pa.scalar(5)
    for empty in (pa.array([], pa.int64()), pa.chunked_array([], pa.int64())):
        assert total(empty) == pa.scalar(None, pa.int64())


@given(groups=st.lists(st.lists(st.none() | st.integers(-(2**40), 2**40))), split=st.integers(0, 5))
def test_any_split_of_groups_gives_the_same(plugin: Plugin, groups: list[list[int | None]], split: int) -> None:
    total = aggregate(plugin, "total")
    lists = pa.list_(pa.int64())
    first = total.update(None, pa.array([rows[:split] for rows in groups], lists))
    rest = total.update(None, pa.array([rows[split:] for rows in groups], lists))
    values = [[value for value in rows if value is not None] for rows in groups]
    assert total.finish(total.merge(first, rest)).to_pylist() == [sum(rows) if rows else None for rows in values]


def test_states_of_structs_and_lists_cross_whole(plugin: Plugin) -> None:
    diary = aggregate(plugin, "diary")
    day = pa.array(["2024-02-29", None, "2024-03-01"], pa.utf8()).cast(pa.date32())
    assert diary(day, ["leap", "left out", None]).as_py() == ["2024-02-29: leap", "2024-03-01: nothing"]
    state = diary.update(None, pa.array([day[:1]], pa.list_(pa.date32())), pa.array([["leap"]]))
    sliced = pa.concat_arrays([state, pa.nulls(1, diary.state)]).slice(0, 1)
    other = diary.update(None, pa.array([day[2:]], pa.list_(pa.date32())), pa.array([["spring"]]))
    assert diary.finish(diary.merge(sliced, other)).to_pylist() == [["2024-02-29: leap", "2024-03-01: spring"]]


def test_errors_are_those_of_groups(plugin: Plugin) -> None:
    """The text names the step; other groups go on in `errors`."""
    diary = aggregate(plugin, "diary")
    days = pa.array([[1], [2], [3, 4, 5]], pa.list_(pa.date32()))
    with pytest.raises(RowError, match=r"lists\.diary\.update, row 1: ValueError: burnt on 1970-01-03") as caught:
        diary.update(None, days, pa.array([["fine"], ["fire"], ["a", "b", "c"]]))
    assert list(caught.value.errors) == [1]
    states = diary.update(None, days, pa.array([["fine"], ["well"], ["a", "b", "c"]]))
    with pytest.raises(RowError, match=r"lists\.diary\.merge, row 0: ValueError: the same twice"):
        diary.merge(states, states)
    with pytest.raises(RowError, match=r"lists\.diary\.finish, row 2: ValueError: three is too many"):
        diary.finish(states)
    with pytest.raises(RowError, match=r"lists\.words, row 1: ValueError: stopped"):
        plugin.functions["words"](["go", "please stop"], [9, 9])


def test_what_an_aggregate_refuses(plugin: Plugin) -> None:
    total = plugin.functions["total"]
    for call in (lambda: total.outcomes([1]), total.start):
        with pytest.raises(UnsupportedCall, match=r"lists\.total: is an aggregate, which has no value for each row"):
            call()
    with pytest.raises(InvalidArgument, match=r"lists\.total: takes 1 arguments"):
        total([1], [2])
    with pytest.raises(InvalidArgument, match="is a NoneType"):
        aggregate(plugin, "total").merge(pa.nulls(1, aggregate(plugin, "total").state), None)


def test_arrays_have_nulls_and_lists_do_not(build_plugin: BuildPlugin) -> None:
    weighted = aggregate(load(build_plugin(ARRAYS)), "weighted")
    assert weighted([1.0, 2.0, None], [2.0, 3.0, 4.0], ["a", "b", "a"]).as_py() == "8.0 of 3, 2"
    assert weighted([1.0, 2.0, 4.0], [2.0, 3.0, 4.0], ["a", None, "a"]).as_py() == "18.0 of 2, 1"
    lists = pa.array([[1.0], [5.0, 7.0]]).slice(1)
    state = weighted.update(None, lists, lists, pa.array([["x", "y"]]))
    assert weighted.finish(state).to_pylist() == ["74.0 of 2, 2"]


def test_for_python_both_stay_what_they_are() -> None:
    from dataclasses import dataclass

    @udaf
    @dataclass
    class mean:
        total: float = 0.0
        count: int = 0

        def update(self, values: list[float]) -> None:
            self.total, self.count = self.total + math.fsum(values), self.count + len(values)

        def merge(self, other: "mean") -> None:
            self.total, self.count = self.total + other.total, self.count + other.count

        def finish(self) -> float:
            return self.total / self.count

    group = mean()
    group.update([1.0, 3.0])
    group.merge(mean(5.0, 1))
    assert group.finish() == 3.0

    @udtf
    def countdown(a: int) -> list[int]:
        return list(range(a, 0, -1))

    assert countdown(3) == [3, 2, 1]


HEAD = "from dataclasses import dataclass, field\nfrom arroyo_udf_plugin import udaf, udtf\n"
CLASS = """
@udaf
@dataclass
class agg:
    n: int = 0
    def update(self, a: list[int]) -> None: ...
    def merge(self, other: "agg") -> None: ...
    def finish(self) -> int: return self.n
"""
MISTAKES = {
    "no dataclass": (CLASS.replace("@dataclass\n", ""), "is no dataclass, and its fields are the state"),
    "no step": (CLASS.replace("merge", "join"), "has no method 'merge'; an aggregate has update, merge, finish"),
    "async": (CLASS.replace("def update", "async def update"), "has a 'update' that is async or a generator"),
    "no default": (CLASS.replace("n: int = 0", "n: int"), "has the field 'n' without a default"),
    "init=False": (
        CLASS.replace("n: int = 0", "n: int = field(init=False, default=0)"),
        "has the field 'n' with init=False, which would be lost",
    ),
    "volatility": (CLASS.replace("@udaf", "@udaf(volatility='often')"), "has volatility='often'; write one of"),
    "no field": (CLASS.replace("n: int = 0", "pass").replace("self.n", "1"), "has no fields, and they are its state"),
    "bad field": (CLASS.replace("n: int", "n: object"), "has a field that does not work: `object` has no Arrow type"),
    "no argument": (CLASS.replace(", a: list[int]", ""), "has an 'update' without arguments"),
    "no annotation": (CLASS.replace("a: list[int]", "a"), "does not say the type of 'a'; annotate it"),
    "no list": (
        CLASS.replace("list[int]", "int"),
        "has an annotation in 'update' that does not work: `int` is not a list",
    ),
    "unknown name": (CLASS.replace("list[int]", "'list[Int]'"), "has an annotation of 'update' that cannot be read"),
    "state": (CLASS.replace("a: list", "state: list"), "has an argument 'state', which is the name"),
    "no result": (
        CLASS.replace(" -> int: return", ": return"),
        "does not say the type of its result; annotate `finish`",
    ),
    "bad result": (CLASS.replace("-> int", "-> object"), "has an annotation in 'finish' that does not work"),
    "bad merge": (CLASS.replace(', other: "agg"', ""), "has a 'merge' with other arguments than self, other"),
    "two names": (CLASS + CLASS, "is not what its name means in the end"),
    "a function's name": (
        CLASS + "\n@udtf\ndef f(a: int) -> list[int]: return []\nf.__name__ = 'agg'\n",
        "has the name of",
    ),
    "no rows": (
        "@udtf\ndef f(a: int) -> int: return a\n",
        "gives rows, so its result is `list[Row]` or `Iterator[Row]`",
    ),
    "async rows": ("@udtf\nasync def f(a: int) -> list[int]: return []\n", "is async, blocking or vectorized"),
    "bad rows": (
        "@udtf\ndef f(a: int) -> list[object]: return []\n",
        "has an annotation of its rows that does not work",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_with_their_line(build_plugin: BuildPlugin, mistake: str) -> None:
    source, text = MISTAKES[mistake]
    with pytest.raises(BuildError) as caught:
        build_plugin(HEAD + source)
    assert text in str(caught.value)
    assert caught.value.line is not None


def test_a_module_that_defines_something_else_later_is_refused(build_plugin: BuildPlugin) -> None:
    differs = CLASS.replace("a: list[int]", "a: list[int], b: list[int]")
    source = f"{HEAD}import os\nif 'LATER' in os.environ:{differs.replace(chr(10), chr(10) + '    ')}\nelse:"
    path = build_plugin(source + CLASS.replace("\n", "\n    "))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LATER", "1")
        with pytest.raises(
            (UserCodeError, Exception), match="function 'agg' is another than when the plugin was built"
        ):
            load(path).functions["agg"]([1])
