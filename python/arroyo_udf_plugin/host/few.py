"""A few values as arrays and scalars of Arrow.

few.numbers(range(3))               0, 1, 2 as uint64
few.number(1, "int64")              a scalar
few.texts(["a", "b"])               as string
few.text("a", pa.large_string())    a scalar
few.null(pa.string())               a scalar

Guarantees: none of these asks for pandas. `pyarrow.array` and `pyarrow.scalar` import it where it is installed, which
costs a process a tenth of a second at its start, and as much again at its end.
"""

from __future__ import annotations

import array
import itertools
from collections.abc import Iterable
from typing import Literal

import pyarrow as pa

Whole = Literal["uint32", "int64", "uint64"]

_CODES: dict[Whole | Literal["float64"], str] = {"uint32": "I", "int64": "q", "uint64": "Q", "float64": "d"}


def numbers(values: Iterable[float], type_: Whole | Literal["float64"] = "uint64") -> pa.Array:
    made = array.array(_CODES[type_], values)
    return pa.Array.from_buffers(pa.type_for_alias(type_), len(made), [None, pa.py_buffer(made)])


def number(value: float, type_: Whole | Literal["float64"] = "uint64") -> pa.Scalar:
    return numbers([value], type_)[0]


def texts(values: Iterable[str], type_: pa.DataType | None = None) -> pa.Array:
    """type_: of text; None: string."""
    encoded = [value.encode() for value in values]
    ends = array.array("q", itertools.accumulate(map(len, encoded), initial=0))
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers).cast(type_ or pa.string())


def text(value: str, type_: pa.DataType | None = None) -> pa.Scalar:
    return texts([value], type_)[0]


def null(type_: pa.DataType) -> pa.Scalar:
    return pa.nulls(1, type_)[0]
