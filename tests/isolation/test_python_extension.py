"""What a plugin in Python tells the toolkit of itself: `extension("python/1")`, see arroyo_udf_c_python.h."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import cffi

from arroyo_udf_plugin import load
from arroyo_udf_plugin.version import PLUGIN_FORMAT

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """
from arroyo_udf_plugin import udf

@udf
def plus(x: int) -> int:
    return x + 1
"""
ffi = cffi.FFI()
_header = (ROOT / "native" / "include" / "arroyo_udf_c_python.h").read_text()
_told = "typedef struct arroyo_udf_c_python"
ffi.cdef(_header[_header.index(_told) : _header.index("} arroyo_udf_c_python;")] + "} arroyo_udf_c_python;")


def test_a_python_plugin_has_its_parcel_at_hand_without_a_start(build_plugin: Callable[..., Path]) -> None:
    path = build_plugin(SOURCE)
    told = ffi.cast("arroyo_udf_c_python *", _extension(path, b"python/1"))
    assert told.size == ffi.sizeof("arroyo_udf_c_python")
    assert told.format == PLUGIN_FORMAT
    assert json.loads(ffi.string(told.parcel))["source"] == SOURCE
    assert ffi.string(told.library).decode() == os.path.realpath(path)
    assert ffi.string(told.python).decode() == sys.executable


def test_other_plugins_and_other_versions_have_none(build_plugin: Callable[..., Path], examples: Path) -> None:
    assert _extension(build_plugin(SOURCE), b"python/2") == 0
    assert _extension(build_plugin(examples / "by_hand" / "udf.c"), b"python/1") == 0


def _extension(path: Path, name: bytes) -> int:
    return int(cffi.FFI().cast("uintptr_t", load(path)._table.extension(name)))
