"""Judges a run of cargo-mutants: python scripts/mutants.py MUTANTS.OUT SURVIVORS.md

At least 95 % of the viable mutants must be caught. The list of survivors must explain each of the others, in a line
with the mutant's function and change, without line numbers, between backquotes.
"""

import re
import sys
from pathlib import Path

ENOUGH = 0.95


def main(results: Path, survivors: Path) -> int:
    def read(name: str) -> list[str]:
        return (results / name).read_text().splitlines()

    caught = len(read("caught.txt")) + len(read("timeout.txt"))
    missed = read("missed.txt")
    explained = set(re.findall(r"`([^`]+)`", survivors.read_text()))
    unexplained = [mutant for mutant in missed if re.sub(r"^\S+: ", "", mutant) not in explained]
    share = caught / max(1, caught + len(missed))
    print(f"mutants: {caught} of {caught + len(missed)} viable ones caught ({share:.1%}), {len(missed)} missed")
    for mutant in unexplained:
        print(f"not explained in {survivors}: {mutant}")
    return int(share < ENOUGH or bool(unexplained))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
