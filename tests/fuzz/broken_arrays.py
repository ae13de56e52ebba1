"""A program: hosts that break arrays, options and handles in random ways, over plugins in C, Rust and Python.

    python tests/fuzz/broken_arrays.py SECONDS [SEED]

The hosts are child processes (plugin_host.py); their functions are in functions.c, .rs and .py. What must not happen: a
crash, a hang, a wrong answer, a refusal that has touched inputs or outputs, an input that is never released. Prints
each failure with its input; `make test` runs the inputs in corpus/ again. Exits with 1 if there was one.

Left out is what no plugin can see: a buffer that is shorter than its array says.
"""

import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from arroyo_udf_plugin import build

HERE = Path(__file__).resolve().parent
CORPUS = HERE / "corpus" / "broken_arrays.jsonl"
LANGUAGES = ("c", "rs", "py")
PATIENCE = 90  # seconds beyond the given ones, on a slow machine; a hang


def built(language: str, folder: Path) -> Path:
    """The plugin of the functions in that language."""
    source = folder / f"functions.{language}"
    shutil.copy(HERE / source.name, source)
    return build(source, folder / f"{language}.so")


def fuzzed(plugin: Path, folder: Path, seed: int, seconds: float) -> str:
    """What was found in that time; empty if nothing was."""
    latest = folder / "latest.json"
    command = [sys.executable, str(HERE / "plugin_host.py"), str(plugin), "fuzz", str(seed), str(seconds), str(latest)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + PATIENCE)
    except subprocess.TimeoutExpired:
        return f"a hang: {latest.read_text()}"
    if done.returncode == 0:
        return ""
    if done.returncode == 1 and done.stdout:
        return done.stdout
    return f"ended with {done.returncode}: {latest.read_text()}\n{done.stderr[-2000:]}"


def corpus(language: str) -> list[dict[str, Any]]:
    lines = map(json.loads, CORPUS.read_text().splitlines())
    return [line for line in lines if line["language"] == language]


def replayed(plugin: Path, cases: list[dict[str, Any]]) -> list[str]:
    """What each case shows: "passed", or what went wrong. After a crash another process goes on."""
    found: list[str] = []
    while len(found) < len(cases):
        command = [sys.executable, str(HERE / "plugin_host.py"), str(plugin), "replay"]
        lines = "\n".join(json.dumps(case) for case in cases[len(found) :])
        done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=PATIENCE)
        passed = done.stdout.count("passed\n")
        found += ["passed"] * passed
        if len(found) < len(cases):
            found.append(
                f"ended with {done.returncode}: {done.stdout.replace('passed', '').strip()} {done.stderr[-2000:]}"
            )
        elif done.returncode != 0:
            found[-1] = f"at the end: {done.stdout} {done.stderr}"
    return found


def main() -> int:
    seconds = float(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(2**32)
    print(f"broken arrays: from seed {seed}", flush=True)
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        for language in LANGUAGES:
            found = fuzzed(built(language, Path(name)), Path(name), seed, seconds / len(LANGUAGES))
            print(f"broken arrays, {language}: {found or 'nothing found'}", flush=True)
            failed += bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
