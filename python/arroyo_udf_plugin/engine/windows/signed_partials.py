"""Aggregates that can be put together from parts of rows that come and go, exactly: what has gone is taken off.

avg(x) FILTER (WHERE ok)   parts   sum and count of x, of the rows that have come, less those of the rows that have gone
                           result  the first by the second, if that is not 0

sum and avg of integers and sum of decimals, count, bool_and and bool_or have such parts. The sums of floats have none,
because (a + b) - b is not always a, and neither has min: what is the least one without that which has gone?
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from ..datafusion.native_calls import is_distinct_or_ordered
from ..datafusion.tokens import quoted, tokens
from .partials import Part, Parted, has_more, type_of
from .updating_rows import SIGN

_SIGN = quoted(SIGN.name)
_MERGE = "sum({0})"
SIGNED_COUNT = Parted([Part(f"sum({_SIGN})", _MERGE)], "coalesce({0}, 0)")
"""How many rows are there."""


def signed_parts(text: str, schema: pa.Schema, table: str, functions: Collection[str] = ()) -> Parted | None:
    """An aggregate's text in parts. None: it cannot be. schema, table: of the rows. functions: of plugins."""
    all_tokens = tokens(text)
    if len(all_tokens) < 4 or all_tokens[1].text != "(" or (all_tokens[0].name or "").lower() in functions:
        return None
    end = next((place for place, token in enumerate(all_tokens) if token.text == ")"), 0)
    inner, rest = all_tokens[2:end], all_tokens[end + 1 :]
    if is_distinct_or_ordered(inner) or (rest and (rest[0].word != "filter" or has_more(rest))):
        return None
    name, filter_ = all_tokens[0].word, f" {text[rest[0].start :]}" if rest else ""
    argument = text[inner[0].start : inner[-1].end] if inner else ""
    if name == "count" and (argument == "*" or [token.kind for token in inner] == ["number"]):
        return Parted([Part(f"sum({_SIGN}){filter_}", _MERGE)], SIGNED_COUNT.result)
    type_ = type_of(inner, schema, table)
    if type_ is None:
        return None
    count = Part(f"sum(CASE WHEN {argument} IS NOT NULL THEN {_SIGN} END){filter_}", _MERGE)
    if name == "count":
        return Parted([count], SIGNED_COUNT.result)
    if name in ("bool_and", "bool_or") and pa.types.is_boolean(type_):
        are_false, are_true = (
            Part(f"sum(CASE WHEN {condition} {argument} THEN {_SIGN} END){filter_}", _MERGE)
            for condition in ("NOT", "")
        )
        first, other = ("{0} > 0 THEN FALSE", "{1} > 0 THEN TRUE")
        order = (first, other) if name == "bool_and" else (other, first)
        return Parted([are_false, are_true], f"CASE WHEN {order[0]} WHEN {order[1]} END")
    if name not in ("sum", "avg") or not _is_exact(type_, name):
        return None
    is_sum = name == "sum"
    wide = "Int64" if is_sum and pa.types.is_signed_integer(type_) else "Decimal128(38, 0)"
    number = argument if pa.types.is_decimal(type_) else f"arrow_cast({argument}, '{wide}')"
    sum_ = Part(f"sum(CASE WHEN {_SIGN} < 0 THEN -{number} ELSE {number} END){filter_}", _MERGE)
    if is_sum:
        return Parted([sum_, count], "CASE WHEN {1} > 0 THEN {0} END")
    return Parted([sum_, count], "CASE WHEN {1} > 0 THEN arrow_cast({0}, 'Float64') / {1} END")


def _is_exact(type_: pa.DataType, name: str) -> bool:
    return bool(pa.types.is_integer(type_) or (name == "sum" and pa.types.is_decimal128(type_)))
