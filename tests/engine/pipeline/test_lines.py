"""Errors name the line of their key."""

from __future__ import annotations

import pytest

from arroyo_udf_plugin.engine.pipeline.lines import Key, line_of, lines_of

TEXT = '''# a comment with [brackets]
name = "a"   # 2

[source]
type = "files"   # 5
path = [
  "one",   # 7
  "two", "three",   # [not a table]

  "four",
]
text = """
[no_table]
key = 1
"""
dotted.inner = 1   # 16

[[operators]]
calls = ["f", "g"]
options = { timeout = "1s" }   # 20

[[operators]]
"quoted key" = 1
[operators.options]
timeout = "2s"   # 25

[a.b]
c = 1
'''


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("name",), 2),
        (("source",), 4),
        (("source", "type"), 5),
        (("source", "path"), 6),
        (("source", "path", 0), 7),
        (("source", "path", 2), 8),
        (("source", "path", 3), 10),
        (("source", "text"), 12),
        (("source", "dotted", "inner"), 16),
        (("operators", 0), 18),
        (("operators", 0, "calls", 1), 19),
        (("operators", 0, "options", "timeout"), 20),
        (("operators", 1), 22),
        (("operators", 1, "quoted key"), 23),
        (("operators", 1, "options", "timeout"), 25),
        (("a", "b", "c"), 28),
    ],
)
def test_keys(key: Key, line: int) -> None:
    assert line_of(key, lines_of(TEXT)) == line


def test_a_key_that_is_not_there_is_in_the_line_of_the_nearest_one_around_it() -> None:
    lines = lines_of(TEXT)
    assert line_of(("operators", 1, "plugin"), lines) == 22
    assert line_of(("source", "path", 0, "inner"), lines) == 7
    assert line_of(("sinks",), lines) is None


def test_text_is_no_table() -> None:
    assert not any("no_table" in key for key in lines_of(TEXT))
