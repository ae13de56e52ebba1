"""Statistics of checkpoints: spans of their steps and of the parts of each slice, and the bytes of states."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from worlds import Gate, MemoryStore, Story, StorySource, World, batches, epochs_of

from arroyo_udf_plugin import Function
from arroyo_udf_plugin.engine.execution import checkpoint_statistics
from arroyo_udf_plugin.engine.execution.checkpoint_statistics import CheckpointStatistics, CheckpointSteps, SliceSpans
from arroyo_udf_plugin.engine.execution.manifest import Manifest
from arroyo_udf_plugin.engine.execution.progress import Progress
from arroyo_udf_plugin.engine.execution.runner import Interval, run


def test_an_epoch_has_spans_of_its_steps_and_of_each_part(functions: dict[str, Function]) -> None:
    """Two slices; a row is in the function when the epoch is taken."""
    store, gate = MemoryStore(), Gate()
    states: list[int] = []
    told: list[CheckpointStatistics] = []

    def watch(progress: Progress) -> None:
        checkpoint = progress.checkpoint
        if checkpoint is not None and checkpoint.statistics is not None and not told:
            told.append(checkpoint.statistics)
            manifest = Manifest.read(store.files[f"epochs/{epochs_of(store):010}.json"], epochs_of(store), "")
            states.extend(file.size for each in manifest.slices for file in each.operators if file is not None)
            gate.open()

    source = StorySource({"a": [*batches(1, 5), gate], "b": [*batches(11, 15), gate]}, side_by_side=True)
    story = Story(source, World(), [(functions["late"], ["n"])], parallelism=2)
    run(story, checkpoints=store, interval=Interval(None, rows=8), progress=watch)
    (found,) = told
    whole, *steps = found.spans
    assert [span.event for span in found.spans] == [
        "Checkpointing",
        "CheckpointingOperators",
        "WritingMetadata",
        "Committing",
    ]
    assert whole.start == steps[0].start
    assert [span.end for span in steps[:-1]] == [span.start for span in steps[1:]]
    assert steps[-1].end <= whole.end
    for each in found.slices:
        assert set(each.spans) == {("source", 0), ("operator", 0), ("sink", "out")}
        for (kind, _), spans in each.spans.items():
            events = [span.event for span in spans]
            assert events[:2] == ["Alignment", "Sync"]
            assert events[2:] in ([], ["Async"], ["Async", "Committing"])
            assert ("Async" in events) == (kind == "operator") or kind == "sink"
            moments = [moment for span in spans for moment in (span.start, span.end)]
            assert moments == sorted(moments)
            assert whole.start <= moments[0] <= moments[-1] <= whole.end
    assert [size for each in found.slices for size in each.bytes] == states
    assert found.bytes == sum(states) > 0
    assert found.written == found.bytes, "rows on their way are written each time"


def test_no_span_goes_backwards_when_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = iter(range(100))
    clock = iter([1000.0, 0.0])
    monkeypatch.setattr(
        checkpoint_statistics, "time", SimpleNamespace(monotonic=lambda: next(runs), time=lambda: next(clock))
    )
    assert checkpoint_statistics.time.time() == 1000.0
    steps, spans = CheckpointSteps(), SliceSpans()
    with spans.sync(("operator", 0)):
        pass
    steps.did("CheckpointingOperators")
    steps.did("WritingMetadata")
    found = steps.statistics(7, [(spans, [30], [20])])
    assert (found.epoch, found.bytes, found.end) == (7, 30, 0.0)
    own = found.slices[0].spans["operator", 0]
    assert [span.event for span in own] == ["Alignment", "Sync"]
    assert all(span.start < span.end for span in (*found.spans, *own))
