"""The build backend of this project (PEP 517): maturin, with generated files staged first.

It is the build's only code generator, and does the work of a build.rs:
  _cdef.py  the marked span of arroyo_udf.h, compiled by cffi, so that no C is parsed at import
  include/  the headers, for C authors and for the template of Python plugins
  _sdk/     the SDK: the Rust crates with which an installed package builds Rust plugins and async C plugins, and the
            entry points of engines, in C, which are compiled into every library
  _sdk/vendor.tar.gz   in wheels only: the crates from crates.io that the SDK needs, so that such builds need no network
All are ignored by git and named in pyproject.toml's `include`. By hand, without the archive: `python setup.py stage`.
"""

import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

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
# What a plugin with async functions depends on; `build/rust.py` writes a manifest like it.
PLUGIN_MANIFEST = """\
[package]
name = "plugin"
version = "0.0.0"
edition = "2021"

[lib]
path = "plugin.rs"

[dependencies]
arroyo-udf-plugin = {{ path = {runtime}, features = ["tokio"] }}

[workspace]
"""
# Folders of a crate that its library is not compiled from.
NOT_COMPILED = {"benches", "ci", "examples", "tests"}
# The functions that the Python host gives to `arm` and `set_log`; implemented in native/python/src/host.rs.
HOST_HELPERS = """
void arroyo_udf_host_log(void* data, uint32_t level, const char* text);
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
    shutil.copytree(NATIVE / "engines", PACKAGE / "_sdk" / "engines")
    shutil.copyfile(NATIVE / "Cargo.lock", PACKAGE / "_sdk" / "Cargo.lock")  # the versions that plugins get


def vendor() -> None:
    """Packs the crates that the SDK's Cargo.lock names into one archive, a cargo "directory source". Downloads them if
    no earlier build has. The same lock gives the same bytes.

    Crates for other platforms remain as manifests, because cargo resolves dependencies for all platforms at once.
    """
    sdk = PACKAGE / "_sdk"
    with tempfile.TemporaryDirectory() as temporary:
        project = pathlib.Path(temporary)
        (project / "Cargo.toml").write_text(PLUGIN_MANIFEST.format(runtime=json.dumps(str(sdk / "runtime"))))
        (project / "plugin.rs").touch()
        shutil.copyfile(sdk / "Cargo.lock", project / "Cargo.lock")
        run("cargo", "vendor", "--quiet", "--versioned-dirs", "vendor", folder=project)
        system = run("rustc", "-vV", folder=project).split("host: ")[1].split()[0]
        answer = run("cargo", "metadata", "--format-version=1", f"--filter-platform={system}", folder=project)
        metadata = json.loads(answer)
        compiled = {node["id"] for node in metadata["resolve"]["nodes"]}
        used = {f"{p['name']}-{p['version']}" for p in metadata["packages"] if p["id"] in compiled}
        for crate in (project / "vendor").iterdir():
            reduce_crate(crate, crate.name in used)
        with (
            open(sdk / "vendor.tar.gz", "wb") as file,
            gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed,
            tarfile.TarFile("", "w", packed) as archive,
        ):
            for path in sorted(path for path in (project / "vendor").rglob("*") if path.is_file()):
                entry = tarfile.TarInfo(str(path.relative_to(project / "vendor")))
                entry.size = path.stat().st_size
                with path.open("rb") as content:
                    archive.addfile(entry, content)


def reduce_crate(crate: pathlib.Path, used: bool) -> None:
    """Removes what no build of a plugin reads, from the folder and from cargo's list of its files."""
    if not used:
        for path in crate.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name not in ("Cargo.toml", ".cargo-checksum.json"):
                path.unlink()
        (crate / "src").mkdir()
        (crate / "src" / "lib.rs").touch()
    for name in NOT_COMPILED:
        shutil.rmtree(crate / name, ignore_errors=True)
    checksums = json.loads((crate / ".cargo-checksum.json").read_text())
    files = {name: digest for name, digest in checksums["files"].items() if (crate / name).exists()}
    (crate / ".cargo-checksum.json").write_text(json.dumps({**checksums, "files": files if used else {}}))


def run(*command: str, folder: pathlib.Path) -> str:
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def leave_out_paths() -> None:
    """Makes rustc write no folder of this machine into the extension module."""
    home = os.environ.get("CARGO_HOME") or str(pathlib.Path.home() / ".cargo")
    given = os.environ.get("CARGO_ENCODED_RUSTFLAGS")
    flags = os.environ.get("RUSTFLAGS", "").split() if given is None else given.split("\x1f")
    flags += [f"--remap-path-prefix={NATIVE}=native", f"--remap-path-prefix={home}=cargo"]
    os.environ["CARGO_ENCODED_RUSTFLAGS"] = "\x1f".join(flag for flag in flags if flag)


def build_wheel(
    wheel_directory: str, config_settings: dict | None = None, metadata_directory: str | None = None
) -> str:
    stage()
    vendor()
    leave_out_paths()
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
