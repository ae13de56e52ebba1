"""Runs the fuzzers of tests/fuzz, one after the other.

    fuzz.py SECONDS [SEED]    for each program broken_*.py; a seed makes its inputs the same again

Exits with 1 if one of them found something. What a finding prints is a line for its file in tests/fuzz/corpus.
"""

import subprocess
import sys
from pathlib import Path

FUZZERS = Path(__file__).resolve().parent.parent / "tests" / "fuzz"


def main() -> int:
    commands = [[sys.executable, str(program), *sys.argv[1:]] for program in sorted(FUZZERS.glob("broken_*.py"))]
    return max([subprocess.run(command).returncode for command in commands], default=1)


if __name__ == "__main__":
    sys.exit(main())
