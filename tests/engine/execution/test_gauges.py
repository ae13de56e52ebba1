"""What partitions tell of themselves: together, in the progress of their source."""

from __future__ import annotations

from collections.abc import Sequence

from worlds import Gate, Story, StoryPartition, StorySource, World, once

from arroyo_udf_plugin.engine.connectors.interface import Gauge, Json
from arroyo_udf_plugin.engine.execution.progress import Progress
from arroyo_udf_plugin.engine.execution.runner import run
from arroyo_udf_plugin.engine.execution.stopping import StopRequest


class MeasuredPartition(StoryPartition):
    def __init__(self, source: StorySource, name: str, at: int, told: Sequence[Gauge]) -> None:
        super().__init__(source, name, at)
        self._told = told

    def gauges(self) -> Sequence[Gauge]:
        return self._told


class RisingPartition(StoryPartition):
    """It tells a higher number each time."""

    _count = 0

    def gauges(self) -> Sequence[Gauge]:
        self._count += 1
        return [Gauge("lag", self._count, "messages")]


class RisingSource(StorySource):
    def open(self, partition: str, position: Json | None) -> StoryPartition:
        return RisingPartition(self, partition, 0)


class MeasuredSource(StorySource):
    """Partitions that wait for ever, and what each of them tells; one that tells nothing has no `gauges`."""

    def __init__(self, told: dict[str, Sequence[Gauge]]) -> None:
        super().__init__({name: [Gate()] for name in (*told, "silent")}, side_by_side=True)
        self._told = told

    def open(self, partition: str, position: Json | None) -> StoryPartition:
        if partition not in self._told:
            return super().open(partition, position)
        return MeasuredPartition(self, partition, 0, self._told[partition])


def test_gauges_of_one_name_and_unit_add_up_over_partitions_and_slices() -> None:
    told: dict[str, Sequence[Gauge]] = {
        "a": [Gauge("lag", 3, "messages")],
        "b": [Gauge("lag", 4, "messages"), Gauge("retained", 70, "bytes")],
        "c": [Gauge("lag", 0.5, "seconds")],
        "d": [],
        "e": [Gauge("lag", 5, "messages")],
    }
    seen: list[set[Gauge]] = []
    stop = StopRequest()

    def watch(progress: Progress) -> None:
        (source,) = progress.sources
        seen.append(set(source.gauges))
        if len(source.gauges) == 3 and Gauge("lag", 12, "messages") in seen[-1]:
            once(stop)

    run(Story(MeasuredSource(told), World(), parallelism=2), stop=stop, progress=watch, progress_every=0.01)
    whole = {Gauge("lag", 12, "messages"), Gauge("retained", 70, "bytes"), Gauge("lag", 0.5, "seconds")}
    assert whole in seen


def test_gauges_are_told_while_nothing_moves() -> None:
    stop = StopRequest()

    def watch(progress: Progress) -> None:
        if any(gauge.value > 10 for gauge in progress.sources[0].gauges):
            once(stop)

    source = RisingSource({"a": [Gate()]})
    run(Story(source, World()), stop=stop, progress=watch, progress_every=0.001, only_moves=True)
    assert stop.requests
