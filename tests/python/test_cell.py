"""build(function): of a notebook's cells, of a file, and where there is no source."""

import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin import BuildError, build, load, udf

RunCells = Callable[..., dict[str, Any]]
CELL = """\
from arroyo_udf_plugin import udf

FACTOR = 3

@udf(native=False)
def triple(x: int) -> int:
    return helped(x) * FACTOR

def helped(x: int) -> int:
    return x
"""


@pytest.fixture
def run_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunCells:
    """Executes texts as a notebook does, in one module: Python knows them by linecache alone."""
    monkeypatch.chdir(tmp_path)

    def run(*cells: str) -> dict[str, Any]:
        names: dict[str, Any] = {"__name__": "__main__"}
        for text in cells:
            file = f"<cell {hash(text)}>"
            linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
            exec(compile(text, file, "exec", dont_inherit=True), names)
        return names

    return run


def test_a_function_of_a_notebook_is_built_from_its_cell(run_cells: RunCells, tmp_path: Path) -> None:
    triple = run_cells(CELL)["triple"]
    built = build(triple)
    assert built == tmp_path / "libtriple.so"
    assert load(built).functions["triple"](pa.array([1, None])).to_pylist() == [3, None]
    assert build(triple) == built
    assert build(triple, tmp_path / "named.so") == tmp_path / "named.so"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "libtriple.duckdb_extension",
        "libtriple.so",
        "named.so",
    ]


def test_a_cell_that_also_builds_and_calls_is_not_executed_again(run_cells: RunCells) -> None:
    calls = "from arroyo_udf_plugin import build, load\nran.append(1)\nplugin = load(build(triple))\n"
    names = run_cells("ran = []", CELL + calls)
    assert names["ran"] == [1]
    assert list(names["plugin"].functions) == ["triple"]


def test_what_other_cells_import_and_define_is_taken_along(run_cells: RunCells) -> None:
    names = run_cells(
        "import math\nimport asyncio as aio\nfrom dataclasses import dataclass\nfrom arroyo_udf_plugin import udf\n",
        "ROOTS = {4: 2.0}\n",
        "import pyarrow as pa\nfrom typing import Annotated\nSmall = Annotated[float, pa.float32()]\n",
        "@dataclass\nclass Both:\n    low: Small\n    high: float\n",
        "def later(x: int) -> float:\n    return ROOTS.get(x) or math.sqrt(x)\n",
        "class Context:\n    async def init(self) -> None: self.one = 1\n",
        """
from __future__ import annotations

print("this cell has been executed")

@udf
async def both(context: Context, x: int) -> Both:
    await aio.sleep(0)
    root = later(x)
    assert context.one and Both(1.0, 2.0).high == 2.0
    return Both(-root, root)
""",
    )
    with load(build(names["both"])).functions["both"].start() as runtime:
        runtime.send(0, pa.array([4, 9]))
        runtime.stop()
        results = pa.Table.from_batches(iter(runtime.drain_results, None))
    assert results["value"].to_pylist() == [{"low": -2.0, "high": 2.0}, {"low": -3.0, "high": 3.0}]


def test_names_that_are_changed_after_their_assignment_are_taken_along_as_they_are(run_cells: RunCells) -> None:
    """Their last assignment alone would be executed without what it needs, or lack what was done later."""
    changed = """
from arroyo_udf_plugin import udf

table = {}
table["x"] = 1
names = []
names.append("a")
LIMIT = 2
LIMIT = LIMIT * 2

@udf(native=False)
def sees(x: int) -> str:
    return f"{table} {names} {LIMIT}"
"""
    built = build(run_cells(changed)["sees"])
    assert load(built).functions["sees"](pa.array([1])).to_pylist() == ["{'x': 1} ['a'] 4"]


def test_a_global_that_a_function_changes_is_taken_along(run_cells: RunCells) -> None:
    """The function is not where it comes from."""
    counting = """
from arroyo_udf_plugin import udf

count = 10

def counted():
    global count
    count += 1
    return count

@udf(native=False)
def counts(x: int) -> int:
    return counted()
"""
    built = build(run_cells(counting)["counts"])
    assert load(built).functions["counts"](pa.array([1, 1])).to_pylist() == [11, 12]


def test_a_cell_may_import_what_is_beside_the_notebook(run_cells: RunCells, tmp_path: Path) -> None:
    (tmp_path / "factors.py").write_text("FACTOR = 4\n")
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(tmp_path)
        triple = run_cells(CELL.replace("FACTOR = 3", "from factors import FACTOR"))["triple"]
    assert load(build(triple, tmp_path / "four.so")).functions["triple"](pa.array([1])).to_pylist() == [4]


def test_what_cannot_be_taken_along_is_refused_by_name(run_cells: RunCells) -> None:
    names = run_cells(
        "import threading\nlock = threading.Lock()\n", CELL.replace("return helped", "with lock: return helped")
    )
    with pytest.raises(BuildError, match=r"build\(triple\): 'lock', which it uses, cannot be taken along: <unlocked"):
        build(names["triple"])
    names = run_cells(CELL.replace("helped(x)", "missing(x)"))
    with pytest.raises(BuildError, match=r"build\(triple\): 'missing', which it uses, is not defined"):
        build(names["triple"])


def test_a_mistake_in_a_cell_is_told_without_the_temporary_file(run_cells: RunCells) -> None:
    names = run_cells(CELL.replace("x: int) -> int:\n    return helped", "x) -> int:\n    return helped"))
    with pytest.raises(BuildError, match=r"^build\(triple\): function 'triple' does not say the type"):
        build(names["triple"])


def test_a_function_without_a_source_is_refused(run_cells: RunCells) -> None:
    names: dict[str, Any] = {"udf": udf}
    exec("@udf(native=False)\ndef f(x: int) -> int: return x\n", names)
    with pytest.raises(BuildError, match="the source of 'f' is unknown, because it was made at a prompt or by exec"):
        build(names["f"])
    with pytest.raises(BuildError, match=r"build\(helped\): decorate it with @udf"):
        build(run_cells(CELL)["helped"])


def test_a_function_of_a_file_is_built_from_that_file(examples: Path, tmp_path: Path) -> None:
    names: dict[str, Any] = {"__name__": "udf"}
    source = examples / "misbehaving" / "udf.py"
    exec(compile(source.read_text(), str(source), "exec", dont_inherit=True), names)
    assert len(load(build(names["fails"], tmp_path / "all.so")).functions) > 5
