"""Runs the fuzzers of tests/fuzz, one after the other.

    fuzz.py SECONDS [SEED]    for each of PROGRAMS; a seed makes its inputs the same again

Exits with 1 if one of them found something. What a broken one prints is a line for its file in tests/fuzz/corpus.
"""

import subprocess
import sys
from pathlib import Path

FUZZERS = Path(__file__).resolve().parent.parent / "tests" / "fuzz"
PROGRAMS = ("broken_arrays.py", "broken_plugins.py", "mutated_functions.py")


def main() -> int:
    commands = [[sys.executable, str(FUZZERS / program), *sys.argv[1:]] for program in PROGRAMS]
    return max(subprocess.run(command).returncode for command in commands)


if __name__ == "__main__":
    sys.exit(main())
