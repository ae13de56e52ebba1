"""Aggregates and table functions of Rust sources: `#[udaf]`, `#[udtf]` (F8, F9)."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_udf_plugin import BuildError, Plugin, RowError, load

BuildPlugin = Callable[..., Path]

SOURCE = """
use arroyo_udf_plugin::{udaf, udf, udtf, State};

#[udf]
fn twice(a: i64) -> i64 {
    2 * a
}

#[derive(Default, State)]
struct Total {
    sum: i64,
    count: u32,
}

/// The sum of all values.
#[udaf(volatility = "immutable")]
impl Total {
    fn update(&mut self, value: i64) {
        self.sum += value;
        self.count += 1;
    }

    fn merge(&mut self, other: Self) {
        self.sum += other.sum;
        self.count += other.count;
    }

    fn finish(self) -> Option<i64> {
        (self.count > 0).then_some(self.sum)
    }
}

#[derive(Default, State)]
struct Entry(i32, Option<String>);

#[derive(Default, State)]
struct Diary {
    entries: Vec<Entry>,
    checks: [u8; 2],
}

#[udaf(name = "diary")]
impl Diary {
    fn update(&mut self, day: i32, text: Option<&str>) -> Result<(), String> {
        match text {
            Some("fire") => return Err(format!("burnt on {day}")),
            Some("panic") => panic!("on {day}"),
            _ => self.entries.push(Entry(day, text.map(str::to_string))),
        }
        self.checks[1] += 1;
        Ok(())
    }

    fn merge(&mut self, other: &Self) -> Result<(), std::fmt::Error> {
        if other.entries.len() == self.entries.len() {
            return Err(std::fmt::Error);
        }
        self.entries.extend(other.entries.iter().map(|entry| Entry(entry.0, entry.1.clone())));
        self.checks[1] += other.checks[1];
        Ok(())
    }

    fn finish(&self) -> Result<String, String> {
        if self.entries.len() == 3 {
            return Err("three is too many".to_string());
        }
        let text = |entry: &Entry| format!("{}: {}", entry.0, entry.1.as_deref().unwrap_or("nothing"));
        let lines = self.entries.iter().map(text);
        Ok(format!("{}; {}", lines.collect::<Vec<_>>().join(", "), self.checks[1]))
    }
}

#[udtf(columns(word, place), volatility = "stable")]
fn words(text: &str, most: Option<i64>) -> Result<Vec<(String, Option<i64>)>, String> {
    let mut found = Vec::new();
    for (word, place) in text.split_whitespace().zip(0..) {
        match word {
            "stop" => return Err("stopped".to_string()),
            "panic" => panic!("at {place}"),
            _ => found.push((word.to_string(), Some(place).filter(|place| most.is_none_or(|most| *place < most)))),
        }
    }
    Ok(found)
}

