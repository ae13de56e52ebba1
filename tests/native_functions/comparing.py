"""The same source built twice, native and not, and the comparison of their results to the last bit."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_udf_plugin import Function, build, load

_FILE = r"<(\w+)\.py \w+>"  # in tracebacks, with the hash of the build


class Pair:
    """A source with native="auto" or True, and the same with native=False."""

    def __init__(self, folder: Path, source: str) -> None:
        plain = re.sub(r'native=("auto"|True)', "native=False", source)
        assert plain != source
        self.native = self._loaded(folder / "native", source)
        self.python = self._loaded(folder / "python", plain)

    def _loaded(self, folder: Path, source: str) -> dict[str, Function]:
        folder.mkdir(parents=True)
        (folder / "prog.py").write_text(source)
        return dict(load(build(folder / "prog.py")).functions)

    def check(self, name: str, *columns: pa.Array) -> int:
        """Calls both, and compares: values by their bits, errors by their texts. How many rows were deferred."""
        native = self.native[name]
        before = native.native_rows()
        assert before is not None, f"{name}: {native.not_native}"
        expected = _comparable(self.python[name].outcomes(*columns))
        found = _comparable(native.outcomes(*columns))
        for (what, one), (_, other) in zip(found.items(), expected.items(), strict=True):
            if not one.equals(other):
                row = next(i for i in range(len(one)) if one[i] != other[i])
                is_, should_be = ([str(of[key][row]) for key in ("value", "error")] for of in (found, expected))
                given = [column[row].as_py() for column in columns]
                raise AssertionError(f"{name}, row {row} of {given}: {what} is {is_}, not {should_be}")
        after = native.native_rows()
        assert after is not None
        assert after.rows - before.rows == len(columns[0])
        return after.deferred - before.deferred


def _comparable(results: pa.StructArray) -> dict[str, pa.Array]:
    """Floats as their bits, because NaN is not equal to itself, and 0.0 is equal to -0.0. All NaN as one: which sign
    Python gives to `x + -x` of a NaN changes once the function has run a few times."""
    outcomes = pa.RecordBatch.from_struct_array(results)
    value = outcomes.column("value")
    bits = {pa.float64(): pa.int64(), pa.float32(): pa.int32()}
    if value.type in bits:
        value = pc.if_else(pc.is_nan(value), pa.scalar(math.nan, value.type), value).view(bits[value.type])
    if "error" not in outcomes.schema.names:
        none = pa.nulls(len(value), pa.utf8())
        return {"value": value, "outcome": none, "error": none}
    error = pc.replace_substring_regex(outcomes.column("error"), _FILE, r"<\1.py>")
    return {"value": value, "outcome": outcomes.column("outcome"), "error": error}
