"""The boundary under valgrind: hosts in C over plugins in C, Rust and Python.

    python scripts/memory_check.py          with the Python of an environment in which the package is installed
    python scripts/memory_check.py quick    one thread, and not the Arroyo engine's interface: two minutes

Prints one line per run. A clean run has no invalid read or write, no use of uninitialised memory, no wrong free and no
block that is definitely lost. Otherwise shows valgrind's report, and exits with status 1.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from arroyo_udf_plugin import build

ROOT = Path(__file__).resolve().parents[1]
ABI = ROOT / "tests" / "abi"
# Valgrind runs one thread at a time; without fair scheduling, a thread that polls would starve the others.
VALGRIND = "valgrind --quiet --fair-sched=yes --error-exitcode=99 --leak-check=full --show-leak-kinds=definite"
VALGRIND += " --errors-for-leak-kinds=definite --num-callers=30"
# Python's threads live at the exit; what valgrind would have the C library free then, one of them may still use.
VALGRIND += f" --run-libc-freeres=no --suppressions={shlex.quote(str(Path(__file__).with_name('valgrind.supp')))}"
PYTHON, RUST = "from arroyo_udf_plugin import udf\n@udf\n", "use arroyo_udf_plugin::udf;\n#[udf]\n"
ARROYO = {
    ".py": (
        PYTHON + "async def looks_up(x: int) -> int | None:\n    return x or None\n",
        PYTHON + "def adds(x: int) -> int:\n    return x + 1\n",
    ),
    ".rs": (
        RUST + "async fn looks_up(x: i64) -> Option<i64> {\n    Some(x)\n}\n",
        RUST + "fn adds(x: i64) -> i64 {\n    x + 1\n}\n",
    ),
}


def compiled(source: Path, folder: Path) -> Path:
    program = folder / source.stem
    command = [*shlex.split(os.environ.get("CC", "cc")), "-g", "-O1", f"-I{ROOT / 'native' / 'include'}", str(source)]
    subprocess.run([*command, "-o", str(program), "-ldl", "-pthread"], check=True)
    return program


def arroyo_host() -> Path:
    """The host of the Arroyo engine's interface, built in its cargo workspace."""
    target = ROOT / "build" / "arroyo"
    command = ["cargo", "build", "--quiet", "--release", "--locked", "--bin", "system", "--target-dir", str(target)]
    subprocess.run(command, cwd=ROOT / "tests" / "arroyo", check=True)
    return target / "release" / "system"


def arroyo_runs(folder: Path) -> list[list[object]]:
    """As the Arroyo engine calls functions, row by row."""
    rows, arroyo = ["types=i64", "rows=200", "cap=10"], arroyo_host()
    runs: list[list[object]] = []
    for suffix, (starts, called) in ARROYO.items():
        texts = {"looks_up": starts, "adds": called}
        libraries = {}
        for name, text in texts.items():
            source = folder / f"{name}{suffix}"
            source.write_text(text)
            libraries[name] = build(source, folder / f"{name}{suffix}.so")
        runs += [[arroyo, command, libraries["looks_up"], *rows] for command in ("stream", "unpolled", "abandon")]
        runs += [[arroyo, "call", libraries["adds"], *rows, "batch=7"]]
    return runs


def main(quick: bool) -> int:
    if shutil.which("valgrind") is None:
        print("valgrind is missing: install the package of that name", file=sys.stderr)
        return 1
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        exact, storm = compiled(ABI / "exact.c", folder), compiled(ABI / "storm.c", folder)
        host = compiled(ROOT / "examples" / "host" / "c" / "host.c", folder)
        (folder / "counted.c").write_text(f'#define FIRST_HALF 0\n#include "{ABI / "functions.c"}"\n')
        sources = {".c": folder / "counted.c", ".py": ABI / "counted.py", ".rs": ABI / "counted.rs"}
        counted = {suffix: build(source, folder / f"counted{suffix}.so") for suffix, source in sources.items()}
        runs: list[list[object]] = [[exact, plugin] for plugin in counted.values()]
        runs += [[compiled(ABI / "exact_groups.c", folder), build(ABI / "groups.c", folder / "groups.so")]]
        for suffix in (".c", ".rs"):  # not Python: it imports pyarrow, whose libraries valgrind reports
            flights = build(ROOT / "examples" / "flights" / f"udf{suffix}", folder / f"flights{suffix}.so")
            runs += [[host, flights, function] for function in ("mph", "tail")]
        if not quick:
            runs += [[storm, counted[suffix], 3] for suffix in (".py", ".rs")]
            runs += [[storm, build(ABI / "plus.c", folder / "plus.so"), 3]]
            runs += [[host, build(ROOT / "examples" / "own_thread" / "udf.c", folder / "lines.so"), "lines"]]
            runs += arroyo_runs(folder)
        for run in runs:
            words = [str(word) for word in run]
            done = subprocess.run([*shlex.split(VALGRIND), *words], env={}, capture_output=True, text=True, check=False)
            clean = done.returncode == 0 and "==" not in done.stderr
            print(f"{'clean' if clean else 'NOT CLEAN'}: {' '.join(Path(word).name for word in words)}", flush=True)
            if not clean:
                failed += 1
                print(done.stderr or done.stdout)
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["quick"]):
        sys.exit("usage: memory_check.py [quick]")
    sys.exit(main(quick=sys.argv[1:] == ["quick"]))
