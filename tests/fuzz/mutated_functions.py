"""A program: compiles mutated functions to C, and compares what they give with what Python gives, by bits and words.

    python tests/fuzz/mutated_functions.py SECONDS [SEED]

A round makes a file of functions from its seed: random ones, or such as people write them (FILES, and sources of
tests/native_functions), with some changes in each function. What can be compiled is called with small batches, in every
other one of which half of the values are extremes, and with a large one. Rounds run in child processes, ten in each.
Prints each difference with the seed of its round, and exits with 1 if there was one, or a crash.
"""

from __future__ import annotations

import ast
import faulthandler
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from arroyo_udf_plugin.errors import BuildError

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "native_functions"))

from comparing import Pair  # noqa: E402
from mutations import mutated  # noqa: E402
from random_functions import ORDINARY, Program, rows  # noqa: E402
from test_corpus import DAYS, FUNDINGS, WORDS  # noqa: E402
from test_dates_of_rows import SOURCE as TIMES  # noqa: E402
from test_formats_of_texts import FLOATS, INTS, TEXTS, source  # noqa: E402

FILES = ("tests/native_functions/corpus.py", "bench/native.py", "examples/flights/udf.py")
WRITTEN = [(ROOT / name).read_text() for name in FILES] + [TIMES]
WRITTEN += [source("float", FLOATS), source("int", INTS), source("str", TEXTS)]
SMALL_BATCHES = 40
LARGE_BATCH = 6000
ROUNDS_OF_A_CHILD = 10
MOST_SECONDS = 300
"""Of a round, which mostly takes five."""


def program(seed: int) -> str:
    """The functions of a round."""
    choices = random.Random(seed)
    if choices.random() < 0.5:
        return mutated(choices, Program(choices).source(20))
    return mutated(choices, choices.choice(WRITTEN))


def texts_for(text: str, choices: random.Random) -> list[str]:
    """Ordinary texts for the functions of a source: made of those in it, and of its tests'."""
    nodes = ast.walk(ast.parse(text))
    words = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    words = [*(word for word in words if len(word) < 20), *ORDINARY, *DAYS, *FUNDINGS, *WORDS]
    return words + ["".join(choices.choices(words, k=choices.randint(2, 3))) for _ in words]


def differences(seed: int, text: str) -> tuple[dict[str, int], list[str]]:
    """What was done for a source, and where native and Python differ."""
    choices = random.Random(seed)
    texts = texts_for(text, choices)
    counted, found = {"functions": 0, "rows": 0, "deferred": 0}, list[str]()
    with tempfile.TemporaryDirectory() as folder:
        try:
            pair = Pair(Path(folder), text)
        except BuildError as error:
            return counted, [f"it cannot be built: {error}"]
        for name, function in pair.native.items():
            if not function.native:
                continue
            counted["functions"] += 1
            for columns in _batches(function.arguments, choices, texts):
                try:
                    counted["deferred"] += pair.check(name, *columns)
                except AssertionError as difference:
                    found.append(str(difference))
                    break
                counted["rows"] += len(columns[0])
    return counted, found


def _batches(arguments: pa.Schema, choices: random.Random, texts: list[str]) -> Iterator[list[pa.Array]]:
    for number in range(SMALL_BATCHES):
        extreme = (0.5, 0.05)[number % 2]
        yield [rows(field, 64, choices, extreme, texts) for field in arguments]
    yield [rows(field, LARGE_BATCH + 77, choices, 0.02, texts).slice(77) for field in arguments]


# ---- Rounds in child processes ---------------------------------------------------------------------------------------


def child(first: int, count: int) -> None:
    """Prints a line for each round that has ended. One that hangs ends the process, and says where."""
    for seed in range(first, first + count):
        faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
        counted, found = differences(seed, program(seed))
        print(json.dumps({"seed": seed, "counted": counted, "found": found}), flush=True)


def rounds(first: int, count: int) -> tuple[dict[str, int], list[str]]:
    """So many rounds: what was done, and what was found."""
    command = [sys.executable, __file__, "child", str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True)
    ended = [json.loads(line) for line in done.stdout.splitlines()]
    found = [f"seed {one['seed']}: {text}" for one in ended for text in one["found"]]
    if done.returncode != 0:
        found.append(f"seed {first + len(ended)}: the process ended with {done.returncode}: {done.stderr[-2000:]}")
    keys = ("functions", "rows", "deferred")
    return {"programs": len(ended), **{key: sum(one["counted"][key] for one in ended) for key in keys}}, found


def main() -> int:
    if sys.argv[1] == "child":
        child(int(sys.argv[2]), int(sys.argv[3]))
        return 0
    seconds = float(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(2**32)
    end, total, found = time.monotonic() + seconds, dict[str, int](), list[str]()
    print(f"mutated functions: from seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as cache:  # what is built here is built once
        os.environ["XDG_CACHE_HOME"] = cache
        while time.monotonic() < end and len(found) < 20:
            counted, some = rounds(seed, ROUNDS_OF_A_CHILD)
            print(*some, sep="\n", end="\n" if some else "", flush=True)
            found += some
            total = {key: total.get(key, 0) + number for key, number in counted.items()}
            seed += ROUNDS_OF_A_CHILD
    print(
        f"mutated functions: {', '.join(f'{number:,} {key}' for key, number in total.items())}, {len(found)} failures"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
