"""Builds the sdist and, from the sdist, a wheel for each Python that runs here; then tests each of them elsewhere.

    package.py            Python 3.11, 3.12, 3.13, and 3.14 if it runs here; remarks which versions do not run
    package.py 3.12 ...   these versions; each must run

Results: build/dist. A wheel must
  - have the tag manylinux_2_28: it is linked with zig against that glibc, and maturin checks the symbols;
  - contain the package, its licences and the SDK's crates with theirs; no tests, and no folder of this machine;
  - work where there is nothing else: in a new environment outside the checkout, with an empty cargo home and without a
    network, it builds and runs sync and async functions in Python, Rust and C, and gives the expected values.

Crates are compiled once for all wheels, and for all plugins: each plugin differs by a comment, so each is built.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator

import environment
from environment import ROOT, fail, say

OPTIONAL = ("3.14",)  # not tested by `make test`
TOOLS = ("build>=1.2,<2", "twine>=6,<7", "ziglang==0.17.1")
GLIBC = "manylinux_2_28"
LARGEST = 15_000_000  # bytes of a wheel
STARTED = time.monotonic()
WORK = ROOT / "build" / "package"
DIST = ROOT / "build" / "dist"
PAGE = ("arroyo_udf_plugin/_page/index.html", "arroyo_udf_plugin/_page/licenses.txt")

TRIPS = "trip,miles,minutes\nhome,12,25\nwork,30,NA\nsea,140,120\n"
SPEEDS = "trip,miles,minutes,speed\nhome,12,25,28.8\nwork,30,NA,\nsea,140,120,70\n"
NUMBERS = "x\n1\nNA\n20\n"
TWICE = "x,twice\n1,2\nNA,\n20,40\n"
TWICE_IN = {
    "py": """\
import asyncio

from arroyo_udf_plugin import udf


@udf
async def twice(x: int) -> int:
    await asyncio.sleep(0.001)
    return 2 * x
""",
    "rs": """\
use arroyo_udf_plugin::tokio::time::{sleep, Duration};
use arroyo_udf_plugin::udf;

#[udf]
async fn twice(x: i64) -> i64 {
    sleep(Duration::from_millis(1)).await;
    2 * x
}
""",
    "c": """\
#include "arroyo_udf_async.h"

static void twice(const arroyo_udf_call* call, int64_t x) { arroyo_udf_complete_int64(call->token, 2 * x); }
ARROYO_UDF_ASYNC_FUNCTION(twice, (.cancel = NULL), int64, (int64, x));
ARROYO_UDF_PLUGIN(twice);
""",
}
COMMENT = {"py": "#", "rs": "//", "c": "//"}
WITH_CRATES = """\
/*
[dependencies]
regex = "1"
*/
pub fn f(x: i64) -> i64 { x }
"""
# Prints the files of the package that Python imports.
FILES = """
import sys, arroyo_udf_plugin, arroyo_udf_plugin._native
for name in ("arroyo_udf_plugin", "arroyo_udf_plugin._native", "arroyo_udf_plugin.build"):
    print(sys.modules[name].__file__)
"""


def step(text: str) -> None:
    say(f"package [{time.monotonic() - STARTED:4.0f} s] {text}")


def run(*command: str | pathlib.Path, folder: pathlib.Path = ROOT, variables: dict[str, str] | None = None) -> str:
    """Runs a command and returns what it printed. Stops with all its output if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=folder,
        env=os.environ if variables is None else variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        fail(f"in {folder}: {' '.join(words)}\n{done.stdout}")
    return done.stdout


# ---- Build -----------------------------------------------------------------------------------------------------------


def make_tools() -> pathlib.Path:
    """The environment with the tools that build and check distributions."""
    venv, stamp = WORK / "tools", WORK / "tools" / ".tools"
    if not stamp.exists() or stamp.read_text() != " ".join(TOOLS):
        step(f"installing {', '.join(TOOLS)}")
        base = environment.find(environment.default_version()) or fail("no Python from 3.11 on runs here")
        run(base["python"], "-m", "venv", "--clear", venv)
        run(venv / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *TOOLS)
        stamp.write_text(" ".join(TOOLS))
    return venv / "bin"


def build_page() -> None:
    step("building the web page")
    run(sys.executable, ROOT / "web" / "tools" / "page.py", "build")


def build_sdist(tools: pathlib.Path) -> pathlib.Path:
    step("building the sdist")
    shutil.rmtree(DIST, ignore_errors=True)
    run(tools / "python", "-m", "build", "--sdist", "--outdir", DIST, ROOT)
    return next(DIST.glob("*.tar.gz"))


def unpack(sdist: pathlib.Path) -> pathlib.Path:
    """The folder that wheels are built from. It is the same in each run, so that cargo compiles less; and all files are
    new, because cargo finds changed files by their time."""
    source = WORK / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    run("tar", "-xzmf", sdist, "-C", source, "--strip-components=1")
    return source


