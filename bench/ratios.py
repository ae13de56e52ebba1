"""Collects the benchmarks' lines from build/bench/python-X.Y.json; prints a table and writes build/bench/ratios.json.

    ratios.py FILE-X.Y.json ...      prints the lines of these files alone

A line is {name, python, value, unit, reference, ratio, goal, met}. `ratio` is value over reference: smaller is faster.
`goal` limits the ratio, or the value where there is no reference; `met` is null where there is no goal.

Several files of one Python are runs of the same benchmarks: each line is their median, and `worst` the largest.
A missed goal is shown, and does not fail this program.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parent.parent / "build" / "bench"


def collect(paths: Iterable[Path]) -> list[dict[str, Any]]:
    lines = []
    for path in paths:
        for benchmark in json.loads(path.read_text())["benchmarks"]:
            line = dict(benchmark["extra_info"])
            line["python"] = path.stem.rpartition("-")[2]
            line["met"] = None if line["goal"] is None else measured(line) <= line["goal"]
            keys = ("name", "python", "value", "unit", "reference", "ratio", "goal", "met")
            lines.append({key: line[key] for key in keys})
    return lines


def measured(line: dict[str, Any]) -> float:
    """What a goal limits."""
    return float(line["value"] if line["ratio"] is None else line["ratio"])


def over_runs(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line for all runs of a benchmark."""
    runs: dict[tuple[str, str | None, str], list[dict[str, Any]]] = {}
    for line in lines:
        runs.setdefault((line["name"], line["reference"], line["python"]), []).append(line)
    merged = []
    for same in runs.values():
        same.sort(key=measured)
        merged.append(dict(same[len(same) // 2], worst=measured(same[-1])))
    return merged


def table(lines: list[dict[str, Any]]) -> str:
    def row(line: dict[str, Any]) -> tuple[str, ...]:
        ratio = "" if line["ratio"] is None else f"{line['ratio']:.3f}"
        goal = "" if line["goal"] is None else f"<= {line['goal']:g}" + ("" if line["ratio"] else f" {line['unit']}")
        met = {True: "yes", False: "NO", None: ""}[line["met"]]
        value = f"{line['value']:.1f} {line['unit']}"
        worst = (f"{line['worst']:.3f}",) if "worst" in line else ()
        return line["name"], line["python"], value, line["reference"] or "", ratio, *worst, goal, met

    head = ("what", "Python", "value", "reference", "ratio", *(["worst"] if "worst" in lines[0] else []), "goal", "met")
    rows = [head, *map(row, lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("-" * width for width in widths))
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |" for cells in rows
    )


def main() -> None:
    if given := sys.argv[1:]:
        lines = collect(map(Path, given))
        print(table(lines if len(given) == 1 else over_runs(lines)))
        return
    lines = collect(sorted(OUT.glob("python-*.json")))
    (OUT / "ratios.json").write_text(json.dumps(lines, indent=2) + "\n")
    print(table(lines))


if __name__ == "__main__":
    main()
