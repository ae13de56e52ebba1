"""What goes to other processes: plugins, functions and decorated functions are pickled by what they came from."""

import copy
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import Function, LoadError, UnsupportedCall, load

BuildPlugin = Callable[..., Path]

SOURCE = """
from arroyo_udf_plugin import udf

@udf(native=False)
def double(x: int) -> int:
    return 2 * x

@udf
async def later(x: int) -> int:
    return x
"""
OTHER = SOURCE.replace("2 * x", "3 * x")


def test_plugins_and_functions_go_to_other_processes(build_plugin: BuildPlugin) -> None:
    plugin = load(build_plugin(SOURCE, name="pickled"))
    again = pickle.loads(pickle.dumps(plugin))
    assert (again.path, again.hash, list(again.functions)) == (plugin.path, plugin.hash, ["double", "later"])
    double: Function = copy.copy(plugin.functions["double"])
    assert double(pa.array([4])).to_pylist() == [8]
    program = "import pickle, sys; f = pickle.load(sys.stdin.buffer); print(f([1, 2]).to_pylist())"
    for name, answer in (("double", "[2, 4]"), ("later", "[1, 2]")):
        pickled = pickle.dumps(plugin.functions[name])
        assert subprocess.check_output([sys.executable, "-c", program], input=pickled) == f"{answer}\n".encode()


def test_another_plugin_at_the_path_is_refused(build_plugin: BuildPlugin, tmp_path: Path) -> None:
    path = tmp_path / "libpickled.so"
    shutil.copy(build_plugin(SOURCE, name="pickled"), path)
    pickled = pickle.dumps(load(path).functions["double"])
    path.unlink()
    shutil.copy(build_plugin(OTHER, name="pickled"), path)
    with pytest.raises(LoadError, match=r"libpickled\.so: is not the plugin that was pickled"):
        pickle.loads(pickled)


def test_what_stays_in_its_process_says_so(build_plugin: BuildPlugin) -> None:
    path = build_plugin(SOURCE, name="pickled")
    with load(path).functions["later"].start() as runtime:
        with pytest.raises(UnsupportedCall, match=r"pickled\.later: a started function stays in its process"):
            pickle.dumps(runtime)
        runtime.stop("cancel")
    with load(path, isolation="process") as plugin:
        for one in (plugin, plugin.functions["double"]):
            with pytest.raises(UnsupportedCall, match="a plugin with workers stays in its process"):
                pickle.dumps(one)


def test_decorated_functions_are_pickled_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "shares.py").write_text(SOURCE)
    program = """
import multiprocessing
import shares

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(shares.double, [1, 2]))
"""
    output = subprocess.check_output([sys.executable, "-c", program], cwd=tmp_path, text=True)
    assert output == "[2, 4]\n"
