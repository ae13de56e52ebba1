"""The types of text columns, by their first rows: what all cells say, and nothing that one of them would lose by.

Numbers with leading zeros or a plus are codes, and stay text; so do those with digits that a float would lose. In
newline JSON, only strings are text, and can be dates and times.
"""

from __future__ import annotations

import decimal
import re

import pyarrow as pa

from .cells import CellType, decoded, parse

_CODE = re.compile(r"-?0[0-9]+([.,][0-9]*)?|\+[0-9.,].*", re.ASCII | re.DOTALL)
_BOOL = re.compile(r"(?i:true|false)")
_INT = re.compile(r"-?[0-9]+", re.ASCII)
_FLOAT = re.compile(r"-?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]{1,4})?", re.ASCII)
_HAS_TIME = re.compile(r"[0-9]:[0-9]", re.ASCII)
_NUMBERS = [(_BOOL, pa.bool_()), (_INT, pa.int64()), (_FLOAT, pa.float64())]
_TIMES = [pa.timestamp("us"), pa.timestamp("us", "UTC")]


def type_of(cells: pa.Array) -> pa.DataType | None:
    """The type that all cells have; None: they are text."""
    texts = decoded(cells).drop_null().unique().to_pylist()
    if not texts or not isinstance(cells.type, CellType):
        return None
    if cells.type.dialect is not None:
        if any(map(_CODE.fullmatch, texts)):
            return None
        for pattern, type_ in _NUMBERS:
            if all(map(pattern.fullmatch, texts)) and _are(cells, type_):
                return None if type_ == pa.float64() and not all(map(_is_float, texts)) else type_
    if not any(map(_HAS_TIME.search, texts)) and _are(cells, pa.date32()):
        return pa.date32()
    return next((type_ for type_ in _TIMES if _are(cells, type_)), None)


def _is_float(number: str) -> bool:
    """Whether a float has all its digits."""
    number = number.replace(",", ".")
    return decimal.Decimal(repr(float(number))) == decimal.Decimal(number)


def _are(cells: pa.Array, type_: pa.DataType) -> bool:
    return not parse(cells, pa.field("", type_)).refused
