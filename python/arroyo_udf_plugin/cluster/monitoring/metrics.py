"""Which metrics there are (`Families`), and samples of them: of the generations that run in this process (`Measured`),
and of what a controller counts (`Meters`).

    families = Families()
    families.add("arroyo_udf_in_flight", 3, job_id="job_1", node_id=1, operator_name="AsyncUdf", name="town")
    registry.register(families)

    measured = Measured()
    measured.note(report)
    Exposition([measured.tell])

Names and labels are Arroyo's where they mean the same. Arroyo's counters have no `_total`, which Prometheus wants of
what is declared as a counter: so these are untyped. `rate()` takes them all the same.

A report leaves out what is 0. A sample that is missing looks like a program that does not run, so it is told here. The
controller's loop counts; a request reads, in another thread: so a sum may be one behind.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ...host.statistics import Latency
from ..reports import upgraded
from ..states import Event, State
from ..task import JobReport

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
    "arroyo_udf_source_bytes": (
        "gauge",
        "What a source tells, by gauge. retained: what a server keeps for it. unread: what is there and was not read.",
    ),
    "arroyo_udf_source_messages": ("gauge", "What a source tells, by gauge. lag: what is there and was not read."),
    "arroyo_udf_source_seconds": ("gauge", "What a source tells, by gauge."),
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


_OF_SUBTASK = {
    "messages_recv": "arroyo_worker_messages_recv",
    "messages_sent": "arroyo_worker_messages_sent",
    "bytes_recv": "arroyo_worker_bytes_recv",
    "bytes_sent": "arroyo_worker_bytes_sent",
    "blocked": "arroyo_udf_blocked_seconds_total",
}
_OF_OPERATOR = {
    "in_flight": "arroyo_udf_in_flight",
    "held": "arroyo_udf_held_rows",
    "held_by_order": "arroyo_udf_held_by_order_rows",
    "backing_off": "arroyo_udf_backing_off_rows",
    "stuck": "arroyo_udf_stuck_calls",
    "retries": "arroyo_udf_retries_total",
    "loop_blocked": "arroyo_udf_loop_blocked_total",
}
_BUCKETS = range(32, 108, 4)
"""Of `Latency`, those at whose beginning one ends here: from half a millisecond to two minutes, each time twice."""


@dataclass(frozen=True)
class _Latest:
    """Of a job. checkpoint: reports tell each one once."""

    generation: int
    numbers: Mapping[str, Any]
    checkpoint: Mapping[str, Any] | None


class Measured:
    """The latest numbers of each job that has not ended. Any thread."""

    def __init__(self) -> None:
        self._latest: dict[str, _Latest] = {}

    def note(self, report: JobReport) -> None:
        before = self._latest.get(report.job_id)
        if before is not None and before.generation > report.generation:
            return
        if before is not None and before.generation < report.generation:
            before = None
        if report.event not in (None, Event.STARTED):
            self._latest.pop(report.job_id, None)
        elif report.numbers is not None:
            known = None if before is None else before.checkpoint
            checkpoint = known if report.checkpoint is None else report.checkpoint
            self._latest[report.job_id] = _Latest(report.generation, report.numbers, checkpoint)

    def tell(self, families: Families) -> None:
        for job_id, latest in list(self._latest.items()):
            add_numbers(families, latest.numbers, job_id)
            taken = latest.checkpoint
            if taken is not None:
                add_checkpoint(families, job_id, taken["epoch"], taken["seconds"], taken.get("bytes"))


def add_numbers(families: Families, numbers: Mapping[str, Any], job_id: str) -> None:
    job_numbers = upgraded(numbers)
    unreadable = job_numbers.get("dropped", 0) + job_numbers.get("dead_letters", 0)
    families.add("arroyo_worker_deserialization_errors", unreadable, job_id=job_id)
    for node_id, node in job_numbers.get("nodes", {}).items():
        _add_node(families, node, {"job_id": job_id, "node_id": node_id, "operator_name": node.get("operator", "")})


def _add_node(families: Families, node: Mapping[str, Any], labels: dict[str, str]) -> None:
    subtasks = node.get("subtasks", {})
    for index, counts in subtasks.items():
        for key, metric in _OF_SUBTASK.items():
            families.add(metric, counts.get(key), **labels, subtask_idx=index)
    own = {**labels, "name": node.get("name", "")}
    if "watermark" in node:
        families.add("arroyo_udf_watermark_timestamp_seconds", node["watermark"] / 1e6, **own)
    families.add("arroyo_udf_watermark_lag_seconds", node.get("lag"), **own)
    for gauge in node.get("gauges", ()):
        families.add(f"arroyo_udf_source_{gauge['unit']}", gauge["value"], **own, gauge=gauge["name"])
    is_operator = any("messages_recv" in counts and "messages_sent" in counts for counts in subtasks.values())
    if not is_operator:
        return
    for key, metric in _OF_OPERATOR.items():
        families.add(metric, node.get(key, 0), **own)
    for outcome, count in node.get("outcomes", {}).items():
        families.add("arroyo_udf_outcomes_total", count, **own, outcome=outcome)
    if "latency" in node:
        buckets = _latency({int(bucket): rows for bucket, rows in node["latency"].items()})
        families.add_buckets("arroyo_udf_latency_seconds", buckets, **own)


def _latency(rows: Mapping[int, int]) -> Buckets:
    """rows: by buckets of `Latency`, which counts no sum: rows are taken to be in the middle of theirs."""
    counts = [0] * (len(_BUCKETS) + 1)
    for bucket, count in rows.items():
        counts[bisect_left(_BUCKETS, bucket + 1)] += count
    middles = ((Latency.bound(bucket) + Latency.bound(bucket + 1)) / 2 * count for bucket, count in rows.items())
    return Buckets([Latency.bound(bucket) for bucket in _BUCKETS], counts, sum(middles))


def add_checkpoint(families: Families, job_id: str, epoch: int, seconds: float, size: int | None) -> None:
    families.add("arroyo_udf_checkpoint_epoch", epoch, job_id=job_id)
    families.add("arroyo_udf_checkpoint_duration_seconds", seconds, job_id=job_id)
    families.add("arroyo_udf_checkpoint_bytes", size, job_id=job_id)


_BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Seconds of checkpoints."""


