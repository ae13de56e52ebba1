"""Which Python a worker is: the one that built the plugin, also if it is of another version than the host's."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import load

SOURCE = """
import sys
from arroyo_udf_plugin import udf

@udf
def version(a: int) -> str:
    return "%d.%d" % sys.version_info[:2]

@udf
async def later(a: int) -> str:
    return "%d.%d" % sys.version_info[:2]

@udf(vectorized=True)
def whole(a: "pa.Int64Array") -> "pa.StringArray":
    return pa.array(["%d.%d" % sys.version_info[:2]] * len(a))

import pyarrow as pa
"""
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
ENVIRONMENTS = Path(__file__).resolve().parents[2] / "build"


def others() -> list[str]:
    """The other versions that `make` has prepared here."""
    found = (path.name.removeprefix("venv-") for path in ENVIRONMENTS.glob("venv-3.*[0-9]") if path.is_dir())
    return sorted(version for version in found if version != HERE)


def test_a_worker_is_the_python_that_built_the_plugin(build_plugin: Callable[..., Path]) -> None:
    with load(build_plugin(SOURCE, name="version"), isolation="process") as plugin:
        for function in plugin.functions.values():
            assert function(pa.array([1])).to_pylist() == [HERE]


@pytest.mark.skipif(not others(), reason="NOT TESTED: there is one Python version in build/")
def test_a_plugin_of_another_python_runs(tmp_path: Path) -> None:
    for version in others():
        source = tmp_path / f"version{version.replace('.', '')}.py"
        source.write_text(SOURCE)
        builder = ENVIRONMENTS / f"venv-{version}" / "bin" / "python"
        build = "import sys; from arroyo_udf_plugin import build; print(build(sys.argv[1]))"
        built = subprocess.run(
            [str(builder), "-c", build, str(source)], capture_output=True, text=True, timeout=300, check=False
        )
        assert built.returncode == 0, built.stderr
        with load(built.stdout.strip(), isolation="process", workers=2) as plugin:
            for function in plugin.functions.values():
                assert function(pa.array([1, 2])).to_pylist() == [version] * 2
