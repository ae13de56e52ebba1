"""An operator of a stream: rows and watermarks in, rows with results and watermarks out.

    push(block), push_watermark(time) ──► stage ──► stage ──► ... ──► take()

operator.py    Operator: the stages of one operator, its policy, its budget
stages.py      one stage of it; an async function behind a runtime
queued.py      a sync function; pace.py: how many rows a step has
queried.py     a query
fused.py       native functions that are called in one pass
grouped.py     windows as an operator; group_stage.py: the open ones, and what becomes of late rows
lookup.py      a lookup
failures.py    why rows have failed
keys.py        idempotency keys
routes.py      which operators and sinks follow which
watermarks.py  how far event time is; event_time.py: of rows
state.py       what a snapshot is, as Arrow IPC; state_parts.py: files with what windows keep; state_columns.py: columns
calls.py       functions in their places, and the columns that they take and add
blocks.py      rows on their way, and where they come from

Guarantees (O1 to O6): every row that was pushed leaves once, or is dropped or a dead letter by policy. A watermark
leaves when every row before it has left, and needs no further input for that. A snapshot waits for nothing. No I/O in
the thread that drives it, which waits for the stages that have something under way, and calls `take`.
"""

from __future__ import annotations
