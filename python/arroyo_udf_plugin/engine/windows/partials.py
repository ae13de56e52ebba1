"""Aggregates that can be put together from parts of the rows: count, sum, min, max, avg of numbers, bits, bools, and
those of plugins.

avg(x) FILTER (WHERE ok)   parts   sum(arrow_cast(x, 'Float64')) FILTER (WHERE ok), count(x) FILTER (WHERE ok)
                           merged  sum(part 1), sum(part 2)
                           result  sum(part 1) / sum(part 2)
mean(x), of a plugin       parts   "mean update"(x)
                           merged  "mean merge"(part)
                           result  "mean finish"("mean merge"(part))

NaN is above all other numbers: min(x) is NaN if there is nothing else, max(x) if there is one. So DataFusion has it
without GROUP BY; with keys its answer depends on the order of rows, so min and max of floats are written otherwise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

import pyarrow as pa

from ..datafusion.aggregates import finish_name, merge_name, update_name
from ..datafusion.native_calls import closing, is_distinct_or_ordered
from ..datafusion.tokens import Token, quoted, tokens


@dataclasses.dataclass(frozen=True)
class Part:
    """text: of the rows. merge: the aggregate that puts parts together, {0} for them."""

    text: str
    merge: str


@dataclasses.dataclass(frozen=True)
class Parted:
    """An aggregate in parts. result: of merged ones, {0} for the first, and so on."""

    parts: Sequence[Part]
    result: str


COUNT = Parted([Part("count(*)", "sum({0})")], "coalesce({0}, 0)")
_MERGED_BY_ITSELF = {"sum", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor"}
_KNOWN = {"count", "avg"} | _MERGED_BY_ITSELF
_NAN = {pa.float32(): "Float32", pa.float64(): "Float64"}


def parted(text: str, schema: pa.Schema, table: str, functions: Collection[str] = ()) -> Parted | None:
    """An aggregate's text in parts. None: it cannot be. schema, table: of the rows. functions: of plugins."""
    all_tokens = tokens(text)
    if len(all_tokens) < 4 or all_tokens[1].text != "(":
        return None
    if (all_tokens[0].name or "").lower() in functions:
        return _of_plugin(text, all_tokens)
    if (name := all_tokens[0].word) not in _KNOWN:
        return None
    end = next((place for place, token in enumerate(all_tokens) if token.text == ")"), 0)
    inner, rest = all_tokens[2:end], all_tokens[end + 1 :]
    if rest and (rest[0].word != "filter" or has_more(rest)):
        return None
    filter_ = text[rest[0].start :] if rest else ""
    argument = text[inner[0].start : inner[-1].end] if inner else ""
    if name == "count" and (argument == "*" or [token.kind for token in inner] == ["number"]):
        return Parted([Part(f"count(*) {filter_}", "sum({0})")], COUNT.result)
    type_ = type_of(inner, schema, table)
    if type_ is None:
        return None
    count = Part(f"count({argument}) {filter_}", "sum({0})")
    is_number = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    if name == "count":
        return Parted([count], COUNT.result)
    if name == "avg" and is_number:
        number = argument if type_ == pa.float64() else f"arrow_cast({argument}, 'Float64')"
        return Parted([Part(f"sum({number}) {filter_}", "sum({0})"), count], "{0} / {1}")
    if name == "avg" or (name == "sum" and not (is_number or pa.types.is_decimal(type_))):
        return None
    whole = _of_floats(name, type_) if name in ("min", "max") and type_ in _NAN else f"{name}({{0}}){{filter}}"
    return Parted([Part(whole.format(argument, filter=f" {filter_}"), whole.replace("{filter}", ""))], "{0}")


def _of_plugin(text: str, part: Sequence[Token]) -> Parted | None:
    """part: of a call of a plugin's aggregate, which may be more than that."""
    end = closing(part, 1)
    rest = part[end + 1 :]
    if is_distinct_or_ordered(part[2:end]) or (rest and (rest[0].word != "filter" or has_more(rest))):
        return None
    name = (part[0].name or "").lower()
    update, merge = quoted(update_name(name)), quoted(merge_name(name))
    called = Part(f"{update}{text[part[1].start :]}", f"{merge}({{0}})")
    return Parted([called], f"{quoted(finish_name(name))}({{0}})")


def _of_floats(name: str, type_: pa.DataType) -> str:
    """min or max: of {0}, with {filter}."""
    if name == "min":
        return "coalesce(min(CASE WHEN NOT isnan({0}) THEN {0} END){filter}, max({0}){filter})"
    nan = f"arrow_cast('NaN', '{_NAN[type_]}')"
    return f"CASE WHEN bool_or(isnan({{0}})){{filter}} THEN {nan} ELSE max({{0}}){{filter}} END"


def without_order(text: str, schema: pa.Schema, table: str, functions: Collection[str] = ()) -> str:
    """An aggregate's text, so that it answers the same whatever the order of rows, if this takes other words."""
    aggregate = parted(text, schema, table, functions)
    if aggregate is None or (word := tokens(text)[0].word) not in ("min", "max") or word in functions:
        return text
    return aggregate.parts[0].text


def has_more(rest: Sequence[Token]) -> bool:
    """Whether something stands behind FILTER (...)."""
    depth = 0
    for place, token in enumerate(rest):
        depth += (token.text == "(") - (token.text == ")")
        if place and not depth:
            return place + 1 < len(rest)
    return True


def type_of(argument: Sequence[Token], schema: pa.Schema, table: str) -> pa.DataType | None:
    """Of a column, if an argument is one and nothing more."""
    names = [token.name for token in argument]
    if len(argument) == 3 and argument[1].text == "." and names[0] == table:
        names = names[2:]
    if len(names) != 1 or names[0] not in schema.names:
        return None
    return schema.field(names[0]).type


def column(number: int) -> str:
    """The name of a part, in SQL."""
    return quoted(part_name(number))


def part_name(number: int) -> str:
    return f"__p{number}"
