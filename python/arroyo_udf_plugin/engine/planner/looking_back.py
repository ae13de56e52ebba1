"""How many rows before a row a function with OVER needs: a bounded number, or it cannot be answered while rows come.

lag(n, 3) OVER (PARTITION BY k ORDER BY window)                                          3
avg(n) OVER (PARTITION BY k ORDER BY window ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)    2
"""

from __future__ import annotations

from .expressions import CallExpression
from .over import Over
from .text import Tokens, Unending

_FRAME = "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"
_LATER = {"lead": "lag(...)"}
_NUMBERING = {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"}


def rows_before(call: CallExpression, over: Over) -> int:
    """Raises Unending."""
    if call.name in _LATER:
        raise Unending(f"{call.name} looks at rows that are not there yet: write {_LATER[call.name]}", call.start)
    if call.name in _NUMBERING:
        raise Unending(
            f"{call.name} counts all rows of a key: write OVER (PARTITION BY window ...), or a sum with {_FRAME}",
            call.start,
        )
    if call.name == "lag":
        return _lag(call)
    return _frame(call, over.frame)


def _lag(call: CallExpression) -> int:
    if any(token.word == "ignore" for token in call.part):
        raise Unending("lag with IGNORE NULLS may look at any row before: write it without", call.start)
    if len(call.arguments) < 2:
        return 1
    part = call.arguments[1].bare.part
    if len(part) != 1 or not part[0].text.isdigit():
        raise Unending("lag looks back at a number of rows: write a whole number, such as lag(n, 2)", part[0].start)
    return int(part[0].text)


def _frame(call: CallExpression, frame: Tokens) -> int:
    """Of ROWS n PRECEDING, or ROWS BETWEEN n PRECEDING AND what is not behind the row."""
    if not frame:
        raise Unending(f"{call.name} is over all rows before this one: write a frame, such as {_FRAME}", call.start)
    words = [token.word or token.text for token in frame]
    if words[0] != "rows":
        raise Unending(f"a frame has a number of rows here: write {_FRAME}", frame[0].start)
    if words[1:2] == ["between"]:
        middle = words.index("and") if "and" in words else len(words)
        first, last = words[2:middle], words[middle + 1 :]
    else:
        first, last = words[1:], ["current", "row"]
    if last != ["current", "row"] and not (len(last) == 2 and last[0].isdigit() and last[1] == "preceding"):
        raise Unending(f"a frame ends with the row, or before it: write {_FRAME}", frame[0].start)
    if first == ["current", "row"]:
        return 0
    if len(first) != 2 or not first[0].isdigit() or first[1] != "preceding":
        raise Unending(f"a frame begins a number of rows before: write {_FRAME}", frame[0].start)
    return int(first[0])
