"""The documents beside the README keep their word: their Rust builds, their links and tables hold."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import build, load

DOCS = Path(__file__).resolve().parents[2] / "docs"
ARROYO = (DOCS / "arroyo.md").read_text()
RUST = re.findall(r"^ *```rust\n(.*?)^ *```$", ARROYO, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The functions of all Rust in docs/arroyo.md, built, by name."""
    found: dict[str, object] = {}
    for number, text in enumerate(RUST):
        source = tmp_path_factory.mktemp("docs") / f"block_{number}.rs"
        source.write_text(text)
        found |= load(build(source)).functions
    return found


def test_its_rust_builds_and_is_what_the_text_says(functions: dict[str, object]) -> None:
    assert [repr(function) for function in functions.values()] == [
        "<async function user_name(_id: int64) -> string>",
        "<sync function digits(text: string) -> int64>",
    ]
    digits = functions["digits"]
    assert callable(digits)
    assert digits(pa.array(["a1b22", None, ""])).to_pylist() == [3, None, 0]


def test_links_lead_somewhere() -> None:
    for document in DOCS.glob("*.md"):
        text = document.read_text()
        anchors = {
            re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.M)
        }
        for target in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
            path, _, anchor = target.partition("#")
            assert path == "" or (DOCS / path).exists(), target
            assert anchor == "" or anchor in anchors, target


def test_tables_have_their_columns() -> None:
    tables = re.findall(r"(?:^\|.*\|\n)+", ARROYO, re.M)
    assert len(tables) == 4
    for table in tables:
        widths = {len(row.replace(r"\|", "").strip("|\n").split("|")) for row in table.splitlines()}
        assert len(widths) == 1, table
