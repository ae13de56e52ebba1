"""F11: in an engine, a native function of a Python source takes no GIL. The part of the library that knows Python, and
without which it cannot take the GIL, stays closed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from callers import CALLERS

from arroyo_udf_plugin import build, load

N_ROWS = 20_000
SOURCE = """
from arroyo_udf_plugin import udf

@udf(native=True)
def {name}(distance: int, air_time: int) -> float:
    return distance * 60.0 / air_time
"""


def parts_with_python() -> int:
    """How many libraries have opened theirs, which is a file in memory."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return len({line.split()[4] for line in lines if "/memfd:arroyo_udf" in line})


@pytest.mark.parametrize("engine", CALLERS)
def test_no_row_of_a_native_function_needs_python(tmp_path: Path, engine: str) -> None:
    name = "mph_in_" + engine.replace("-", "_")
    source = tmp_path / f"{name}.py"
    source.write_text(SOURCE.format(name=name))
    library = build(source)
    counted = load(library).functions[name].native_rows
    n_rows = 100 if engine == "sqlite" else N_ROWS
    distance, air_time = pa.array(range(n_rows)), pa.array([1 + row % 7 for row in range(n_rows)])
    table = pa.table({"a": distance, "b": air_time})
    before = parts_with_python()

    found = CALLERS[engine](library, name, table)
    assert found == [row * 60.0 / (1 + row % 7) for row in range(n_rows)]
    assert counted() == (n_rows, 0)
    assert parts_with_python() == before

    with pytest.raises(Exception, match="float division by zero"):
        CALLERS[engine](library, name, table.slice(1, 1).set_column(1, "b", pa.array([0])))
    assert counted() == (n_rows + 1, 1)
    assert parts_with_python() == before + 1
