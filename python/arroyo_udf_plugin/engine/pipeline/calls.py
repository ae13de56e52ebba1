"""Calls as a person writes them: NAME = FUNCTION(COLUMN, ...).

    mph(miles, minutes)      speed = mph("miles, as flown", minutes)      mph

Columns are separated by commas; a name with a comma or a quote is in double quotes, and "" in these is one quote.
Without columns, they are those named like the parameters.

An argument may also be a constant: 3, -2.5, 1e6, 'text' (with '' for one quote), true, false or null. A column with
such a name is in double quotes. In a pipeline `if COLUMN` may follow: rows are called for which it is true.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..operators.calls import ConstantArgument

_QUOTED = r'"((?:[^"]|"")*)"'
_COLUMN = re.compile(rf'\s*(?:{_QUOTED}|([^",]+?))\s*(?:,|$)')
_ARGUMENT = re.compile(rf"""\s*(?:{_QUOTED}|'((?:[^']|'')*)'|([^"',]+?))\s*(?:,|$)""")
_CALL = re.compile(rf'\s*(?:(?:{_QUOTED}|([^"=(]+?))\s*=\s*)?([^\W\d]\w*)\s*(?:\((.*)\)\s*)?', re.DOTALL)
_CONDITION = re.compile(rf'\)\s*if\s+(?:{_QUOTED}|([^\s"()]+))\s*$')
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_WORDS = {"true": True, "false": False, "null": None}


class WrittenCall(NamedTuple):
    """A call as it is written. name, columns: None: as the function and its parameters are named.

    condition: the column that must be true.
    """

    function: str
    columns: tuple[str | ConstantArgument, ...] | None
    name: str | None
    condition: str | None = None


def call_written(text: str, conditions: bool = False) -> WrittenCall:
    """conditions: there may be one. Raises ValueError."""
    condition = None
    if conditions and (match := _CONDITION.search(text)):
        text, condition = text[: match.start() + 1], _name(match[1], match[2])
    match = _CALL.fullmatch(text)
    if match is None:
        raise ValueError("write FUNCTION, FUNCTION(COLUMN, ...) or NAME = FUNCTION(COLUMN, ...)")
    quoted, plain, function, inner = match.groups()
    return WrittenCall(function, None if inner is None else _arguments(inner), _name(quoted, plain), condition)


def columns_written(text: str) -> tuple[str, ...]:
    """Columns' names, separated by commas. Raises ValueError."""
    matches = _separated(
        text, _COLUMN, "separate columns by commas; a name with a comma or a quote is in double quotes"
    )
    return tuple(_name(*match.groups()) for match in matches)


def _arguments(text: str) -> tuple[str | ConstantArgument, ...]:
    from ..operators.calls import ConstantArgument

    arguments: list[str | ConstantArgument] = []
    wanted = (
        "separate columns and constants by commas; a name with a comma or a quote is in double quotes, a text in "
        "single quotes"
    )
    for match in _separated(text, _ARGUMENT, wanted):
        quoted, constant, plain = match.groups()
        if constant is not None:
            arguments.append(ConstantArgument(constant.replace("''", "'")))
        elif plain in _WORDS:
            arguments.append(ConstantArgument(_WORDS[plain]))
        elif plain is not None and (number := _NUMBER.fullmatch(plain)):
            arguments.append(ConstantArgument(float(plain) if number[1] or number[2] else int(plain)))
        else:
            arguments.append(_name(quoted, plain))
    return tuple(arguments)


def _separated(text: str, pattern: re.Pattern[str], wanted: str) -> list[re.Match[str]]:
    matches: list[re.Match[str]] = []
    start = 0
    while text.strip() and (not matches or start < len(text) or text[start - 1] == ","):
        match = pattern.match(text, start)
        if match is None:
            raise ValueError(wanted)
        matches.append(match)
        start = match.end()
    return matches


def _name(quoted: str | None, plain: str) -> str:
    return plain if quoted is None else quoted.replace('""', '"')
