"""What may change between a checkpoint and a resume, and what may not: a line of docs/pipelines.md each."""

from __future__ import annotations

from typing import Any

import pytest

from arroyo_udf_plugin.engine.changes import changes

WAS: dict[str, Any] = {
    "source": {"type": "files", "paths": ["in"], "bad_records": "fail", "watch": None},
    "sources": {"b": {"source": {"type": "files", "paths": ["b"], "bad_records": "fail"}}},
    "operators": [
        ["f(x)"],
        {"select": {"y": "x + 1", "s": "'a  b'"}, "where": "x > 1"},
        {"keys": ["x"], "aggregates": {"n": "count(*)"}},
    ],
    "sinks": [{"type": "parts", "path": "out", "part_rows": None, "part_bytes": 100}],
    "dead letters": None,
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The fingerprint with another value. path: keys with slashes between them."""

    def replaced(at: Any, keys: list[str]) -> Any:
        if not keys:
            return value
        if isinstance(at, list):
            return [replaced(one, keys[1:]) if str(n) == keys[0] else one for n, one in enumerate(at)]
        return {**at, keys[0]: replaced(at.get(keys[0]), keys[1:])}

    found = replaced(WAS, path.split("/"))
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


def test_dead_letters_may_come_and_not_go() -> None:
    assert [key for key, _, _ in changes(changed("dead letters", {"type": "parts"}), WAS)] == ["dead letters"]
