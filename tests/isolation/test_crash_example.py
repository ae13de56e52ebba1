"""examples/crash: a function that dereferences NULL for one row in a thousand costs those rows only."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import load


@pytest.mark.parametrize("suffix", [".c", ".py"])
def test_a_null_pointer_for_one_row_in_a_thousand_costs_that_row(
    build_plugin: Callable[..., Path], examples: Path, suffix: str
) -> None:
    with load(build_plugin(examples / "crash" / f"udf{suffix}"), isolation="process") as plugin:
        outcomes = plugin.functions["doubled"].outcomes(pa.array(range(4_000), pa.int64()))
    crashed = [500, 1_500, 2_500, 3_500]
    assert outcomes.field("value").to_pylist() == [None if x in crashed else 2 * x for x in range(4_000)]
    errors = outcomes.field("error").to_pylist()
    assert [row for row, text in enumerate(errors) if text] == crashed
    assert all("was killed by signal 11 (SIGSEGV) during this call" in errors[row] for row in crashed)
