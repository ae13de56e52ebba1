"""What may change between a checkpoint and a resume: what has no effect on rows that are kept, or shown already.

Policies, how often files are looked for, how a broker is reached, how large parts are, the layout and comments of
queries. Expressions and conditions of queries, and aggregates, may say something else if the columns of all sinks keep
their names and types, and nothing is made of them that windows keep. Whether open windows have what they need then,
their states say: `Operator.restore`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

from ..datafusion.tokens import without_layout
from .dependents import kept_by_windows

_FREE = re.compile(
    r"(source|sources\..+\.source)\.(bad_records|watch|settles|missing|bootstrap_servers|group_id|(auth|client_configs)(\..+)?)"
    r"|(sinks\[\d+\]|dead letters)\.(part_rows|part_bytes|part_seconds|part_wait|row_group_rows|create)"
)
_SQL = re.compile(r"operators\[\d+\](\[\d+\]|\.calls\[\d+\]|\.on)")
_EXPRESSION = re.compile(r"operators\[(\d+)\]\.(?P<kind>where|(select|aggregates)\..+)", re.DOTALL)
_COLUMNS = re.compile(r"columns(\[\d+\].*)?", re.DOTALL)
_CELL = "extension<arroyo_udf.cell<CellType>>"
"""What 9677121 called the type `text` of a source's column."""
_CALL = re.compile(r"(operators\[\d+\])(\[\d+\])")


def changes(was: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """What must not change and has: the innermost keys of fingerprints whose values differ, with both values."""
    changed = [change for change in _changes(was, now, "") if not _may_change(*change)]
    rewritten = [change for change in changed if _is_rewritten(now, *change)]
    knows_columns = was.get("columns") is not None  # earlier programs did not note them
    for change in changed:
        key, former, new = change
        is_free = (knows_columns and change in rewritten) or (_COLUMNS.fullmatch(key) is not None and not rewritten)
        if not is_free and (knows_columns or not _COLUMNS.fullmatch(key)):
            yield _CALL.sub(r"\1.calls\2", key), former, new


def _may_change(key: str, was: Any, now: Any) -> bool:
    if key == "dead letters" and was is None:
        return True  # no row has gone there
    is_sql = (_SQL.fullmatch(key) or _EXPRESSION.fullmatch(key)) and isinstance(was, str) and isinstance(now, str)
    return _FREE.fullmatch(key) is not None or bool(is_sql and without_layout(was) == without_layout(now))


def _is_rewritten(fingerprint: Any, key: str, was: Any, now: Any) -> bool:
    """Whether an expression says something else; a condition may also come or go."""
    match = _EXPRESSION.fullmatch(key)
    if match is None or NONE in (was, now):
        return False
    operator = fingerprint["operators"][int(match[1])]
    if isinstance(operator, dict) and operator.get("type") == "lookup":
        return False  # rows that wait are looked up by its condition
    is_condition = match["kind"] == "where"
    if match["kind"].startswith("select.") and kept_by_windows(
        fingerprint["operators"], int(match[1]), match["kind"].removeprefix("select.")
    ):
        return False
    return all(isinstance(value, str) or (is_condition and value is None) for value in (was, now))


def _changes(was: Any, now: Any, key: str) -> Iterator[tuple[str, Any, Any]]:
    """The innermost keys whose values differ, with both values; `NONE`: a list has no such item. A key that is missing
    is null: earlier versions had fewer."""
    if isinstance(was, dict) and isinstance(now, dict):
        if was.get("type") != now.get("type"):  # nothing else of two kinds can be compared
            yield f"{key}.type", was.get("type"), now.get("type")
            return
        for name in sorted(was.keys() | now.keys()):
            yield from _changes(was.get(name), now.get(name), f"{key}.{name}" if key else name)
    elif isinstance(was, list) and isinstance(now, list):
        for place, (former, other) in enumerate(itertools.zip_longest(was, now, fillvalue=NONE)):
            yield from _changes(former, other, f"{key}[{place}]")
    elif was != now and (was, now) != (_CELL, "text"):
        yield key, was, now


NONE = object()
"""There is no such item."""
