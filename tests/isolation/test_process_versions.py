"""Which Python a worker is."""

import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from arroyo_udf_plugin import load

SOURCE = """
import sys
from arroyo_udf_plugin import udf

@udf
def version(a: int) -> str:
    return "%d.%d" % sys.version_info[:2]
"""
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


def test_a_worker_is_the_python_that_built_the_plugin(build_plugin: Callable[..., Path]) -> None:
    with load(build_plugin(SOURCE, name="version"), isolation="process") as plugin:
        assert plugin.functions["version"](pa.array([1])).to_pylist() == [HERE]
