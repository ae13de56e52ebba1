"""Pipelines over simulated disks, with what must come out, row by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from called import calls, calls_and_windows, replayed
from copies import in_objects, one_file, parts, sqlite, watched
from windowed import IN_TIME, LATER, TIMES, join, kept, late, windows

from arroyo_udf_plugin.testing import Scenario


def of_kind(kind: str, folder: Path) -> Scenario:
    return SCENARIOS[kind](folder)


SCENARIOS: Mapping[str, Callable[[Path], Scenario]] = {
    "parts of csv": lambda folder: parts(folder, "csv"),
    "parts of parquet": lambda folder: parts(folder, "parquet", part_rows=2),
    "parts of json": lambda folder: parts(folder, "jsonl", compression="none"),
    "parts that wait": lambda folder: parts(folder, "jsonl", part_wait=3600),
    "sqlite": sqlite,
    "sqlite by key": lambda folder: sqlite(folder, key=["n"]),
    "objects": in_objects,
    "objects that wait": lambda folder: in_objects(folder, part_wait=3600),
    "watched": watched,
    "one file": one_file,
    "calls": lambda folder: calls(folder, "held", 10),
    "calls in order": lambda folder: calls(folder, "in_order", -1),
    "calls and windows": calls_and_windows,
    "replayed": replayed,
    "windows": windows,
    "windows in slices": lambda folder: windows(folder, IN_TIME),  # with several, other rows are late
    "windows and more": lambda folder: windows(folder, TIMES, LATER),
    "kept windows": kept,
    "join": join,
    "late rows": lambda folder: late(folder, "left"),
    "late rows of a join": lambda folder: late(folder, "left", "right"),
}
