"""What may change between a checkpoint and a resume, and what may not: a line of docs/pipelines.md each."""

from __future__ import annotations

from typing import Any

import pytest

from arroyo_udf_plugin.engine.execution.changes import changes
from arroyo_udf_plugin.engine.execution.dependents import kept_by_windows

WAS: dict[str, Any] = {
    "source": {"type": "files", "paths": ["in"], "bad_records": "fail", "watch": None},
    "sources": {"b": {"source": {"type": "files", "paths": ["b"], "bad_records": "fail"}}},
    "operators": [
        ["f(x)"],
        {"select": {"y": "x + 1", "s": "'a  b'"}, "where": "x > 1"},
        {"type": "windows", "time": "t", "keys": ["x"], "aggregates": {"n": "count(*)"}},
    ],
    "sinks": [{"type": "parts", "path": "out", "part_rows": None, "part_bytes": 100}],
    "dead letters": None,
}
NOTED = WAS | {"columns": [{"y": "int64"}]}


def changed(path: str, value: Any, was: dict[str, Any] = WAS) -> dict[str, Any]:
    """The fingerprint with another value. path: keys with slashes between them."""

    def replaced(at: Any, keys: list[str]) -> Any:
        if not keys:
            return value
        if isinstance(at, list):
            return [replaced(one, keys[1:]) if str(n) == keys[0] else one for n, one in enumerate(at)]
        return {**at, keys[0]: replaced(at.get(keys[0]), keys[1:])}

    found = replaced(was, path.split("/"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("source/bad_records", "drop"),
        ("source/watch", 1.0),
        ("sources/b/source/bad_records", "dead_letter"),
        ("dead letters", {"type": "parts", "path": "dead"}),
        ("sinks/0/part_rows", 7),
        ("sinks/0/part_bytes", 7),
        ("sinks/0/part_seconds", 7),
        ("sinks/0/part_wait", 7),
        ("operators/1/select/y", "x  +  1 -- one more"),
        ("operators/1/where", "x /* the row's */ > 1"),
        ("operators/2/aggregates/n", "count( * )"),
    ],
)
def test_what_may_change(path: str, value: Any) -> None:
    assert list(changes(WAS, changed(path, value))) == []


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("source/paths/0", "other", "source.paths[0]"),
        ("sinks/0/path", "other", "sinks[0].path"),
        ("operators/0/0", "g(x)", "operators[0].calls[0]"),
        ("operators/1/select/y", "x + 2", "operators[1].select.y"),
        ("operators/1/select/s", "'a b'", "operators[1].select.s"),
        ("operators/2/keys/0", "x--y", "operators[2].keys[0]"),
    ],
)
def test_what_may_not_change(path: str, value: Any, told: str) -> None:
    """By a key that the description has."""
    assert [key for key, _, _ in changes(WAS, changed(path, value))] == [told]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("operators/1/select/y", "x + 2"),
        ("operators/1/where", "x > 2"),
        ("operators/1/where", None),
    ],
)
def test_expressions_may_change_if_the_columns_of_sinks_stay(path: str, value: Any) -> None:
    other = changed(path, value, NOTED)
    assert list(changes(NOTED, other)) == []
    assert [key for key, _, _ in changes(NOTED, changed("columns/0/y", "double", other))] == ["columns[0].y"]
    assert len(list(changes(WAS, other))) == 1, "an earlier program has not noted the columns"


@pytest.mark.parametrize(
    ("behind", "is_kept"),
    [
        ([{"select": {"z": "y * 2"}}], False),
        ([{"type": "windows", "time": "t", "keys": ["y"], "aggregates": {}}], True),
        ([{"type": "windows", "time": "y", "keys": [], "aggregates": {}}], True),
        ([{"type": "windows", "time": "t", "keys": ["x"], "aggregates": {"n": 'max("y")'}}], True),
        ([{"type": "windows", "time": "t", "keys": ["x"], "aggregates": {"n": "max(x)"}}], False),
        ([{"type": "join", "time": "t", "on": "a.y = b.x", "select": {}}], True),
        ([{"type": "join", "time": "t", "on": "true", "select": {"y": "a.y"}}], False),
        ([{"select": {"z": "y * 2"}}, {"type": "windows", "time": "t", "keys": ["z"], "aggregates": {}}], True),
        ([["z = f(y)"], {"type": "windows", "time": "t", "keys": ["z"], "aggregates": {}}], True),
        ([{"calls": ["z = f(y)"], "after": "a"}, {"type": "windows", "time": "z", "keys": [], "aggregates": {}}], True),
        ([["z = f(x)"], {"type": "windows", "time": "t", "keys": ["z"], "aggregates": {}}], False),
        ([{"type": "lookup"}, {"type": "windows", "time": "t", "keys": ["z"], "aggregates": {}}], True),
        ([{"type": "lookup"}, {"select": {"z": "a"}}], False),
        ([{"type": "query", "tables": {"t": "sql"}, "sql": "SELECT 1"}], True),
        ([{"type": "lookup"}, {"type": "query", "tables": {}, "sql": ""}], True),
    ],
)
def test_what_windows_keep_of_a_column(behind: list[Any], is_kept: bool) -> None:
    assert kept_by_windows([{"select": {"x": "x", "y": "x"}}, *behind], 0, "y") == is_kept


def test_columns_that_change_by_themselves_are_nobodys_change() -> None:
    """A source finds other types in other files."""
    assert list(changes(NOTED, changed("columns/0/y", "double", NOTED))) == []
    assert list(changes(WAS, NOTED)) == []


def test_the_condition_of_a_lookup_may_not_change() -> None:
    was = NOTED | {"operators": [{"type": "lookup", "where": "a > 1"}]}
    now = NOTED | {"operators": [{"type": "lookup", "where": "a > 2"}]}
    assert [key for key, _, _ in changes(was, now)] == ["operators[0].where"]


def test_dead_letters_may_come_and_not_go() -> None:
    assert [key for key, _, _ in changes(changed("dead letters", {"type": "parts"}), WAS)] == ["dead letters"]
