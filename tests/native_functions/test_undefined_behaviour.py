"""Native functions do nothing that C leaves undefined, whatever the rows are: UBSan's checks, which end the process."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from random_functions import Program
from test_dates_of_rows import SOURCE as TIMES
from test_formats_of_texts import FLOATS, INTS, TEXTS, source

pytestmark = pytest.mark.once  # C is the same for each Python
HERE = Path(__file__).parent
SOURCES = {
    **{f"random_{seed}": Program(random.Random(seed)).source(20) for seed in (100, 101)},
    "floats": source("float", FLOATS),
    "integers": source("int", INTS),
    "texts": source("str", TEXTS),
    "times": TIMES,
    "corpus": (HERE / "corpus.py").read_text(),
}
HEAD = """
import random, sys
import pyarrow as pa
sys.path.insert(0, sys.argv[1])
from random_functions import rows
from arroyo_udf_plugin import build, load
from arroyo_udf_plugin.build import python

python._NATIVE_FLAGS += ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")
choices = random.Random(1)
n_rows = 0
"""
CHECKED = """
for name, function in load(build(sys.argv[2])).functions.items():
    if not function.native:
        continue
    for extreme in (0.5, 0.05) * 40:
        function.outcomes(*(rows(field, 64, choices, extreme) for field in function.arguments))
    n_rows += function.native_rows().rows
print(n_rows)
"""
PASSES = """
from fused_programs import calm, program
functions = calm(load(build(sys.argv[2])).functions.values(), choices)
for count in (1, 64, 512, 700) * 25:
    some = program(functions, choices, 3)
    columns = some.rows(count + 5, choices, choices.choice([0.0, 0.1]))
    n_rows += some.check([column.slice(5, count) for column in columns], choices)[1]
print(n_rows)
"""


@pytest.mark.parametrize("name", SOURCES)
def test_nothing_is_undefined(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.py"
    file.write_text(SOURCES[name])
    assert rows_of(HEAD + CHECKED, file) >= 7 * 80 * 64


def test_nothing_is_undefined_in_a_pass(tmp_path: Path) -> None:
    file = tmp_path / "passes.py"
    file.write_text(SOURCES["random_100"])
    assert rows_of(HEAD + PASSES, file) >= 2000


def rows_of(program: str, file: Path) -> int:
    """How many rows it has tried with these functions."""
    command = [sys.executable, "-c", program, str(HERE), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return int(done.stdout)


def test_what_is_undefined_ends_the_process(tmp_path: Path) -> None:
    """The check of the checks: a flag that tells the compiler to look for a sum beyond int64."""
    file = tmp_path / "overflows.c"
    file.write_text(
        "#include <stdint.h>\n#include <stdlib.h>\n"
        "int main(int n, char **words) {\n"
        "  volatile int64_t most = INT64_MAX;\n  return (int)(most + atoll(words[n - 1]));\n}\n"
    )
    command = [
        "cc",
        "-fsanitize=undefined",
        "-fsanitize-undefined-trap-on-error",
        str(file),
        "-o",
        str(tmp_path / "it"),
    ]
    subprocess.run(command, check=True)
    assert subprocess.run([str(tmp_path / "it"), "1"], check=False).returncode < 0
