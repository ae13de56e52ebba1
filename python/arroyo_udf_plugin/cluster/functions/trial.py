"""A try of a function, as the parent sees it: what its child has told, and what became of the other rows.

Guarantees: if rows were called, each has an outcome, also if one has ended the process, or the time is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import pydantic

from .children import Child, ChildFailed
from .messages import STACK, TRIED, Outcome, TriedFunction, TriedRow, TryEnded, TryRequest

_LATE = 5.0
"""Seconds in which a child ends itself when the time is over. It leaves its stack, which then begins with _IS_OVER."""
_IS_OVER = "Timeout ("
_MOST_OUTPUT = 64 << 10
_MOST_FRAMES = 10
_FRAME = re.compile(r'^  File "<(\S+\.py) \w+>", line (\d+) in (.+)$', re.MULTILINE)
"""A line of a stack that is in the source of a plugin."""

_End = tuple[Outcome, str]


@dataclass
class Trial:
    """name: None: there is no function. function: None: it could not be loaded. errors: of the definition, the
    arguments, or the function's start: no row was called; or of its end.

    rows: by number; of an aggregate, one for all. output: what was printed. crashed: how the function has ended its
    process. micros: of all rows, with the start of the function.
    """

    name: str | None = None
    signature: str = ""
    function: TriedFunction | None = None
    errors: Sequence[str] = ()
    rows: dict[int, TriedRow] = field(default_factory=dict)
    output: str = ""
    crashed: str | None = None
    micros: int = 0


async def attended(child: Child, asked: TryRequest, signature: str) -> Trial:
    """The try that a child makes."""
    trial = Trial(asked.plugin.name, signature)
    began = time.perf_counter()
    try:
        line = await child.answer(asked)
        began = time.perf_counter()
        async with asyncio.timeout(asked.seconds + _LATE):
            while not isinstance(told := TRIED.validate_json(line), TryEnded):
                if isinstance(told, TriedFunction):
                    trial.function = told
                else:
                    trial.rows[told.row] = told
                line = await child.line()
        trial.errors = told.errors
        if trial.rows and trial.errors:
            _end(trial, asked, ("cancelled", f"has not ended: {trial.errors[0]}"))
    except (TimeoutError, ChildFailed) as failed:
        _end_all(trial, asked, failed, _stack(child))
    except pydantic.ValidationError:
        trial.errors = ["it has written to where its outcomes are told"]
    trial.micros = round((time.perf_counter() - began) * 1e6)
    trial.output = child.printed(_MOST_OUTPUT)
    return trial


def _end_all(trial: Trial, asked: TryRequest, failed: TimeoutError | ChildFailed, stack: str) -> None:
    """After a child that has not ended well."""
    if isinstance(failed, TimeoutError) or stack.startswith(_IS_OVER):
        over = f"within {asked.seconds:g} s"
        places = "".join(f"\n  at {frame}" for frame in dict.fromkeys(_frames(stack)[:_MOST_FRAMES]))
        _end(trial, asked, ("timed_out", f"did not end {over}{places}"), ("timed_out", f"did not begin {over}"))
    elif failed.reason:
        crashed = stack.rpartition("Current thread")[2].partition("\n\n")[0]
        trial.crashed = f"{failed.reason} in {next(iter(_frames(crashed)), trial.name)}"
        running = f"it has ended the process: {trial.crashed}"
        _end(trial, asked, ("error", running), ("cancelled", "was not called: a row before it has ended the process"))
    else:
        trial.errors = [str(failed)]


def _end(trial: Trial, asked: TryRequest, running: _End, waiting: _End | None = None) -> None:
    """Gives each row that has not ended an outcome and its error. waiting: of rows that were not called yet."""
    kind = "" if trial.function is None else trial.function.function
    left = [row for row in range(1 if kind == "aggregate" else len(asked.rows)) if row not in trial.rows]
    for place, row in enumerate(left):
        outcome, error = running if place == 0 or kind == "async" else waiting or running
        trial.rows[row] = TriedRow(row=row, outcome=outcome, error=error)


def _frames(stack: str) -> list[str]:
    return [f"{name}, {file}:{line}" for file, line, name in _FRAME.findall(stack)]


def _stack(child: Child) -> str:
    with contextlib.suppress(OSError):
        return (child.folder / STACK).read_text(errors="replace")
    return ""