def build_wheel(tools: pathlib.Path, source: pathlib.Path, python: environment.Python) -> pathlib.Path:
    step(f"building the wheel for Python {python['version']} from the sdist")
    zig = next(tools.parent.glob("lib/python*/site-packages/ziglang/zig"))
    # zig would link an unwinder of its own, statically. Threads that end inside Python are unwound by the system's.
    unwinder = run(*os.environ.get("CC", "cc").split(), "-print-file-name=libgcc_s.so.1").strip()
    variables = {
        **os.environ,
        "MATURIN_PEP517_ARGS": f"--compatibility {GLIBC} --zig --strip",
        "CARGO_ZIGBUILD_ZIG_PATH": str(zig),
        "CARGO_TARGET_DIR": str(WORK / "target"),
        "RUSTFLAGS": f"-Clink-arg={unwinder}",
    }
    before = set(DIST.iterdir())
    pip = (tools / "pip", "--disable-pip-version-check", "--python", python["python"])
    run(*pip, "wheel", "--no-deps", "--wheel-dir", DIST, source, variables=variables)
    (wheel,) = set(DIST.iterdir()) - before
    return wheel


# ---- Check the contents ----------------------------------------------------------------------------------------------


def check_sdist(sdist: pathlib.Path) -> None:
    with tarfile.open(sdist) as archive:
        files = {name.partition("/")[2]: content for name, content in members(archive)}
    check_paths(sdist.name, files)
    wanted = {"setup.py", "LICENSE-MIT", "LICENSE-APACHE", "native/Cargo.lock", "tests/conftest.py", "README.md"}
    wanted |= {"web/package-lock.json", "web/src/main.tsx", *(f"python/{file}" for file in PAGE)}
    if strange := [file for file in files if "/node_modules/" in file]:
        fail(f"{sdist.name} contains {strange[0]}")
    if lacking := wanted - files.keys():
        fail(f"{sdist.name} lacks {', '.join(sorted(lacking))}")


