"""Arguments that a function keeps stay what they were. (Those that it lets go may be used again for later rows.)"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin import load

BuildPlugin = Callable[..., Path]

SOURCE = """
import sys
from arroyo_udf_plugin import udf

KEPT = []  # each with another object that has its value

class Names:
    pass

@udf(native=False)
def keep(text: str, number: float, way: int) -> str:
    same = "".join(["", *text])
    if way == 1:
        KEPT.append((text, same))
    elif way == 2:
        KEPT.append((number, -(-number)))
    elif way == 3:
        sys.intern(text)
    elif way == 4:
        setattr(Names, text, number)
        KEPT.append((next(name for name in vars(Names) if name == same), same))
    elif way == 5:  # the hash that it has as a key is its own
        assert {same: number}[text] == number and {text: number}[same] == number
    return text

@udf(native=False)
def changed(row: int) -> int:
    changed = [(kept, same) for kept, same in KEPT if kept != same or hash(kept) != hash(same)]
    KEPT.clear()
    for name in [name for name in vars(Names) if not name.startswith("__")]:
        delattr(Names, name)
    return len(changed)
"""

TEXT = st.text("abcN0", min_size=2, max_size=7) | st.text("abcN0", max_size=40) | st.text(max_size=8)
ROW = st.tuples(TEXT, st.floats(allow_nan=False), st.integers(0, 5))


@pytest.fixture(scope="module")
def functions(build_plugin: BuildPlugin) -> Any:
    return load(build_plugin(SOURCE, name="kept_arguments")).functions


@settings(max_examples=200, deadline=None)
@given(st.lists(ROW, max_size=50))
def test_kept_arguments_do_not_change(functions: Any, rows: list[tuple[str, float, int]]) -> None:
    texts, numbers, ways = (
        pa.array([row[i] for row in rows], type_) for i, type_ in enumerate((pa.utf8(), pa.float64(), pa.int64()))
    )
    assert functions["keep"](texts, numbers, ways).to_pylist() == [text for text, _, _ in rows]
    assert functions["changed"](pa.array([0])).to_pylist() == [0]
