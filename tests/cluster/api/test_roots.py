"""Files of pipelines are in the folders that the configuration names."""

from __future__ import annotations

from pathlib import Path

import pytest

from arroyo_udf_plugin.cluster.functions.allowed_paths import check
from arroyo_udf_plugin.engine.planner.text import InvalidQuery, Text


def told(path: str, root: Path, option: str = "path") -> str:
    query = f"CREATE TABLE t (a INT) WITH (connector = 'filesystem', {option} = '{path}'); SELECT a FROM t;"
    refused = None
    try:
        check(Text("query.sql", query), [str(root)])
    except InvalidQuery as error:
        refused = error
    if refused is None:
        return ""
    assert refused.places[0].start == (1, query.index(option) + 1)
    return str(refused)


@pytest.mark.parametrize("path", ["", "/a.csv", "/a/*/b.csv", "/a/[xy].csv", "/not there yet/a"])
def test_what_is_inside_passes(tmp_path: Path, path: str) -> None:
    assert told(f"{tmp_path}{path}", tmp_path) == ""
    assert told(f"file://{tmp_path}{path}", tmp_path) == ""
    assert told(f"sqlite:{tmp_path}{path}", tmp_path, "uri") == ""
    assert told(f"sqlite:///{tmp_path}{path}", tmp_path, "uri") == ""


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "{root}/../x",
        "{root}x/a",
        "{root}/*/../../x",
        "a.csv",
        "./{root}",
        "{root}/link/a",
        "/*",
        "{root}/x?/../../y",
    ],
)
def test_what_is_outside_is_refused_however_it_is_written(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to("/etc")
    place = path.replace("{root}", str(root))
    assert "root" in told(place, root)
    assert told(f"sqlite:{place}", root, "uri")
    if place.startswith("/"):
        assert told(f"file://{place}", root)
        assert told(f"sqlite:///{place}", root, "uri")


def test_a_variable_is_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "/etc")
    assert told("${PLACE}/passwd", tmp_path)
    monkeypatch.setenv("PLACE", str(tmp_path))
    assert not told("${PLACE}/a.csv", tmp_path)


def test_other_machines_are_not_this_ones_files(tmp_path: Path) -> None:
    assert told("s3://bucket/a.csv", tmp_path) == ""
    assert told("postgresql://host/db", tmp_path, "uri") == ""


def test_dead_letters_are_files_too(tmp_path: Path) -> None:
    with pytest.raises(InvalidQuery, match="outside"):
        check(Text("query.sql", "SET dead_letters = '/etc/dead';"), [str(tmp_path)])


def test_what_the_planner_refuses_is_left_to_it(tmp_path: Path) -> None:
    for query in ("CREATE TABLE", "SELECT (", "'", "CREATE TABLE t (a FOO) WITH (path = '/etc')"):
        check(Text("query.sql", query), [str(tmp_path)])