#[udtf]
fn letters(text: &str) -> Vec<String> {
    text.chars().map(String::from).collect()
}
"""


@pytest.fixture(scope="module")
def file(build_plugin: BuildPlugin) -> Path:
    return build_plugin(SOURCE, ".rs", "lists_rust")


@pytest.fixture(scope="module")
def plugin(file: Path) -> Plugin:
    return load(file)


def aggregate(plugin: Plugin, name: str) -> Any:
    return plugin.functions[name]


def test_what_a_host_sees(plugin: Plugin) -> None:
    assert [(f.name, f.kind) for f in plugin.functions.values()] == [
        ("twice", "sync"),
        ("total", "aggregate"),
        ("diary", "aggregate"),
        ("words", "table"),
        ("letters", "table"),
    ]
    total, words = plugin.functions["total"], plugin.functions["words"]
    assert (total.documentation, total.volatility, words.volatility) == (
        "The sum of all values.",
        "immutable",
        "stable",
    )
    assert total.arguments == pa.schema([pa.field("value", pa.int64(), False)])
    assert (total.returns, total.returns_nullable) == (pa.int64(), True)
    assert aggregate(plugin, "total").state == pa.binary()
    assert plugin.functions["diary"].arguments == pa.schema([pa.field("day", pa.int32(), False), ("text", pa.utf8())])
    row = pa.struct([pa.field("word", pa.utf8(), False), pa.field("place", pa.int64())])
    assert words.returns == pa.list_(pa.field("item", row, False))
    assert plugin.functions["letters"].returns.value_type.field(0) == pa.field("letters", pa.utf8(), False)


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_the_steps_in_every_mode(file: Path, mode: Any) -> None:
    with load(file, isolation=mode) as plugin:
        total = aggregate(plugin, "total")
        states = total.update(None, pa.array([[1, 2], [], [None, 3]]))
        states = total.update(states, pa.array([[4], [5], []], pa.list_(pa.int64())))
        merged = total.merge(states, states.take(pa.array([2, 1, 0])))
        assert total.finish(pa.concat_arrays([merged, pa.nulls(1, total.state)])).to_pylist() == [10, 10, 10, None]
        assert plugin.functions["words"](["b a", "", None], [1, 1, 1]).to_pylist() == [
            [{"word": "b", "place": 0}, {"word": "a", "place": None}],
            [],
            None,
        ]
        assert plugin.functions["letters"](["hé"]).to_pylist() == [[{"letters": "h"}, {"letters": "é"}]]


@given(groups=st.lists(st.lists(st.none() | st.integers(-(2**40), 2**40))), split=st.integers(0, 5))
def test_any_split_of_groups_gives_the_same(plugin: Plugin, groups: list[list[int | None]], split: int) -> None:
    total = aggregate(plugin, "total")
    lists = pa.list_(pa.int64())
    first = total.update(None, pa.array([rows[:split] for rows in groups], lists))
    rest = total.update(None, pa.array([rows[split:] for rows in groups], lists))
    values = [[value for value in rows if value is not None] for rows in groups]
    assert total.finish(total.merge(first, rest)).to_pylist() == [sum(rows) if rows else None for rows in values]


def test_nested_states_and_nulls(plugin: Plugin) -> None:
    diary = aggregate(plugin, "diary")
    assert diary([1, None, 3], ["one", "left out", None]).as_py() == "1: one, 3: nothing; 2"
    lists = pa.list_(pa.int32()), pa.list_(pa.utf8())
    one = diary.update(None, pa.array([[9], [1]], lists[0]).slice(1), pa.array([["x"], ["a"]], lists[1]).slice(1))
    two = diary.update(None, pa.array([[2, 3, 4]], lists[0]), pa.array([["b", None, "d"]], lists[1]))
    assert diary.finish(diary.merge(two, one)).to_pylist() == ["2: b, 3: nothing, 4: d, 1: a; 4"]


def test_errors_and_panics_are_those_of_groups(plugin: Plugin) -> None:
    diary = aggregate(plugin, "diary")
    days = pa.array([[1], [2], [3, 4, 5], [6]], pa.list_(pa.int32()))
    texts = [["fine"], ["fire"], ["a", "b", "c"], ["panic"]]
    with pytest.raises(RowError, match=r"lists_rust\.diary\.update, row 1: burnt on 2") as caught:
        diary.update(None, days, pa.array(texts))
    assert list(caught.value.errors) == [1, 3]
    assert "panicked" in caught.value.errors[3]
    states = diary.update(None, days[:3], pa.array([["fine"], ["well"], ["a", "b", "c"]]))
    with pytest.raises(RowError, match=r"lists_rust\.diary\.merge, row 0"):
        diary.merge(states, states)
    with pytest.raises(RowError, match=r"lists_rust\.diary\.finish, row 2: three is too many"):
        diary.finish(states)
    with pytest.raises(RowError, match=r"different lengths: \[1, 2\]"):
        diary.update(None, pa.array([[1]], pa.list_(pa.int32())), pa.array([["a", "b"]]))
    with pytest.raises(RowError, match=r"lists_rust\.words, row 1: stopped") as caught:
        plugin.functions["words"](["go", "please stop", "do panic"], [9, 9, 9])
    assert list(caught.value.errors) == [1, 2]


@given(state=st.binary())
def test_a_state_from_outside_is_checked(plugin: Plugin, state: bytes) -> None:
    """It gives a value or an error."""
    for name in ("total", "diary"):
        with contextlib.suppress(RowError):
            aggregate(plugin, name).finish(pa.array([state], pa.binary()))
    with pytest.raises(RowError, match="the state is not one of this aggregate"):
        aggregate(plugin, "total").finish(pa.array([state + bytes(13)], pa.binary()))


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("#[derive(Default, State)]\nstruct Total", "#[derive(Default)]\nstruct Total", "cannot be in the state"),
        ("    sum: i64,\n", "    sum: i64,\n    at: std::rc::Rc<i64>,\n", "cannot be in the state of an aggregate"),
        ("fn update(&mut self, value: i64)", "fn update(&mut self, value: std::rc::Rc<i64>)", "cannot be an argument"),
        (
            "    sum: i64,\n",
            "    sum: i64,\n    more: Vec<Total>,\n",
            "a state cannot hold itself",
        ),
        (
            "#[derive(Default, State)]\nstruct Total {\n",
            "#[derive(Default, State)]\nstruct Nested(Vec<Total>);\n"
            "#[derive(Default, State)]\nstruct Total {\n    nested: Nested,\n",
            "LEVELS",
        ),
        (
            "fn update(&mut self, value: i64)",
            "fn update(&mut self, value: Vec<i64>)",
            "is the value of one row, and cannot be a list: write `i64` for `Vec<i64>`",
        ),
        ("#[udtf(columns(word, place),", "#[udtf(", "several columns need names"),
        (
            "-> Vec<String> {\n    text.chars().map(String::from).collect()",
            "-> String {\n    text.to_string()",
            "no rows",
        ),
        (
            "#[udtf(columns(word, place),",
            "#[udtf(columns(word, place, more),",
            "a name in `columns(...)` for each column",
        ),
    ],
)
def test_mistakes_are_told_in_words(build_plugin: BuildPlugin, old: str, new: str, text: str) -> None:
    source = SOURCE.replace(old, new)
    assert source != SOURCE
    with pytest.raises(BuildError) as caught:
        build_plugin(source, ".rs", "mistaken")
    assert text in str(caught.value)
