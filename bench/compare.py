"""Compares lines that were just measured with the table in README.md, the only place where their figures are kept.

    python bench/compare.py build/bench/main-3.11.json 3.11

Prints each line that fell by more than its spread: a remark, never a failure. The spread is the middle half of the
rounds that were measured, at least LEAST_SPREAD. A line without a reference is time on the machine of the table, so it
says something on such a machine alone.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

README = Path(__file__).with_name("README.md")
LEAST_SPREAD = 0.1
"""As a share of a line: what a busy machine does to any of them."""

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")


class Line(NamedTuple):
    """A line of the table, on one Python. reference: "" if there is none."""

    name: str
    reference: str
    python: str


class Measured(NamedTuple):
    """The ratio, or the value where there is no reference; and its spread, as a share of it."""

    figure: float
    spread: float


def table(text: str) -> dict[Line, float]:
    """The figures of all tables with the columns `line` and `reference`; their other columns name a Python."""
    figures: dict[Line, float] = {}
    pythons: dict[int, str] = {}
    for row in text.splitlines():
        cells = [cell.strip() for cell in row.strip().strip("|").split("|")] if row.startswith("|") else []
        if cells[:2] == ["line", "reference"]:
            pythons = {i: cell for i, cell in enumerate(cells) if _NUMBER.fullmatch(cell)}
        elif not cells:
            pythons = {}
        for i, python in pythons.items():
            if i < len(cells) and (found := _NUMBER.match(cells[i])) and cells[0] != "line":
                figures[Line(cells[0], cells[1], python)] = float(found[0])
    return figures


def measured(benchmarks: Iterable[dict[str, Any]], python: str) -> dict[Line, Measured]:
    """The lines in what pytest-benchmark has written."""
    lines = {}
    for benchmark in benchmarks:
        line, stats = benchmark["extra_info"], benchmark["stats"]
        figure = line["value"] if line["ratio"] is None else line["ratio"]
        spread = stats["iqr"] / stats["median"] if stats["median"] else 0.0
        lines[Line(line["name"], line["reference"] or "", python)] = Measured(figure, max(spread, LEAST_SPREAD))
    return lines


def remarks(lines: dict[Line, Measured], figures: dict[Line, float]) -> list[str]:
    """What there is to say, a line each."""
    said = []
    for line, (figure, spread) in lines.items():
        name = f"{line.name}{line.reference and f', against {line.reference}'}, Python {line.python}"
        if line not in figures:
            said.append(f"not in the table of bench/README.md: {name}: {figure:.3g}")
        elif figure > figures[line] * (1 + spread):
            more = f"{figure / figures[line] - 1:.0%} more" if figures[line] else "more"
            said.append(
                f"fell: {name}: {figure:.3g}, in the table {figures[line]:.3g}: {more}, its spread is {spread:.0%}"
            )
    return said


def main() -> None:
    path, python = sys.argv[1:]
    lines = measured(json.loads(Path(path).read_text())["benchmarks"], python)
    said = remarks(lines, table(README.read_text()))
    print("\n".join(said or [f"no line fell, of {len(lines)} that were compared with the table of bench/README.md"]))


if __name__ == "__main__":
    main()
