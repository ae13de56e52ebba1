"""The build backend of this project (PEP 517): maturin, with generated files staged first.

It is the build's only code generator, and does what a build.rs would do elsewhere:
  _cdef.py  the marked span of arroyo_udf.h, compiled by cffi, so that no C is parsed at import
  include/  the headers, for C authors and for the Python plugins' template
  _sdk/     the Rust crates of the SDK, so that an installed package builds Rust plugins, and C ones that are async
All three are ignored by git and named in pyproject.toml's `include`. By hand: `python setup.py stage`.
"""

import pathlib
import shutil
import sys

import maturin
from maturin import (
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = pathlib.Path(__file__).resolve().parent
NATIVE = ROOT / "native"
PACKAGE = ROOT / "python" / "arroyo_udf_plugin"
SDK_CRATES = ("abi", "runtime", "macros", "c")
# The function that the Python host gives to `arm`; implemented in native/python/src/host.rs.
HOST_HELPERS = """
void arroyo_udf_host_wake(void* eventfd);
"""


def stage() -> None:
    import cffi

    header = (NATIVE / "include" / "arroyo_udf.h").read_text()
    arrow = header.split("struct ArrowSchema {", 1)[1].split("#endif", 1)[0]
    span = header.split("/* cffi: begin */", 1)[1].split("/* cffi: end */", 1)[0]
    ffi = cffi.FFI()
    ffi.cdef("struct ArrowSchema {" + arrow + span + HOST_HELPERS)
    ffi.set_source("arroyo_udf_plugin._cdef", None)
    ffi.emit_python_code(str(PACKAGE / "_cdef.py"))

    shutil.rmtree(PACKAGE / "include", ignore_errors=True)
    shutil.copytree(NATIVE / "include", PACKAGE / "include")

    shutil.rmtree(PACKAGE / "_sdk", ignore_errors=True)
    for crate in SDK_CRATES:
        shutil.copytree(
            NATIVE / crate, PACKAGE / "_sdk" / crate, ignore=shutil.ignore_patterns("target", "tests", "Cargo.lock")
        )
    shutil.copyfile(NATIVE / "Cargo.lock", PACKAGE / "_sdk" / "Cargo.lock")  # the versions that plugins get


def build_wheel(
    wheel_directory: str, config_settings: dict | None = None, metadata_directory: str | None = None
) -> str:
    stage()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: dict | None = None, metadata_directory: str | None = None
) -> str:
    stage()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory: str, config_settings: dict | None = None) -> str:
    stage()
    return maturin.build_sdist(sdist_directory, config_settings)


if __name__ == "__main__":
    if sys.argv[1:] != ["stage"]:
        sys.exit("usage: setup.py stage   (to install: pip install .)")
    stage()