class Meters:
    def __init__(self) -> None:
        self._transitions: Counter[tuple[Event, State]] = Counter()
        self._database_failures = 0
        self._epochs: dict[str, int] = {}
        self._checkpoints = [0] * (len(_BOUNDS) + 1)
        self._checkpoint_seconds = 0.0
        self._checkpoint_bytes = 0

    def moved(self, event: Event, state: State) -> None:
        self._transitions[event, state] += 1

    def database_failed(self) -> None:
        self._database_failures += 1

    def note(self, reports: Iterable[JobReport]) -> None:
        """Counts checkpoints. A report tells the latest: of several between two reports, one is counted."""
        for report in reports:
            taken = report.checkpoint
            if taken is not None and taken["epoch"] != self._epochs.get(report.job_id):
                self._epochs[report.job_id] = taken["epoch"]
                self._checkpoints[bisect_left(_BOUNDS, taken["seconds"])] += 1
                self._checkpoint_seconds += taken["seconds"]
                self._checkpoint_bytes += taken.get("bytes") or 0

    def forget(self, job_id: str) -> None:
        self._epochs.pop(job_id, None)

    def tell(self, families: Families) -> None:
        transitions = dict(self._transitions)
        for (event, state), count in transitions.items():
            families.add("arroyo_udf_controller_transitions_total", count, event=event, state=state)
        lost = sum(count for (_, state), count in transitions.items() if state is State.RECOVERING)
        families.add("arroyo_udf_controller_recoveries_total", lost)
        families.add("arroyo_udf_controller_database_failures_total", self._database_failures)
        checkpoints = Buckets(_BOUNDS, self._checkpoints, self._checkpoint_seconds)
        families.add_buckets("arroyo_udf_controller_checkpoint_seconds", checkpoints)
        families.add("arroyo_udf_controller_checkpoint_bytes_total", self._checkpoint_bytes)
