"""build(function): of a notebook's cell, of a file, and where there is no source."""

import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin import BuildError, build, load, udf

CELL = """\
from arroyo_udf_plugin import udf

FACTOR = 3

@udf
def triple(x: int) -> int:
    return helped(x) * FACTOR

def helped(x: int) -> int:
    return x
"""


@pytest.fixture
def run_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Executes a text as a notebook does: Python knows it by linecache alone. Names of other cells are there."""
    monkeypatch.chdir(tmp_path)

    def run(text: str, **others: Any) -> dict[str, Any]:
        name = f"<cell {hash(text)}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        names = {"__name__": "__main__", **others}
        exec(compile(text, name, "exec", dont_inherit=True), names)
        return names

    return run


def test_a_function_of_a_notebook_is_built_from_its_cell(run_cell: Callable[..., Any], tmp_path: Path) -> None:
    triple = run_cell(CELL)["triple"]
    built = build(triple)
    assert built == tmp_path / "libtriple.so"
    assert load(built).functions["triple"](pa.array([1, None])).to_pylist() == [3, None]
    assert build(triple) == built
    assert build(triple, tmp_path / "named.so") == tmp_path / "named.so"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["libtriple.so", "named.so"]


def test_a_cell_may_import_what_is_beside_the_notebook(run_cell: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "factors.py").write_text("FACTOR = 4\n")
    text = CELL.replace("FACTOR = 3", "import factors\nfrom factors import FACTOR")
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(tmp_path)
        triple = run_cell(text)["triple"]
    assert load(build(triple, tmp_path / "four.so")).functions["triple"](pa.array([1])).to_pylist() == [4]


def test_a_cell_that_uses_another_cell_is_refused_with_the_names(run_cell: Callable[..., Any]) -> None:
    names = run_cell(CELL.replace("from arroyo_udf_plugin import udf", "").replace("FACTOR = 3", ""), udf=udf, FACTOR=3)
    with pytest.raises(BuildError, match="the cell of 'triple' uses FACTOR, udf, from other cells"):
        build(names["triple"])


def test_a_mistake_in_a_cell_is_told_without_the_temporary_file(run_cell: Callable[..., Any]) -> None:
    names = run_cell(CELL.replace("x: int) -> int:\n    return helped", "x) -> int:\n    return helped"))
    with pytest.raises(BuildError, match=r"^the cell of triple, line 5: function 'triple' does not say the type"):
        build(names["triple"])


def test_a_function_without_a_source_is_refused(run_cell: Callable[..., Any]) -> None:
    names = {"udf": udf}
    exec("@udf\ndef f(x: int) -> int: return x\n", names)
    with pytest.raises(BuildError, match="the source of 'f' is unknown, because it was made at a prompt or by exec"):
        build(names["f"])
    with pytest.raises(BuildError, match=r"build\(helped\): decorate it with @udf"):
        build(run_cell(CELL)["helped"])


def test_a_function_of_a_file_is_built_from_that_file(examples: Path, tmp_path: Path) -> None:
    names: dict[str, Any] = {"__name__": "udf"}
    source = examples / "misbehaving" / "udf.py"
    exec(compile(source.read_text(), str(source), "exec", dont_inherit=True), names)
    assert len(load(build(names["fails"], tmp_path / "all.so")).functions) > 5
