"""docs/connectors/ has a table for each source and sink, and they are those of the models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import pydantic
import pytest

import connector_docs

PAGES = sorted(connector_docs.DOCUMENTS.glob("*.md"))
ALIKE = {("source", "stdin")}
"""What has the keys of another one."""
WITHOUT = {("sink", "blackhole"), ("sink", "preview")}
"""What has no keys."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_tables_are_those_of_the_models(page: Path) -> None:
    text = page.read_text()
    assert connector_docs.written(text) == text, "run scripts/connector_docs.py"


def test_each_source_and_sink_has_a_table() -> None:
    told = {found for page in PAGES for found in re.findall(r"<!-- (source|sink) (\w+) -->", page.read_text())}
    assert told | ALIKE | WITHOUT == {*connector_docs.models()}


def test_a_mark_of_no_model_is_told() -> None:
    with pytest.raises(KeyError, match="sauce"):
        connector_docs.written("<!-- source sauce -->\n<!-- end -->")


def test_each_page_is_in_the_list() -> None:
    overview = (connector_docs.DOCUMENTS / "README.md").read_text()
    assert [page.name for page in PAGES if page.name != "README.md" and f"]({page.name})" not in overview] == []


def test_a_row_says_what_may_be_written() -> None:
    assert connector_docs.table(Example).splitlines()[2:] == [
        "| `a` | text | **needed** | What. |",
        "| `b` | a number | `3` |  |",
        "| `c` | `x`, `y` |  |  |",
        "| `d` | a table |  |  |",
        "| `d.e` | `true` or `false` | `false` | Inside. |",
    ]


class Inner(pydantic.BaseModel):
    e: bool = False
    """Inside."""


class Example(pydantic.BaseModel):
    a: str
    """What."""
    b: int = 3
    c: Literal["x", "y"] | None = None
    d: Inner | None = None
