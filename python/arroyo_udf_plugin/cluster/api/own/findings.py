"""What holds a stream back: told from what a job has counted in the last seconds.

Guarantees: the findings of a node are about what it does now, not what it once did; the worst of all comes first. A
job that does what it should has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from .shapes import FindingKind, NodeCounts, Point, StreamFinding

_ORDER: tuple[FindingKind, ...] = get_args(FindingKind)
_OLD = 5_000_000
"""Microseconds after which one row is the reason why others wait."""
_FULL = 0.5
"""The share of time in which a node could not hand on its rows: from here on, the one behind it is too slow."""
LATELY = 10_000_000
"""Microseconds: what has not happened again since then is over."""


def findings(points: Sequence[Point], edges: Sequence[tuple[int, int]], now: int) -> list[StreamFinding]:
    """points: the last ones, by time. edges: of the graph, from node to node."""
    if not points:
        return []
    after = points[-1]
    lately = [point for point in points if point.generation == after.generation and point.at >= after.at - LATELY]
    before = lately[0]
    seconds = (after.at - before.at) / 1e6
    were = {} if before is after else {node.node_id: node for node in before.nodes}
    are = {node.node_id: node for node in after.nodes}
    found: list[StreamFinding] = []
    for node in after.nodes:
        sources = [are[source] for source, to in edges if to == node.node_id and source in are]
        fed = any(_share(were.get(source.node_id), source, seconds) >= _FULL for source in sources)
        found += _of_node(were.get(node.node_id), node, seconds, now, is_fed=fed)
    return sorted(found, key=lambda finding: _ORDER.index(finding.kind))


def _of_node(
    was: NodeCounts | None, node: NodeCounts, seconds: float, now: int, is_fed: bool
) -> Iterator[StreamFinding]:
    def finding(kind: FindingKind, text: str) -> StreamFinding:
        return StreamFinding(kind=kind, node_id=node.node_id, name=node.name, text=text)

    more = _more(was, node)
    waited = 0 if node.oldest is None else now - node.oldest.since
    if node.stuck:
        yield finding("stuck", f"{_calls(node.stuck)} ignored the cancellation: the stack says where")
    if more.get("loop_blocked"):
        yield finding("blocked", "a call holds the event loop for more than half a second, so no other one goes on")
    if node.oldest is not None and waited >= _OLD and node.held_by_order:
        yield finding(
            "order",
            f"{_rows(node.held_by_order)} for row {node.oldest.row:,} of {node.oldest.file}, which has taken "
            f"{waited / 1e6:,.0f} s so far, because results keep their order",
        )
    elif node.oldest is not None and waited >= _OLD and node.in_flight and not node.backing_off:
        yield finding("stalled", f"{_calls(node.in_flight)} under way, and none has ended for {waited / 1e6:,.0f} s")
    if more.get("errors"):
        yield finding("failing", f"{_rate(more['errors'], seconds)} rows/s fail: the errors say why")
    if more.get("timed_out"):
        yield finding("timeouts", f"{_rate(more['timed_out'], seconds)} rows/s run out of time")
    if node.backing_off:
        yield finding("retries", f"{_rows(node.backing_off)} for another call, after one that failed")
    if is_fed and _share(was, node, seconds) < _FULL:
        yield finding(
            "slow", f"rows come faster than they leave: {node.in_flight:,} calls under way, {node.held:,} held"
        )


def _calls(count: int) -> str:
    return f"{count:,} call{'' if count == 1 else 's'}"


def _rows(count: int) -> str:
    return "1 row waits" if count == 1 else f"{count:,} rows wait"


def _more(was: NodeCounts | None, node: NodeCounts) -> dict[str, int]:
    """What has been counted in between; nothing, if that is not known."""
    if was is None:
        return {}
    counts = {name: count - was.outcomes.get(name, 0) for name, count in node.outcomes.items()}
    return counts | {"loop_blocked": node.loop_blocked - was.loop_blocked}


def _share(was: NodeCounts | None, node: NodeCounts, seconds: float) -> float:
    """Of the time, in which it could not hand on its rows."""
    return 0.0 if was is None or seconds <= 0 else min(1.0, (node.blocked - was.blocked) / seconds)


def _rate(count: int, seconds: float) -> str:
    rate = count / seconds if seconds > 0 else 0.0
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:,.1f}"
