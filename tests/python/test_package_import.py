"""Importing the package is cheap, and works in a subinterpreter: author/ and plugin/ need neither cffi nor pyarrow."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import arroyo_udf_plugin

BuildPlugin = Callable[..., Path]

PROGRAM = """
try:
    import _interpreters
except ImportError:  # before 3.13
    import _xxsubinterpreters as _interpreters

LIGHT = '''
import sys
import arroyo_udf_plugin
from arroyo_udf_plugin.author import call_info
from arroyo_udf_plugin.plugin import blocking, executor, module, stacks
heavy = {"pyarrow", "numpy", "cffi", "_cffi_backend", "click"} & set(sys.modules)
assert not heavy, heavy
'''
interpreter = _interpreters.create()
failed = _interpreters.run_string(interpreter, LIGHT)
assert failed is None, failed
_interpreters.destroy(interpreter)
"""


def test_import_in_a_subinterpreter() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


FUNCTIONS = """
import asyncio
import datetime
from arroyo_udf_plugin import udf

@udf(native=False)
def next_day(day: datetime.date) -> datetime.date:
    return day + datetime.timedelta(1)

@udf
async def later(x: int) -> int:
    await asyncio.sleep(0)
    return x + 1
"""

CALLS = """
import datetime
import gc
import sys
import pyarrow as pa
from arroyo_udf_plugin import load
try:
    import _interpreters
except ImportError:  # before 3.13
    import _xxsubinterpreters as _interpreters

def import_elsewhere():
    interpreter = _interpreters.create()
    _interpreters.run_string(interpreter, "import datetime, arroyo_udf_plugin._native as native; native.stop_all()")
    _interpreters.destroy(interpreter)
    gc.collect()

def call(functions):
    day = pa.array([datetime.date(2020, 2, 28)])
    assert functions["next_day"](day).to_pylist() == [datetime.date(2020, 2, 29)]
    with functions["later"].start() as runtime:
        runtime.send(0, pa.array(range(1000)))
        runtime.stop()
        while (batch := runtime.drain_results()) is not None:
            assert batch["value"].to_pylist() == [x + 1 for x in batch["id"].to_pylist()], batch

if sys.argv[2] == "before":
    import_elsewhere()
functions = load(sys.argv[1]).functions
call(functions)
import_elsewhere()
call(functions)
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_import_in_a_subinterpreter_changes_nothing_in_the_main_one(build_plugin: BuildPlugin, when: str) -> None:
    """Neither its types nor its API of datetime come from there, and nothing of it stops. The import may come first."""
    command = [sys.executable, "-X", "dev", "-c", CALLS, str(build_plugin(FUNCTIONS)), when]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_all_names_are_listed() -> None:
    """Those that are imported at their first use, too: for completion in notebooks."""
    assert set(arroyo_udf_plugin.__all__) <= set(dir(arroyo_udf_plugin))


@pytest.mark.parametrize("room", ["author", "build", "host", "plugin"])
def test_the_toolkit_needs_cffi_pyarrow_and_packaging_alone(room: str) -> None:
    """Whatever loads functions need not have what pipelines and clusters need. uvloop is used if it is there."""
    known = {*sys.stdlib_module_names, "arroyo_udf_plugin", "cffi", "packaging", "pyarrow", "uvloop"}
    known |= {"_interpreters", "_xxsubinterpreters"}
    imported: set[str] = set()
    for file in Path(arroyo_udf_plugin.__file__).with_name(room).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported.update(name.name.partition(".")[0] for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
                imported.add(node.module.partition(".")[0])
    assert imported - known == set()
    assert imported & known


@pytest.mark.parametrize("old", ["connectors", "pipeline"])
def test_an_old_place_says_where_its_names_are(old: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=rf"arroyo_udf_plugin\.{old} is arroyo_udf_plugin\.engine\.{old}$"):
        importlib.import_module(f"arroyo_udf_plugin.{old}")