def check_wheel(wheel: pathlib.Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    name = wheel.name
    if f"-{GLIBC}_" not in name:
        fail(f"{name} is not tagged {GLIBC}")
    if wheel.stat().st_size > LARGEST:
        fail(f"{name} has {wheel.stat().st_size} bytes, more than {LARGEST}")
    check_paths(name, files)
    own = re.compile(r"arroyo_udf_plugin/|arroyo_udf_plugin-[^/]+\.dist-info/")
    tests = re.compile(r"(^|/)(tests?|test_[^/]*|conftest\.py|__pycache__)(/|$)")
    strange = [file for file in files if not own.match(file) or tests.search(file)]
    if strange:
        fail(f"{name} contains {', '.join(strange)}")
    vendored = "arroyo_udf_plugin/_sdk/vendor.tar.gz"
    wanted = {vendored, "arroyo_udf_plugin/py.typed", "arroyo_udf_plugin/_cdef.py", *PAGE}
    wanted |= {f"arroyo_udf_plugin/include/{header.name}" for header in (ROOT / "native" / "include").iterdir()}
    present = {re.sub(r"^[^/]*\.dist-info", "dist-info", file) for file in files}
    if lacking := (wanted | {f"dist-info/licenses/{file.name}" for file in ROOT.glob("LICENSE-*")}) - present:
        fail(f"{name} lacks {', '.join(sorted(lacking))}")
    check_crates(name, files[vendored])
    step(f"{name}: {len(files)} files, {wheel.stat().st_size / 1e6:.1f} MB")


def check_crates(name: str, vendored: bytes) -> None:
    """Each crate whose code is in the archive has its licence there."""
    with tempfile.TemporaryFile() as file:
        file.write(vendored)
        file.seek(0)
        with tarfile.open(fileobj=file) as archive:
            files = dict(members(archive))
    check_paths(f"{name}, vendor.tar.gz", files)
    code = {file.partition("/")[0] for file, content in files.items() if file.endswith(".rs") and content}
    licensed = {file.partition("/")[0] for file in files if re.match("[^/]+/(LICENSE|COPYING)", file)}
    if code - licensed:
        fail(f"{name}: no licence with {', '.join(sorted(code - licensed))}")


def check_paths(name: str, files: dict[str, bytes]) -> None:
    """No file may contain a folder of this machine."""
    machine = {str(folder) for folder in (ROOT, pathlib.Path.home(), os.environ.get("CARGO_HOME", ROOT))}
    for file, content in files.items():
        for folder in machine:
            if f"{folder}/".encode() in content:
                fail(f"{name}: {file} contains the path {folder}")


def members(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    for entry in archive:
        content = archive.extractfile(entry) if entry.isfile() else None
        if content is not None:
            yield entry.name, content.read()


# ---- Test in another place -------------------------------------------------------------------------------------------


def test_wheel(wheel: pathlib.Path, python: environment.Python, cache: pathlib.Path) -> None:
    """Installs a wheel in a new environment, and uses it as README's first hour does, and for async functions."""
    version = python["version"]
    with tempfile.TemporaryDirectory(prefix="arroyo-udf-") as temporary:
        folder = pathlib.Path(temporary).resolve()
        step(f"Python {version}: installing the wheel in {folder}")
        venv = folder / "venv"
        run(python["python"], "-m", "venv", venv)
        run(venv / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
        user = folder / "user"
        user.mkdir()
        variables = {
            "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "XDG_CACHE_HOME": str(cache),
            "CARGO_HOME": str(cache / "no-crates"),  # one for all: it is in the compiler's flags
            "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(pathlib.Path.home() / ".rustup")),
        }
        isolated = without_network()

        def call(*command: str) -> str:
            return run(*isolated, *command, folder=user, variables=variables)

        for file in call(str(venv / "bin" / "python"), "-c", FILES).split():
            if not file.startswith(f"{venv}{os.sep}"):
                fail(f"Python {version} imports {file}, which is not of the installed wheel")
        (user / "trips.csv").write_text(TRIPS)
        (user / "numbers.csv").write_text(NUMBERS)
        for language, suffix in (("python", "py"), ("rust", "rs"), ("c", "c")):
            step(f"Python {version}: functions in {language}")
            call("arroyo-udf", "new", "mine_" + suffix, "--lang", language)
            mine, twice = user / f"mine_{suffix}" / f"mine_{suffix}.{suffix}", user / f"twice_{suffix}.{suffix}"
            twice.write_text(TWICE_IN[suffix])
            for source in (mine, twice):
                source.write_text(f"{source.read_text()}{COMMENT[suffix]} {version}\n")
                call("arroyo-udf", "build", "--offline", str(source))
            mine, twice = (source.with_name(f"lib{source.stem}.so") for source in (mine, twice))
            check_function(call, mine, language, "mph", "sync")
            check_function(call, twice, language, "twice", "async")
            check_run(call, mine, user / "trips.csv", ("miles,minutes", "speed"), SPEEDS)
            check_run(call, twice, user / "numbers.csv", ("x", "twice"), TWICE)
        step(f"Python {version}: a crate that is not there")
        (user / "crates.rs").write_text(WITH_CRATES)
        build = [*isolated, "arroyo-udf", "build", "--offline", "crates.rs"]
        refused = subprocess.run(build, cwd=user, env=variables, capture_output=True, text=True)
        if refused.returncode == 0 or "build once without it; never downloaded: regex" not in refused.stderr:
            fail(f"a build with a crate that is not there: {refused.returncode} {refused.stderr}")


def check_function(call: Callable[..., str], library: pathlib.Path, language: str, name: str, kind: str) -> None:
    plugin = json.loads(call("arroyo-udf", "inspect", str(library), "--json"))
    (function,) = plugin["functions"]
    found = (plugin["language"], function["name"], function["kind"])
    if found != (language, name, kind):
        fail(f"inspect {library}: {found} instead of {(language, name, kind)}")


def check_run(
    call: Callable[..., str], library: pathlib.Path, rows: pathlib.Path, names: tuple[str, str], expected: str
) -> None:
    """names: of the columns that are arguments, and of the result's."""
    out = library.with_suffix(".csv")
    arguments, result = names
    call("arroyo-udf", "run", str(library), str(rows), "--args", arguments, "--name", result, "--out", str(out))
    if out.read_text() != expected:
        fail(f"{library} over {rows}:\n{out.read_text()}\ninstead of\n{expected}")


def without_network() -> list[str]:
    """The command that runs another without a network; empty where the system does not let users do so."""
    command = ["unshare", "--net", "--map-root-user"]
    try:
        allowed = subprocess.run([*command, "true"], capture_output=True).returncode == 0
    except OSError:
        allowed = False
    if not allowed:
        step("unshare does not work here: the network is there, and only --offline keeps cargo from using it")
    return command if allowed else []


def main() -> None:
    pythons = []
    for version in sys.argv[1:] or (*environment.VERSIONS, *OPTIONAL):
        python = environment.find(version)
        if python and not environment.lacks(python):
            pythons.append(python)
            continue
        why = "; ".join(environment.lacks(python)) if python else f"no Python {version} runs here"
        if sys.argv[1:]:
            fail(why)
        say(f"{version} NOT BUILT: {why}")
    environment.check_tools()
    WORK.mkdir(parents=True, exist_ok=True)
    tools = make_tools()
    build_page()
    sdist = build_sdist(tools)
    source = unpack(sdist)
    wheels = [build_wheel(tools, source, python) for python in pythons]
    run(tools / "twine", "check", "--strict", sdist, *wheels)
    check_sdist(sdist)
    for wheel in wheels:
        check_wheel(wheel)
    with tempfile.TemporaryDirectory(prefix="arroyo-udf-cache-") as cache:
        for wheel, python in zip(wheels, pythons, strict=True):
            test_wheel(wheel, python, pathlib.Path(cache).resolve())
    step(f"{sdist.name} and {len(wheels)} wheels in {DIST.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
