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

from ...host.policy import OUTCOMES
from .children import Child, ChildFailed
from .messages import STACK, TRIED, TriedFunction, TriedRow, TryEnded, TryRequest

_LATE = 0.5
"""Seconds in which the child still tells what has ended in time, and where its threads are."""
_MOST_OUTPUT = 64 << 10
_MOST_FRAMES = 10
_, _ERROR, _TIMED_OUT, _CANCELLED = OUTCOMES
_FRAME = re.compile(r'^  File "<(\S+\.py) \w+>", line (\d+) in (.+)$', re.MULTILINE)
"""A line of a stack that is in the source of a plugin."""


@dataclass
class Trial:
    """name: None: there is no function. function: None: it could not be loaded. errors: why no row was called.

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
    except TimeoutError:
        over = f"within {asked.seconds:g} s"
        _end(trial, asked, (_TIMED_OUT, f"did not end {over}{_stacks(child)}"), (_TIMED_OUT, f"did not begin {over}"))
    except ChildFailed as failed:
        if not failed.reason:
            trial.errors = [str(failed)]
        else:
            trial.crashed = f"{failed.reason} in {_place_of_crash(child) or trial.name}"
            _end(trial, asked, (_ERROR, f"it has ended the process: {trial.crashed}"),
                 (_CANCELLED, "was not called: a row before it has ended the process"))  # fmt: skip
    except pydantic.ValidationError:
        trial.errors = ["it has written to where its outcomes are told"]
    trial.micros = round((time.perf_counter() - began) * 1e6)
    trial.output = child.printed(_MOST_OUTPUT)
    return trial


def _end(trial: Trial, asked: TryRequest, running: tuple[str, str], others: tuple[str, str]) -> None:
    """Gives each row that has not ended an outcome and its error: rows that were running, and those that were not."""
    kind = "" if trial.function is None else trial.function.function
    left = [row for row in range(1 if kind == "aggregate" else len(asked.rows)) if row not in trial.rows]
    for place, row in enumerate(left):
        outcome, error = running if place == 0 or kind == "async" else others
        trial.rows[row] = TriedRow(row=row, outcome=outcome, error=error)


def _stacks(child: Child) -> str:
    """Where the threads are in the source of the function."""
    return "".join(f"\n  at {frame}" for frame in dict.fromkeys(_frames(_stack(child))[:_MOST_FRAMES]))


def _place_of_crash(child: Child) -> str | None:
    """Of the thread that has crashed, which the stack calls the current one."""
    current = _stack(child).rpartition("Current thread")[2].partition("\n\n")[0]
    return next(iter(_frames(current)), None)


def _frames(stack: str) -> list[str]:
    return [f"{name}, {file}:{line}" for file, line, name in _FRAME.findall(stack)]


def _stack(child: Child) -> str:
    with contextlib.suppress(OSError):
        return (child.folder / STACK).read_text(errors="replace")
    return ""
