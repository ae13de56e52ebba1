"""Random functions and rows: compiled to C they give what Python gives."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from comparing import Pair
from random_functions import Program, rows

FUNCTIONS = 20
BATCHES = 80  # of 64 rows: so few that rows which are deferred are never most of many
EXTREME = (0.5, 0.05)  # the share of extremes in every other batch


@pytest.mark.parametrize("seed", range(10))
def test_random_functions(seed: int, tmp_path: Path) -> None:
    pair = Pair(tmp_path, Program(random.Random(seed)).source(FUNCTIONS))
    choices = random.Random(seed)
    n_rows = n_deferred = 0
    for name, function in pair.native.items():
        assert function.native, function.not_native
        for number in range(BATCHES):
            extreme = EXTREME[number % 2]
            columns = [rows(field, 64, choices, extreme) for field in function.arguments]
            n_deferred += pair.check(name, *columns)
            n_rows += 64
        whole = [rows(field, 5000, choices, 0.05) for field in function.arguments]
        pair.check(name, *[pa.concat_arrays([column, column]).slice(77, 5000) for column in whole])
    assert 0.1 < n_deferred / n_rows < 0.9, "rows must try both ways"
