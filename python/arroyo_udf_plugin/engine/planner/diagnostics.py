"""What DataFusion says about a query, with the place in the user's text and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import pyarrow as pa

from ...errors import nearest
from ..datafusion.feed import context
from ..datafusion.native_calls import WrongCall, check
from ..datafusion.query import NOT_BY_ROW, WrongQuery, expected
from ..datafusion.tokens import quoted
from .expressions import Constant, Expression, Operation
from .functions import all_names
from .selects import QueryText, WholeText
from .text import Text, Tokens, Unending, Wrong

_PLACE = re.compile(r" at Line: (\d+), Column: (\d+)")
_PARSER = re.compile(r'ParserError\("(.*)"\)', re.DOTALL)
_COLUMN = re.compile(r"there is no column (\S+)")
_FUNCTION = re.compile(r"Invalid function '([^']+)'")
_OPERATOR = re.compile(r"Operator (\S+) is not yet supported")
WINDOWS = ("tumble", "hop", "session")
_ORDERED = "write first_value(a ORDER BY b), or with DESC the last one"
_INSTEAD = {
    **dict.fromkeys(("max_by", "min_by", "arg_max", "arg_min"), _ORDERED),
    "age": "write a - b",
    "explode": "write unnest(list)",
    "flatten": "write unnest(list)",
    "posexplode": "write unnest(list)",
    "sign": "write signum(x)",
    "date_add": "write time + interval '1 day'",
    "date_sub": "write time - interval '1 day'",
    "datediff": "write a - b",
    "format": "write a || b",
    "metadata": "write a column of CREATE TABLE with METADATA FROM",
    "mod": "write a % b",
    "mode": "group by the value, count, and write row_number() OVER (PARTITION BY window ORDER BY ...)",
    "regexp_substr": "write regexp_match(text, pattern)[1]",
    "row_time": "write the column of the event time",
}
_TYPE = re.compile(r"there is no type (\w[\w ]*)")
_FIELD = re.compile(r"there is no field (\w+)")
_TYPES = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "FLOAT", "REAL", "DOUBLE", "DECIMAL(10, 2)"),
    *("TEXT", "VARCHAR", "STRING", "BYTEA", "DATE", "TIME", "TIMESTAMP", "INTERVAL"),
)
AGGREGATE = "an aggregate needs a GROUP BY with a window: write GROUP BY tumble(interval '1 minute')"
_AGGREGATE = re.compile(r"must appear in the GROUP BY|must be in GROUP BY")


_COMPARISONS = {"=", "==", "<", ">", "<=", ">=", "<>", "!=", "between", "in"}


def check_meaning(text: Text, expressions: Iterable[Expression]) -> None:
    """Raises Wrong for what DataFusion takes, and answers in another way than SQL does."""
    for node in (node for expression in expressions for node in expression.nodes()):
        if not isinstance(node, Operation):
            continue
        if node.operators[0] == "similar":
            reason = (
                "SIMILAR TO would be a regular expression of any part of the text: write LIKE, or ~ '^(San|Santa) '"
            )
            raise Wrong(reason, _of_name(node.part, "similar", node.start))
        interval = next((child for child in node.children if _has_days(text, child)), None)
        if node.operators[0] in _COMPARISONS and interval is not None:
            reason = "days and hours of intervals are compared one by one, so that 31 hours are less than 1 day: "
            other = f"a > b + {text.cut(interval.part)}"
            raise Wrong(f"{reason}write {other} instead of a - b > {text.cut(interval.part)}", interval.start)


def _has_days(text: Text, expression: Expression) -> bool:
    """Whether it is an interval with days or months."""
    if not isinstance(expression, Constant) or expression.part[0].word != "interval":
        return False
    try:
        months, days, _ = context().sql(f"SELECT {text.cut(expression.part)}").to_arrow_table().column(0)[0].as_py()
    except Exception:
        return False  # DataFusion says what is wrong
    return bool(months or days)


def check_syntax(text: Text, part: Tokens) -> None:
    """Raises Wrong for a query that DataFusion cannot read, at the place that it names."""
    end = part[-1].end
    try:
        check(text.text, part)
    except WrongCall as error:
        raise Wrong(str(error), error.at) from None
    try:
        context().sql(_readable(text.text, part))
    except Exception as error:
        if (match := _PARSER.search(str(error))) is None:
            return  # what names mean is not known to it yet
        place = _PLACE.search(match[1])
        reason = expected(_PLACE.sub("", match[1]))
        if "MATCH_CONDITION" in reason:
            reason = "ASOF JOIN is not supported: write JOIN ... ON a.window = b.window"
        raise Wrong(reason, _offset(text.text, place) if place else end) from None


def _readable(text: str, part: Tokens) -> str:
    """A query at its place, with an operator for ?, which DataFusion cannot read."""
    written, done = [re.sub(r"[^\n]", " ", text[: part[0].start])], part[0].start
    for token in part:
        if token.text == "?":
            written += [text[done : token.start], "="]
            done = token.end
    return "".join([*written, text[done : part[-1].end]])


def _offset(text: str, place: re.Match[str]) -> int:
    lines = text.splitlines(keepends=True)[: int(place[1]) - 1]
    return sum(map(len, lines)) + int(place[2]) - 1


def wrong_query(
    error: WrongQuery,
    part: Tokens,
    query: QueryText | WholeText,
    schema: pa.Schema,
    functions: Collection[str],
    ungrouped: Collection[str] = (),
) -> Wrong:
    """part: of the text in which it is wrong; empty: not known. ungrouped: columns that rows have, and groups not."""
    text = str(error)
    at = part[0].start if part else query.at
    if match := _COLUMN.search(text):
        name = match[1].replace('"', "").split(".")
        if name[-1] in ungrouped:
            hint = f"{name[-1]} is neither in GROUP BY nor in an aggregate: write it there, or max({name[-1]})"
            return Wrong(hint, _of_name(part, name[-1], at))
        known = [column for column in schema.names if not column.startswith("__")]
        offset = _of_name(part, name[-1], at)
        if any(token.start == offset and token.kind == "quoted" for token in part):
            hint = f"{nearest(name[-1], known)}, or '{name[-1]}' in single quotes for a text"
        else:
            hint = nearest_column(name[-1], known)
        return Wrong(f"there is no column {'.'.join(name)}: {hint}", offset)
    if match := _FUNCTION.search(text) or _OPERATOR.search(text):
        return Wrong(_unknown(match[1], functions), _of_name(part, match[1], at))
    if match := _TYPE.fullmatch(text):
        instead = nearest(match[1].upper(), _TYPES)
        return Wrong(f"{text}: {instead}", _of_name(part, match[1].split(" ")[0], at))
    if match := _FIELD.fullmatch(text):
        fields = {inner.name for type_ in schema.types if pa.types.is_struct(type_) for inner in type_}
        return Wrong(f"{text}: {nearest(match[1], sorted(fields))}", _of_name(part, match[1], at))
    if _AGGREGATE.search(text):
        return Unending(AGGREGATE, at)
    return (Unending if text == NOT_BY_ROW else Wrong)(" ".join(text.split()), at)


def nearest_column(name: str, known: Collection[str]) -> str:
    """As `nearest`; a name that SQL would read in lower case has its quotes."""
    same = [column for column in known if column.lower() == name.lower() and column != name]
    return f"write {quoted(same[0])}, with these quotes" if same else nearest(name, known)


def _unknown(name: str, functions: Collection[str]) -> str:
    """name: of a function, or an operator."""
    if name in WINDOWS:
        return f"{name}(...) is a window, for GROUP BY: write it there, too"
    if name in _INSTEAD:
        return f"there is no function {name}: {_INSTEAD[name]}"
    instead = nearest(name, [*functions, *all_names()])
    if not instead.startswith("write"):
        instead = "write one of DataFusion's, or name the UDF's file with --udf"
    return f"there is no function {name}: {instead}"


def _of_name(part: Tokens, name: str, otherwise: int) -> int:
    """Where a name, or an operator, is in a range."""
    starts = [token.start for token in part if (token.name or token.text).lower() == name.lower()]
    return starts[0] if starts else otherwise
