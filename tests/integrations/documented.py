"""The lines of documents that use an engine, and what they give."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa

ROOT = Path(__file__).resolve().parents[2]
TRIPS = pa.table({"trip": ["home", "work", "sea"], "miles": [12, 30, 140], "minutes": [25, None, 120]})
SPEEDS = [28.8, None, 70.0]


def lines(document: str) -> dict[str, tuple[str, str]]:
    """By engine: the line that registers, and the one that calls."""
    rows = re.findall(r"^\| (\w+) \| `([^`]+)` \| `([^`]+)` \|$", (ROOT / document).read_text(), re.MULTILINE)
    return {engine: (first, second) for engine, first, second in rows}


def speeds_of_readme() -> str:
    """The source of the README's function."""
    source = re.search(r"cat > speeds\.py <<'END'\n(.*?)END", (ROOT / "README.md").read_text(), re.DOTALL)
    assert source is not None
    return source[1]
