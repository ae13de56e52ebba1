"""Parts that take in the rows of several epochs: when they are shown, and that each row is shown once."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from sinks import SCHEMA, World, batch, world

from arroyo_udf_plugin import InvalidArgument, run_pipeline
from arroyo_udf_plugin.engine.connectors import waiting_rows
from arroyo_udf_plugin.engine.connectors.cells import Dialect, cell_type
from arroyo_udf_plugin.engine.connectors.interface import Json, Rewindable
from arroyo_udf_plugin.engine.connectors.parts import Parts
from arroyo_udf_plugin.engine.connectors.waiting_rows import WaitingRowsSink
from arroyo_udf_plugin.engine.pipeline import Checkpoints, Files, Pipeline
from arroyo_udf_plugin.errors import WrongCheckpoints


class Clock:
    now = 100.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> type[Clock]:
    Clock.now = 100.0
    monkeypatch.setattr(waiting_rows, "time", SimpleNamespace(monotonic=lambda: Clock.now))
    return Clock


@pytest.fixture(params=["parts", "parts in memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    found = world(request.param, tmp_path)
    return dataclasses.replace(found, model=found.model.model_copy(update={"part_wait": 60.0, "part_rows": None}))


def opened(place: World, committed: int, slice: int = 0) -> WaitingRowsSink:
    sink = place.sink(slice, clear=committed)
    assert isinstance(sink, WaitingRowsSink)
    return sink


def go(sink: WaitingRowsSink, epoch: int, *numbers: int) -> Json | None:
    """An epoch with these rows, applied."""
    if numbers:
        sink.write(batch(*numbers))
    sealed = sink.seal(epoch)
    if sealed is None:
        return None
    stored: Json = json.loads(json.dumps(sealed.store()))
    for _ in range(2):
        sink.apply(epoch, stored)
    return stored


def shown(place: World) -> list[str]:
    return [name for name in place.names() if name[0] != "."]


def test_epochs_share_a_part_when_their_rows_are_old_enough(place: World, clock: type[Clock]) -> None:
    sink = opened(place, 1)
    go(sink, 2, 1, 2)
    clock.now += 59
    go(sink, 3, 3)
    assert (place.numbers(), sink.holds) == ([], True)
    assert go(sink, 4) is None
    clock.now += 1
    go(sink, 5)
    assert (place.numbers(), sink.holds) == ([1, 2, 3], False)
    assert shown(place) == ["part-000000005-000-000-since-000000002-000.parquet"]
    go(sink, 6, 4)  # it waits anew
    assert place.numbers() == [1, 2, 3]
    clock.now += 60
    go(sink, 7, 5)
    assert place.numbers() == [1, 2, 3, 4, 5]
    sink.close()


def test_epochs_share_a_part_when_they_have_enough_bytes(tmp_path: Path) -> None:
    place = world("parts", tmp_path)
    model = place.model.model_copy(update={"part_wait": math.inf, "part_rows": None, "part_bytes": 10_000})
    place = dataclasses.replace(place, model=model)
    sink = opened(place, 1)
    for epoch in range(2, 42):
        go(sink, epoch, *range(epoch * 1000, epoch * 1000 + 100))
    assert 2 <= len(shown(place)) < 10
    sink.show_all()
    go(sink, 42)
    assert place.numbers() == [n for epoch in range(2, 42) for n in range(epoch * 1000, epoch * 1000 + 100)]
    sink.close()


def test_many_rows_of_one_epoch_do_not_wait_in_memory(place: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_rows, "MOST_BYTES", 1000)
    sink = opened(place, 1)
    for at in range(100):
        sink.write(batch(*range(10 * at, 10 * at + 10)))
    assert sum(rows.num_rows for rows in sink._rows) < 100
    go(sink, 2)
    waiting = 1000 - len(place.numbers())
    assert 0 < waiting < 100
    sink.show_all()
    go(sink, 3)
    assert place.numbers() == list(range(1000))
    sink.close()


def test_the_first_epoch_after_a_start_shows_what_waits_of_all_slices(place: World) -> None:
    for slice, sink in enumerate([opened(place, 1, slice) for slice in range(3)]):
        go(sink, 2, slice)
        sink.close()
    first, second = opened(place, 3), opened(place, 3, 1)
    assert (first.holds, second.holds) == (True, False)
    assert go(second, 4) is None
    go(first, 4)
    assert place.numbers() == [0, 1, 2]
    assert not opened(place, 5).holds


def test_rows_of_an_epoch_that_is_never_committed_do_not_wait(place: World) -> None:
    sink = opened(place, 1)
    go(sink, 2, 1)
    sink.write(batch(2))
    sealed = sink.seal(3)
    assert sealed is not None
    sealed.store()
    sink.close()
    again = opened(place, 3)
    go(again, 4)
    assert place.numbers() == [1]
    assert not any(name.startswith((".waiting", ".staged")) for name in place.names())


def test_a_failure_between_is_made_up_for_once(
    place: World, monkeypatch: pytest.MonkeyPatch, clock: type[Clock]
) -> None:
    sink = opened(place, 1)
    go(sink, 2, 1, 2)
    go(sink, 3, 3)
    sink.write(batch(4))
    clock.now += 60
    sealed = sink.seal(4)
    assert sealed is not None
    load, n_loads = sink._folder.load, 0

    def fails_once(name: str) -> bytes:
        nonlocal n_loads
        n_loads += 1
        if n_loads == 2:
            raise InvalidArgument("the store does not answer")
        return load(name)

    monkeypatch.setattr(sink._folder, "load", fails_once)
    with pytest.raises(InvalidArgument, match="does not answer"):
        sealed.store()
    sink.apply(4, sealed.store())
    assert place.numbers() == [1, 2, 3, 4]
    sink.close()
    opened(place, 5).close()
    assert not any(name.startswith(".staged") for name in place.names())


@pytest.mark.parametrize(("to", "left"), [(2, [1]), (3, [1, 2]), (4, [1, 2, 3]), (5, [1, 2, 3, 4]), (6, [1, 2, 3, 4])])
def test_one_goes_back_to_an_epoch_within_the_part_that_was_shown_last(
    place: World, clock: type[Clock], to: int, left: list[int]
) -> None:
    sink = opened(place, 1)
    assert isinstance(sink, Rewindable)
    stored = {2: go(sink, 2, 1), 3: go(sink, 3, 2)}
    clock.now += 60
    stored |= {4: go(sink, 4, 3), 5: go(sink, 5, 4), 6: go(sink, 6)}
    sink.close()
    again = opened(place, 7)
    later = {epoch: [] if rows is None else [rows] for epoch, rows in stored.items() if epoch > to}
    assert again.later_rows(to, later).fate == ("withdrawn" if to < 4 else "none")
    for _ in range(2):
        again.withdraw([(to + 1, 7)])
    again.show_all()
    go(again, 8, 9)
    assert place.numbers() == sorted([*left, 9])
    again.close()


def test_to_go_back_within_an_older_part_doubles_its_rows(place: World, clock: type[Clock]) -> None:
    sink = opened(place, 1)
    go(sink, 2, 1)
    clock.now += 60
    go(sink, 3, 2)
    go(sink, 4, 3)
    clock.now += 60
    go(sink, 5, 4)
    sink.close()
    again = opened(place, 6)
    assert again.later_rows(4, {}).fate == "withdrawn"
    assert again.later_rows(3, {}).fate == "withdrawn"
    rows = again.later_rows(2, {})
    assert rows.fate == "doubled"
    assert "part-000000003-000-000-since-000000002-000.parquet" in rows.what
    again.withdraw([(3, 6)])
    assert place.numbers() == [1, 2]  # the part stays; nothing is lost
    again.close()


def test_other_rows_that_wait_are_refused(place: World) -> None:
    sink = opened(place, 1)
    go(sink, 2, 1)
    sink.close()
    for committed in (1, 2):
        with pytest.raises(WrongCheckpoints, match=r"\.waiting-000000002-000-"):
            place.sink(clear=committed)
    at_once = dataclasses.replace(place, model=place.model.model_copy(update={"part_wait": None}))
    with pytest.raises(WrongCheckpoints, match="set part_wait as before, or 0 to show them with the next checkpoint"):
        at_once.sink(clear=3)


def test_rows_that_wait_are_checked_before_they_are_believed(tmp_path: Path) -> None:
    place = world("parts", tmp_path)
    place = dataclasses.replace(place, model=place.model.model_copy(update={"part_wait": 60.0}))
    sink = opened(place, 1)
    go(sink, 2, 1)
    (waiting,) = Path(place.model.path).glob(".waiting-*")
    data = waiting.read_bytes()
    sink.show_all()
    sealed = sink.seal(3)
    assert sealed is not None
    for damaged, why in ((data[:-1], "is damaged: bring a copy back"), (None, "is gone: bring it back")):
        waiting.unlink() if damaged is None else waiting.write_bytes(damaged)
        with pytest.raises(InvalidArgument, match=rf"{waiting.name}, with rows that wait, {why}"):
            sealed.store()
    waiting.write_bytes(data)
    sink.apply(3, sealed.store())
    assert place.numbers() == [1]
    sink.close()


def test_cells_and_dictionaries_wait_as_they_are(tmp_path: Path) -> None:
    cells = cell_type(Dialect())
    texts = pa.array(["01", "NA", '"a ""b"""'], pa.string())
    rows = pa.record_batch(
        {"c": pa.ExtensionArray.from_storage(cells, texts), "d": pa.array(["x", None, "x"]).dictionary_encode()}
    )
    model = Parts(path=str(tmp_path / "out"), format="csv", part_wait=60.0)
    place = dataclasses.replace(world("parts", tmp_path), model=model)
    sink: Any = place.sink(clear=1, schema=rows.schema)
    for epoch in (2, 3):
        sink.write(rows)
        sealed = sink.seal(epoch)
        sink.apply(epoch, sealed.store())
    sink.show_all()
    sink.apply(4, sink.seal(4).store())
    (part,) = (tmp_path / "out").glob("part-*")
    lines = '01,x\nNA,\n"a ""b""",x\n'
    assert part.read_text() == f"c,d\n{lines}{lines}"
    sink.close()


def test_a_pipeline_shows_all_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pipeline = Pipeline(
        name="files",
        source=Files(paths=(str(tmp_path / "in"),), types={"a": "int64", "b": "str"}),
        sinks=[Parts(path=str(tmp_path / "out"), part_wait="1h")],  # type: ignore[arg-type]
        checkpoints=Checkpoints(place=str(tmp_path / "state"), every_rows=1),
        parallelism=2,
    )
    place = World(pipeline.sinks[0], str(tmp_path / "state"), "")
    for run in range(2):
        for at in range(5):
            (tmp_path / "in" / f"{run}-{at}.csv").write_text(f"a,b\n{10 * run + at},x\n")
        run_pipeline(pipeline)
        assert place.numbers() == [10 * each + at for each in range(run + 1) for at in range(5)]
    assert SCHEMA.names == ["a", "b"]
