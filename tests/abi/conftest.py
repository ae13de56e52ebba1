"""Shared by the tests of the boundary: compilers, the example plugins of each language, the example hosts, and a plugin
opened with nothing but cffi and pyarrow, so that tests see every field that crosses."""

import functools
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin._cdef import ffi
from arroyo_udf_plugin.build import build, c
from arroyo_udf_plugin.build.cache import PluginIdentity, Resolution

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INCLUDE = ROOT / "native" / "include"
EXAMPLES = ROOT / "examples"
LANGUAGES = {"c": ".c", "python": ".py", "rust": ".rs"}
CC = shlex.split(os.environ.get("CC", "")) or ["cc"]
CXX = shlex.split(os.environ.get("CXX", "")) or ["c++"]

CompileC = Callable[..., Path]


class RawPlugin:
    """A plugin's table, called as by a native host, without the checks of `arroyo_udf_plugin.host`."""

    def __init__(self, path: Path) -> None:
        self._library = ffi.dlopen(str(path), ffi.RTLD_NOW | ffi.RTLD_LOCAL | ffi.RTLD_NODELETE)
        self.table = ffi.addressof(self._library.arroyo_udf_plugin)
        self.descriptor = self.table.describe()
        self.functions = [self.descriptor.functions[i] for i in range(self.descriptor.n_functions)]
        self.numbers = {self.text(function.name): i for i, function in enumerate(self.functions)}

    @staticmethod
    def text(pointer: object) -> str:
        return ffi.string(pointer).decode()

    def call(self, slot: str, *arguments: object) -> tuple[int, str]:
        """Returns status and error text, and releases the error."""
        error = ffi.new("arroyo_udf_error *", {"size": ffi.sizeof("arroyo_udf_error")})
        status = getattr(self.table, slot)(*arguments, error)
        text = self.text(error.text) if error.text else ""
        if error.release:
            error.release(error)
        return status, text

    def run(self, function: str, batch: pa.StructArray) -> pa.StructArray:
        arguments, results = ffi.new("struct ArrowArray *"), ffi.new("struct ArrowArray *")
        schema = ffi.new("struct ArrowSchema **")
        batch._export_to_c(int(ffi.cast("uintptr_t", arguments)))
        status, text = self.call("run", self.numbers[function], arguments, ffi.NULL, results, schema)
        assert status == 0, text
        assert not arguments.release, "OK moves the arguments"
        return pa.Array._import_from_c(int(ffi.cast("uintptr_t", results)), self.type(schema[0]))

    @staticmethod
    def type(schema: object) -> pa.DataType:
        """A constant schema as pyarrow's type. It gets a copy, because it releases what it imports."""
        kept = []
        copy = _copy(schema, kept)
        imported = pa.DataType._import_from_c(int(ffi.cast("uintptr_t", copy)))
        assert not schema.release, "a constant has no release"
        return imported


def _copy(schema: object, kept: list[object]) -> object:
    copy = ffi.new("struct ArrowSchema *", schema[0])
    copy.release = _forget
    children = ffi.new("struct ArrowSchema *[]", [_copy(schema.children[i], kept) for i in range(copy.n_children)])
    copy.children = children
    kept += [copy, children]
    return copy


@ffi.callback("void(struct ArrowSchema *)")
def _forget(schema: object) -> None:
    schema.release = ffi.NULL


@pytest.fixture(scope="session")
def examples() -> Path:
    return EXAMPLES


@pytest.fixture(scope="session")
def open_plugin() -> Callable[[Path], RawPlugin]:
    return RawPlugin


@pytest.fixture(scope="session")
def c_plugin(tmp_path_factory: pytest.TempPathFactory) -> CompileC:
    """Builds a C plugin from text or a path, like `build` but without the cache."""

    def compile(source: str | Path, name: str = "udf") -> Path:
        folder = tmp_path_factory.mktemp("c_plugin")
        if isinstance(source, str):
            (folder / f"{name}.c").write_text(source)
            source = folder / f"{name}.c"
        c.compile(source, folder / f"{name}.so", PluginIdentity(name, "0123456789abcdef", "1.2.3"), Resolution())
        return folder / f"{name}.so"

    return compile


@pytest.fixture(scope="session")
def plain_cc(tmp_path_factory: pytest.TempPathFactory) -> CompileC:
    """Compiles a text or a path, as C++ if `cpp`, with no flags except those given; returns the output's path."""

    def compile(source: str | Path, *flags: str, cpp: bool = False, libraries: Sequence[str] = ()) -> Path:
        folder = tmp_path_factory.mktemp("plain_cc")
        if isinstance(source, str):
            (folder / "source.c").write_text(source)
            source = folder / "source.c"
        compiler = [*CXX, "-x", "c++"] if cpp else CC
        command = [*compiler, *flags, f"-I{INCLUDE}", str(source), "-o", str(folder / "out"), *libraries]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return folder / "out"

    return compile


@pytest.fixture(scope="session")
def c_host(plain_cc: CompileC) -> Path:
    return plain_cc(EXAMPLES / "host" / "c" / "host.c", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-ldl")


@pytest.fixture(scope="session")
def rust_host() -> Path:
    cargo = shutil.which("cargo")
    assert cargo, "cargo is missing: https://rustup.rs"
    target = ROOT / "build" / "example_host"
    manifest = EXAMPLES / "host" / "rust" / "Cargo.toml"
    command = [cargo, "build", "--quiet", "--locked", "--manifest-path", str(manifest), "--target-dir", str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target / "debug" / "arroyo-udf-example-host"


@pytest.fixture(scope="session")
def cpp_host(plain_cc: CompileC) -> Path:
    warnings = ("-Wall", "-Wextra", "-Wpedantic", "-Wno-missing-field-initializers", "-Werror")
    return plain_cc(EXAMPLES / "host" / "cpp" / "host.cpp", "-std=c++17", *warnings, "-g", cpp=True, libraries=["-ldl"])


@pytest.fixture(scope="session", params=["c", "cpp", "rust"])
def host(request: pytest.FixtureRequest) -> Path:
    path: Path = request.getfixturevalue(f"{request.param}_host")
    return path


@pytest.fixture(scope="session", params=list(LANGUAGES))
def flights(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The flights example in one language: (language, shared library)."""
    folder = tmp_path_factory.mktemp("flights")
    return request.param, build(EXAMPLES / "flights" / f"udf{LANGUAGES[request.param]}", folder / "udf.so")


@pytest.fixture(scope="session")
def bare() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a program with an empty environment, but for the variables that are named."""

    def run(*command: object, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        words = [str(word) for word in command]
        return subprocess.run(words, env=variables, cwd=cwd, capture_output=True, text=True, timeout=120)

    return run


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Builds a source of this folder once; sources of several languages may have one stem."""
    folder = tmp_path_factory.mktemp("built")
    return functools.cache(lambda name: build(HERE / name, folder / f"{name}.so"))
