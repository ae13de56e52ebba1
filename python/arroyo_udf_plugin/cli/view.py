"""What a running pipeline does, on standard error: a table that changes on a terminal, else a line now and then.

Guarantees: standard output is left alone. Without rich, a terminal gets the lines, too.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import click

from .telling import duration

if TYPE_CHECKING:
    from ..engine.execution.progress import OperatorProgress, Progress

_LINE_EVERY = 10.0
_FRAME_EVERY = 0.25
_COLUMNS = ("operator", "rows/s", "in flight", "held", "by order", "lag", "errors", "timed out", "p50", "p99")


class View(Protocol):
    """every: seconds from one call of `show` to the next."""

    every: float

    def show(self, progress: Progress) -> None: ...


@contextlib.contextmanager
def view(pipeline: str) -> Iterator[View]:
    """Shows a pipeline while this is open."""
    if not sys.stderr.isatty():
        yield PlainLines(pipeline)
        return
    try:
        from rich.console import Console
        from rich.live import Live
    except ImportError:
        click.echo("for a live view: pip install 'arroyo_udf_plugin[engine]'", err=True)
        yield PlainLines(pipeline)
        return
    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        yield _Table(pipeline, live)


class PlainLines:
    """A line each ten seconds."""

    every = _LINE_EVERY

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._rates = Rates()
        self._next = _LINE_EVERY

    def show(self, progress: Progress) -> None:
        if progress.seconds < self._next:
            return
        self._next = progress.seconds + _LINE_EVERY
        rate = self._rates.of("", progress.rows_out, progress.seconds)
        flying = sum(operator.in_flight for operator in progress.operators)
        held = sum(operator.held for operator in progress.operators)
        click.echo(
            f"{self._pipeline}: {_head(progress)}, {rate:,.0f} rows/s, {flying:,} in flight, {held:,} held", err=True
        )


class _Table:
    every = _FRAME_EVERY

    def __init__(self, pipeline: str, live: Any) -> None:
        self._pipeline = pipeline
        self._live = live
        self._rates = Rates()

    def show(self, progress: Progress) -> None:
        from rich.table import Table

        table = Table(
            title=f"{self._pipeline}: {_head(progress)}", title_justify="left", box=None, padding=(0, 1, 0, 0)
        )
        for name in _COLUMNS:
            table.add_column(name, justify="left" if name == "operator" else "right", no_wrap=True)
        for operator in progress.operators:
            table.add_row(*cells(operator, self._rates.of(operator.name, operator.rows_out, progress.seconds)))
        self._live.update(table, refresh=True)


class Rates:
    """Rows per second since the call before."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[int, float]] = {}

    def of(self, name: str, rows: int, seconds: float) -> float:
        """rows: so far, at `seconds`."""
        rows_before, seconds_before = self._before.get(name, (0, 0.0))
        self._before[name] = (rows, seconds)
        return (rows - rows_before) / (seconds - seconds_before) if seconds > seconds_before else 0.0


def cells(operator: OperatorProgress, rate: float) -> tuple[str, ...]:
    """A row of the table, in the order of its columns."""
    return (
        operator.name,
        f"{rate:,.0f}",
        f"{operator.in_flight:,}",
        f"{operator.held:,}",
        f"{operator.held_by_order:,}",
        _known(operator.lag),
        f"{operator.counts.errors:,}",
        f"{operator.counts.timed_out:,}",
        _known(operator.latency.p50),
        _known(operator.latency.p99),
    )


def _known(seconds: float | None) -> str:
    return "" if seconds is None else duration(seconds)


def _head(progress: Progress) -> str:
    total = "" if progress.total is None else f" of {progress.total:,}"
    text = f"{progress.rows_in:,}{total} rows read, {progress.rows_out:,} written"
    checkpoint = progress.checkpoint
    if checkpoint is not None:
        text += f", checkpoint {checkpoint.epoch}"
        if checkpoint.at is not None:
            text += f", {duration(max(0.0, time.time() - checkpoint.at))} ago"
    return text
