"""Modules of the source's folder: each plugin carries its own (F6). And what a plugin knows of its build."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin import BuildError, build, load
from arroyo_udf_plugin.plugin.module import forget

BareHost = Callable[..., list[str]]

SOURCE = """\
import helper
from shapes.round import area as area_of
from arroyo_udf_plugin import udf

@udf(native=False)
def number(x: int) -> int:
    import late
    return x + helper.NUMBER + late.TEN

@udf(native=False)
def area(x: float) -> float:
    return area_of(x)

@udf(native=False)
def file(x: int) -> str:
    return f"{__file__} {helper.__file__}"
"""
SIBLINGS = {
    "helper.py": "from shapes import PI\nNUMBER = {number}\n",
    "late.py": "TEN = 10\n",
    "shapes/__init__.py": "PI = 3.0\n",
    "shapes/round.py": "from . import PI\nfrom .units import ONE\nimport helper\ndef area(r): return PI * r * r\n",
    "shapes/units.py": "ONE = 1.0\n",
    "unused.py": "this is no Python\n",
    "json.py": "raise ImportError('modules of Python itself come first')\n",
}


def written(folder: Path, number: int) -> Path:
    folder.mkdir()
    for name, text in SIBLINGS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text.format(number=number))
    (folder / "mine.py").write_text(f"import json\n{SOURCE}")
    return folder / "mine.py"


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same source in two folders, whose modules differ; then the folders are removed."""
    folder = tmp_path_factory.mktemp("carried")
    built = {
        name: build(written(folder / name, number), folder / f"{name}.so")
        for name, number in (("one", 100), ("two", 200))
    }
    for name in built:
        shutil.rmtree(folder / name)
    return built


def test_modules_of_the_folder_are_carried_along(plugins: dict[str, Path]) -> None:
    """Two plugins of one process have different modules of the same name."""
    for name, value in (("one", 111), ("two", 211)):
        functions = load(plugins[name]).functions
        assert functions["number"](pa.array([1, None])).to_pylist() == [value, None]
        assert functions["area"](pa.array([2.0])).to_pylist() == [12.0]
    assert not {"helper", "late", "shapes"} & sys.modules.keys()


def test_file_is_the_path_of_the_source(plugins: dict[str, Path]) -> None:
    folder = plugins["one"].with_name("one")
    assert load(plugins["one"]).functions["file"](pa.array([1])).to_pylist() == [f"{folder}/mine.py {folder}/helper.py"]


def test_a_host_that_is_not_python_has_the_modules_too(plugins: dict[str, Path], bare_host: BareHost) -> None:
    assert sorted(bare_host(*plugins.values())[:2]) == ["mine: 111 112 null", "mine: 211 212 null"]


def test_a_change_in_a_module_of_the_folder_builds_again(tmp_path: Path) -> None:
    source = written(tmp_path / "folder", 1)
    build(source)
    (source.parent / "helper.py").write_text("NUMBER = 2\n")
    assert load(build(source, tmp_path / "new.so")).functions["number"](pa.array([0])).to_pylist() == [12]


def test_a_mistake_in_a_module_of_the_folder_is_named(tmp_path: Path) -> None:
    source = written(tmp_path / "folder", 1)
    (source.parent / "helper.py").write_text("x = (\n")
    with pytest.raises(BuildError, match=r"helper\.py:1: is not Python"):
        build(source)


def test_a_module_of_the_folder_that_fails_shows_its_author_s_frames_alone(tmp_path: Path) -> None:
    """Not those of the toolkit's import between the two files."""
    source = written(tmp_path / "folder", 1)
    (source.parent / "helper.py").write_text("def made():\n    raise OSError('no such thing')\nNUMBER = made()\n")
    with pytest.raises(BuildError) as caught:
        build(source)
    helper = source.with_name("helper.py")
    frames = [line.strip() for line in str(caught.value).splitlines() if line.startswith("  File ")]
    assert frames == [
        f'File "{source}", line 2, in <module>',
        f'File "{helper}", line 3, in <module>',
        f'File "{helper}", line 2, in made',
    ]


def test_an_import_of_another_thread_does_not_break_the_end_of_a_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """`sys.modules` changes while it is searched."""

    class Name(str):
        def startswith(self, *given: Any) -> bool:
            monkeypatch.setitem(sys.modules, "imported_meanwhile", sys)
            return super().startswith(*given)

    monkeypatch.setitem(sys.modules, Name("searched"), sys)
    monkeypatch.setitem(sys.modules, "mine_helper", sys)
    forget("mine")
    assert "mine_helper" not in sys.modules
    assert sys.modules["imported_meanwhile"] is sys


def test_a_byte_order_mark_does_not_matter(tmp_path: Path) -> None:
    """Editors on Windows write it, in the source and in modules of its folder."""
    source = written(tmp_path / "folder", 1)
    for file in (source, source.with_name("helper.py")):
        file.write_text(file.read_text(), "utf-8-sig")
    assert load(build(source)).functions["number"](pa.array([0])).to_pylist() == [11]


def test_a_folder_that_is_no_package_is_named(tmp_path: Path) -> None:
    (tmp_path / "shapes").mkdir()
    (tmp_path / "shapes" / "round.py").write_text("")
    (tmp_path / "mine.py").write_text("import shapes.round\n")
    with pytest.raises(BuildError, match=r"No module named 'shapes'\na plugin carries .*: give shapes an __init__.py"):
        build(tmp_path / "mine.py")


def test_prints_go_to_stderr_in_a_host_that_is_not_python(tmp_path: Path, bare_host: BareHost) -> None:
    """The bare host's lines: its standard output, then its standard error."""
    source = tmp_path / "prints.py"
    text = "from arroyo_udf_plugin import udf\n@udf\ndef f(x: int) -> int:\n    print('seen', x)\n    return x\n"
    source.write_text(text)
    lines = bare_host(build(source))
    assert lines[0] == "prints: 1 2 null"
    assert lines[-2:] == ["seen 1", "seen 2"]


def test_another_environment_is_named_with_that_of_the_build(tmp_path: Path) -> None:
    """The plugin imports a package that the other environment does not have."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "only_here.py").write_text("")
    source = tmp_path / "mine.py"
    function = "@udf(native=False)\ndef f(x: int) -> int: return x\n"
    source.write_text(f"import only_here\nfrom arroyo_udf_plugin import udf\n{function}")
    builds = f"import sys; sys.path.append({str(site)!r}); from arroyo_udf_plugin import build; build({str(source)!r})"
    subprocess.run([sys.executable, "-c", builds], check=True)
    calls = """
import json, sys
import pyarrow as pa
from arroyo_udf_plugin import PluginEnvironmentError, load
sys.prefix = "/another/environment"
try:
    load("libmine.so").functions["f"](pa.array([1]))
except PluginEnvironmentError as error:
    print(json.dumps(str(error)))
"""
    done = subprocess.run([sys.executable, "-c", calls], cwd=tmp_path, capture_output=True, text=True, check=True)
    text = json.loads(done.stdout)
    assert "No module named 'only_here'" in text
    assert f"it was built with {sys.executable}, and runs in the environment /another/environment: install" in text
