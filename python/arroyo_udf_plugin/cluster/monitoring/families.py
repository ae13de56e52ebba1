"""Which metrics there are, and samples of them.

    families = Families()
    families.add("arroyo_udf_in_flight", 3, job_id="job_1", node_id=1, operator_name="AsyncUdf", name="town")
    registry.register(families)

Names and labels are Arroyo's where they mean the same. Arroyo's counters have no `_total`, which Prometheus wants of
what is declared as a counter: so these are untyped. `rate()` takes them all the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from prometheus_client import Metric

_Kind = Literal["gauge", "counter", "histogram", "unknown"]

METRICS: dict[str, tuple[_Kind, str]] = {
    "arroyo_controller_jobs": ("gauge", "Jobs, by state. UserFailed: failed by an error of the user."),
    "arroyo_worker_bytes_recv": ("unknown", "Bytes that a node has received."),
    "arroyo_worker_bytes_sent": ("unknown", "Bytes that a node has sent."),
    "arroyo_worker_messages_recv": ("unknown", "Rows that a node has received."),
    "arroyo_worker_messages_sent": ("unknown", "Rows that a node has sent."),
    "arroyo_worker_deserialization_errors": ("unknown", "Rows of sources that could not be read."),
    "arroyo_udf_blocked_seconds_total": ("counter", "Seconds in which those behind a node took no rows."),
    "arroyo_udf_in_flight": ("gauge", "Calls of functions under way."),
    "arroyo_udf_held_rows": ("gauge", "Rows in an operator."),
    "arroyo_udf_held_by_order_rows": ("gauge", "Rows that have ended and wait for an earlier one."),
    "arroyo_udf_backing_off_rows": ("gauge", "Rows that wait for their next call."),
    "arroyo_udf_stuck_calls": ("gauge", "Calls that ignore their cancellation."),
    "arroyo_udf_retries_total": ("counter", "Calls after the first one of a row."),
    "arroyo_udf_loop_blocked_total": ("counter", "How often an event loop of functions was found blocked."),
    "arroyo_udf_outcomes_total": (
        "counter",
        "Rows answered: values, errors, timed_out, late. Of values: nulls. Of others: nulled, dropped, dead_letters.",
    ),
    "arroyo_udf_latency_seconds": (
        "histogram",
        "Seconds from a row's first call to its end, of functions with a timeout or retries; the sum is estimated.",
    ),
    "arroyo_udf_watermark_timestamp_seconds": ("gauge", "The latest watermark that has left a node."),
    "arroyo_udf_watermark_lag_seconds": ("gauge", "Seconds by which a watermark is behind the source's."),
    "arroyo_udf_checkpoint_epoch": ("gauge", "The latest epoch that was committed."),
    "arroyo_udf_checkpoint_duration_seconds": ("gauge", "Seconds that the latest checkpoint took."),
    "arroyo_udf_checkpoint_bytes": ("gauge", "Bytes of state in the latest checkpoint."),
    "arroyo_udf_restarts": ("gauge", "Restarts of a job in a row."),
    "arroyo_udf_limit": ("gauge", "What the users may have together, by kind."),
    "arroyo_udf_used": ("gauge", "What they have of it."),
    "arroyo_udf_queued": ("gauge", "Builds and plans that wait for their turn."),
    "arroyo_udf_refused_total": ("counter", "Requests beyond a limit, by kind."),
    "arroyo_udf_led": ("gauge", "1: a controller has lately written to the database that it leads. 0: none has."),
    "arroyo_udf_controller_leads": ("gauge", "1: this controller leads. 0: it stands by."),
    "arroyo_udf_controller_transitions_total": ("counter", "Changes of states of jobs, by event and new state."),
    "arroyo_udf_controller_recoveries_total": ("counter", "How often a job was lost, and was to start again."),
    "arroyo_udf_controller_database_failures_total": ("counter", "Failures of the database."),
    "arroyo_udf_controller_refused_messages_total": ("counter", "Messages of workers that were not understood."),
    "arroyo_udf_controller_checkpoint_seconds": ("histogram", "Seconds that checkpoints of all jobs took."),
    "arroyo_udf_controller_checkpoint_bytes_total": ("counter", "Bytes of the checkpoints of all jobs."),
}
"""Each by the name of its samples: what it is, and what it tells."""


class Buckets(NamedTuple):
    """A histogram: counts[i] fell into the bucket that ends at bounds[i]; one more count for what is above."""

    bounds: Sequence[float]
    counts: Sequence[int]
    sum: float


class Families:
    """A collector of prometheus_client."""

    def __init__(self) -> None:
        self._samples: dict[str, list[tuple[str, dict[str, str], float]]] = defaultdict(list)

    def add(self, name: str, value: float | None, /, **labels: object) -> None:
        """None: it is not known."""
        if value is not None:
            self._samples[name].append((name, _texts(labels), value))

    def add_buckets(self, name: str, buckets: Buckets, /, **labels: object) -> None:
        own, samples = _texts(labels), self._samples[name]
        bounds = [*map(repr, map(float, buckets.bounds)), "+Inf"]
        for bound, count in zip(bounds, accumulate(buckets.counts), strict=True):
            samples.append((f"{name}_bucket", own | {"le": bound}, count))
        samples += [(f"{name}_count", own, sum(buckets.counts)), (f"{name}_sum", own, buckets.sum)]

    def collect(self) -> Iterator[Metric]:
        from prometheus_client import Metric

        for name, (kind, text) in METRICS.items():
            if name in self._samples:
                metric = Metric(name.removesuffix("_total"), text, kind)
                for sample in self._samples[name]:
                    metric.add_sample(*sample)
                yield metric


Source = Callable[[Families], None]
"""Adds what it knows."""


def _texts(labels: dict[str, object]) -> dict[str, str]:
    return {label: str(value) for label, value in labels.items()}
