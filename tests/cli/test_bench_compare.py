"""The comparison of measured lines with the table in bench/README.md (bench/compare.py)."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.once

BENCH = Path(__file__).resolve().parents[2] / "bench"
_spec = importlib.util.spec_from_file_location("compare", BENCH / "compare.py")
assert _spec is not None
assert _spec.loader is not None
compare = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(compare)
Line = compare.Line

TABLE = """
| line | subject | reference | goal |
|---|---|---|---|
| `mph`: row by row | flights | a comprehension | 1.25 |

Words | between.

| line | reference | 3.11 | 3.13 | goal |
|---|---|---|---|---|
| mph: Python | comprehension | 0.96 | 1.05 | 1.25 |
| one send |  | 93 ns/call | 1501452 us | 100 ns/call |
| only here | spread |  | 0.010 | 1 |

| line | reference | 3.11 | goal |
|---|---|---|---|
| engine | plain loop | 1.17 to 1.25 | 1.15 |
"""


def benchmark(name: str, value: float, ratio: float | None, iqr: float = 0.0) -> dict[str, Any]:
    info = {"name": name, "value": value, "reference": None if ratio is None else "comprehension", "ratio": ratio}
    return {"extra_info": info, "stats": {"median": 2.0, "iqr": iqr}}


def test_the_table_is_read_by_line_reference_and_python() -> None:
    assert compare.table(TABLE) == {
        Line("mph: Python", "comprehension", "3.11"): 0.96,
        Line("mph: Python", "comprehension", "3.13"): 1.05,
        Line("one send", "", "3.11"): 93,
        Line("one send", "", "3.13"): 1501452,
        Line("only here", "spread", "3.13"): 0.010,
        Line("engine", "plain loop", "3.11"): 1.17,
    }


def test_the_table_of_the_benchmarks_has_the_lines_that_are_compared() -> None:
    figures = compare.table((BENCH / "README.md").read_text())
    for name, reference in [
        ("mph: Python, row by row", "comprehension"),
        ("mph: Python, vectorised", "pyarrow"),
        ("mph: C, from a C host", "C loop"),
        ("one call from the Python host, one row", ""),
    ]:
        assert {Line(name, reference, python) for python in ("3.11", "3.13")} <= figures.keys()


@pytest.mark.parametrize(
    ("figure", "iqr", "fell"),
    [(0.9, 0.0, False), (1.05, 0.0, False), (1.2, 0.0, True), (1.2, 1.0, False), (1.6, 1.0, True)],
)
def test_a_line_fell_if_it_is_worse_by_more_than_its_spread(figure: float, iqr: float, fell: bool) -> None:
    lines = compare.measured([benchmark("mph: Python", 70, figure, iqr)], "3.11")
    said = compare.remarks(lines, compare.table(TABLE))
    assert len(said) == fell
    assert all(text.startswith("fell: mph: Python, against comprehension, Python 3.11: ") for text in said)


def test_a_value_counts_where_there_is_no_reference_and_a_new_line_is_named() -> None:
    lines = compare.measured([benchmark("one send", 140, None), benchmark("new", 3.14159, None)], "3.11")
    assert compare.remarks(lines, compare.table(TABLE)) == [
        "fell: one send, Python 3.11: 140, in the table 93: 51% more, its spread is 10%",
        "not in the table of bench/README.md: new, Python 3.11: 3.14",
    ]


def test_what_fell_is_a_remark_and_no_failure(tmp_path: Path) -> None:
    path = tmp_path / "main-3.11.json"
    slow = benchmark("mph: Python, row by row", 1e9, 1e9)
    path.write_text(json.dumps({"benchmarks": [slow]}))
    done = subprocess.run([sys.executable, BENCH / "compare.py", path, "3.11"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("fell: mph: Python, row by row, against comprehension, Python 3.11: 1e+09")
    slow["extra_info"]["ratio"] = 0.1
    path.write_text(json.dumps({"benchmarks": [slow]}))
    done = subprocess.run([sys.executable, BENCH / "compare.py", path, "3.11"], capture_output=True, text=True)
    assert done.stdout == "no line fell, of 1 that were compared with the table of bench/README.md\n"
