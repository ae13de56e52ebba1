"""Partitions that have been read: lists of them grow at the cost of what is new, and survive whatever epochs do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest
from engines import IDENTITY
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import MemoryStore

from arroyo_udf_plugin import run_pipeline
from arroyo_udf_plugin.engine.connectors.interface import Json, Sink
from arroyo_udf_plugin.engine.connectors.unnamed import Data
from arroyo_udf_plugin.engine.execution import finished
from arroyo_udf_plugin.engine.execution.checkpoints import Epochs
from arroyo_udf_plugin.engine.execution.finished import fold, listed
from arroyo_udf_plugin.engine.execution.manifest import Manifest, StateFile
from arroyo_udf_plugin.engine.execution.retention import Retention
from arroyo_udf_plugin.engine.execution.savepoints import Savepoints
from arroyo_udf_plugin.engine.execution.snapshot import Snapshot
from arroyo_udf_plugin.engine.pipeline import Checkpoints, Files, Parts, Pipeline
from arroyo_udf_plugin.errors import InvalidArgument


@pytest.fixture(autouse=True)
def few_inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finished, "INLINE", 3)


def ended(number: int) -> tuple[str, dict[str, Any]]:
    return f"in/{number:05}.csv", {"row": number, "size": 8, "etag": str(number), "end": True}


def positions_of(first: int, end: int) -> dict[str, dict[str, Any]]:
    return dict(map(ended, range(first, end)))


# ---- Lists ----


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=40))
def test_nothing_gets_lost_and_what_is_written_stays_small(counts: list[int]) -> None:
    files: dict[str, bytes] = {}

    def load(file: StateFile) -> Data:
        return files[file.name]

    positions: dict[str, dict[str, Any]] = {"open.csv": {"row": 5}}
    lists: tuple[StateFile, ...] = ()
    number, written = 0, 0
    for epoch, count in enumerate(counts):
        positions |= positions_of(number, number + count)
        number += count
        folded = fold(positions, lists, f"list-{epoch}", "source 1", load)
        positions, lists = folded.positions, folded.lists
        if folded.new is not None:
            file, data = folded.new
            files[file.name] = data
            written += len(listed(file, load))
        assert "open.csv" in positions
        assert len(positions) <= finished.INLINE + 1
        every = dict(positions)
        for file in lists:
            part = listed(file, load)
            assert not part.keys() & every.keys()
            every |= part
        assert every == positions_of(0, number) | {"open.csv": {"row": 5}}
    most = math.log2(number + 2) + 1
    assert len(lists) <= most
    assert written <= number * most


def test_a_list_that_is_none_is_refused() -> None:
    for data in (b"", b"x" * 100):
        with pytest.raises(InvalidArgument, match=r"states/1 is no list of partitions"):
            listed(StateFile.of("source 1", "states/1", data), lambda _, data=data: data)  # type: ignore[misc]


# ---- Epochs with lists ----


class ReadingSlice:
    """A slice whose source reads partitions to their end. It tells of each once, as a source does."""

    sinks: tuple[Sink, ...] = ()

    def __init__(self) -> None:
        self.new: dict[str, Json] = {}

    def seal(self, epoch: int) -> Future[Snapshot]:
        future: Future[Snapshot] = Future()
        new, self.new = self.new, {}
        future.set_result(Snapshot(new, None, [], {}))
        return future


class ReadingEngine:
    def __init__(self, store: MemoryStore, retain: int = 2, restore: int | str | None = None) -> None:
        self.epochs = Epochs(store, IDENTITY, retention=Retention(retain), restore=restore)
        self.epochs.fence()
        self.slice = ReadingSlice()

    def read(self, first: int, end: int) -> Manifest:
        self.slice.new = positions_of(first, end)
        manifest = self.epochs.take([self.slice])
        assert manifest is not None
        return manifest

    @property
    def known(self) -> Mapping[str, Json]:
        return self.epochs.positions_of(0)


def test_a_manifest_does_not_grow_with_the_files_that_were_read() -> None:
    store = MemoryStore()
    engine = ReadingEngine(store)
    sizes = [len(engine.read(at, at + 1).written()) for at in range(300)]
    assert max(sizes) < 3 * max(sizes[:20])  # it names a few lists
    assert ReadingEngine(store).known == positions_of(0, 300)
    assert engine.epochs.latest is not None
    assert set(store.names("states/")) <= engine.epochs.latest.state_names | {
        name for number in engine.epochs.retained for name in engine.epochs._files.read(number).state_names
    }


def test_one_goes_back_to_what_was_read_then() -> None:
    store = MemoryStore()
    engine = ReadingEngine(store, retain=10)
    engine.read(0, 10)  # epoch 2
    engine.read(10, 20)
    engine.read(20, 60)
    Savepoints(store).take("later")
    back = ReadingEngine(store, retain=1, restore=2)
    assert back.known == positions_of(0, 10)
    back.read(10, 15)
    back.read(15, 20)
    assert ReadingEngine(store, retain=1).known == positions_of(0, 20)


def test_a_savepoint_has_lists_of_its_own() -> None:
    store = MemoryStore()
    engine = ReadingEngine(store, retain=1)
    engine.read(0, 10)
    Savepoints(store).take("before")
    for at in range(10, 100, 10):
        engine.read(at, at + 10)
    assert ReadingEngine(store, retain=1, restore="before").known == positions_of(0, 10)


def test_a_damaged_list_is_named() -> None:
    store = MemoryStore()
    ReadingEngine(store).read(0, 10)
    (name,) = store.names("states/")
    store.files[name] = bytes(reversed(store.files[name]))
    with pytest.raises(InvalidArgument, match=r"states/0000000002-read-0\.arrow, the state of source 1, is damaged"):
        assert ReadingEngine(store).known


# ---- A pipeline ----


@pytest.mark.parametrize("parallelism", [1, 2])
def test_no_file_is_read_twice_whatever_its_name_and_time(tmp_path: Path, parallelism: int) -> None:
    """Without lists, a manifest had each file that there ever was."""
    folder = tmp_path / "in"
    folder.mkdir()
    pipeline = Pipeline(
        name="files",
        source=Files(paths=(str(folder),), types={"n": "int64"}),
        sinks=[Parts(path=str(tmp_path / "out"))],
        checkpoints=Checkpoints(place=str(tmp_path / "state"), every=3600),
        parallelism=parallelism,
    )
    numbers = []
    for names in (["m", "n", "o", "p", "q"], ["a", "b", "z"], [], ["c", "d", "e", "f", "g", "h"]):
        for name in names:
            numbers.append(len(numbers))
            (folder / f"{name}.csv").write_text(f"n\n{numbers[-1]}\n")
        run_pipeline(pipeline)
        shown = pyarrow.dataset.dataset(tmp_path / "out").to_table().column("n")
        assert sorted(shown.to_pylist()) == numbers
    assert len(list((tmp_path / "state" / "states").glob("*-read-0.arrow"))) >= 1
