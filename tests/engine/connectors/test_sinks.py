"""What all sinks promise, each kind of them: rows of an epoch are seen once, whatever happens in between (O4, R3)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest
from sinks import KINDS, ON_SERVERS, World, batch, world

import object_store_server
from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors import (
    database,
    folder,
    parts_sink,
    staged_rows,
    table,
    table_target,
    waiting_rows,
)
from arroyo_udf_plugin.engine.connectors.interface import Json, TransactionalSink

pytestmark = pytest.mark.once

HERE = Path(__file__).parent
ALL = [*KINDS, *(pytest.param(kind, marks=pytest.mark.server) for kind in ON_SERVERS)]


@pytest.fixture(params=ALL)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return made(request, tmp_path, request.param)


@pytest.fixture(params=[each for each in ALL if each != "blackhole"])
def visible(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """One whose rows can be seen."""
    return made(request, tmp_path, request.param)


def made(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> World:
    s3 = postgresql = ""
    if "s3" in kind:
        server: object_store_server.Server = request.getfixturevalue("object_store")
        s3 = server.bucket("sinks")
    if "postgresql" in kind:
        postgresql = request.getfixturevalue("postgresql")
    return world(kind, tmp_path, s3, postgresql)


def stored(sink: TransactionalSink, epoch: int, *numbers: int) -> Json:
    """Rows of an epoch, durable."""
    sink.write(batch(*numbers))
    sealed = sink.seal(epoch)
    assert sealed is not None
    return sealed.store()


def test_rows_are_seen_when_their_epoch_is_applied(visible: World) -> None:
    sink = visible.sink(clear=1)
    sink.write(batch(1, 2, 3))
    sink.write(batch(4))
    assert visible.numbers() == []
    sealed = sink.seal(2)
    assert sealed is not None
    assert visible.numbers() == []
    found = sealed.store()
    assert visible.numbers() == []
    sink.apply(2, found)
    assert visible.numbers() == [1, 2, 3, 4]
    assert visible.hidden() == []
    sink.close()


def test_applying_twice_changes_nothing(visible: World) -> None:
    sink = visible.sink(clear=1)
    found = stored(sink, 2, 1, 2, 3)
    for _ in range(3):
        sink.apply(2, found)
    sink.close()
    other = visible.sink()
    other.apply(2, found)
    other.close()
    assert visible.numbers() == [1, 2, 3]


def test_the_next_epoch_is_written_while_one_is_stored_and_applied(visible: World) -> None:
    sink = visible.sink(clear=1)
    sink.write(batch(1, 2, 3))
    first = sink.seal(2)
    sink.write(batch(4))
    assert first is not None
    found = first.store()
    sink.write(batch(5))
    second = sink.seal(3)
    sink.apply(2, found)
    assert visible.numbers() == [1, 2, 3]
    assert second is not None
    sink.apply(3, second.store())
    assert visible.numbers() == [1, 2, 3, 4, 5]
    sink.close()


def test_an_epoch_without_rows_has_nothing_to_store(place: World) -> None:
    sink = place.sink(clear=1)
    assert sink.seal(2) is None
    sink.write(batch(1))
    sink.seal(3)
    assert sink.seal(4) is None
    sink.close()


def test_slices_have_rows_of_their_own(visible: World) -> None:
    slices = [visible.sink(slice, clear=1) for slice in range(3)]
    found = [stored(sink, 2, 10 * at, 10 * at + 1) for at, sink in enumerate(slices)]
    for sink, rows in zip(slices, found, strict=True):
        sink.apply(2, rows)
    assert visible.numbers() == [0, 1, 10, 11, 20, 21]
    for sink in slices:
        sink.close()


def test_a_start_with_fewer_slices_applies_the_rows_of_all(visible: World) -> None:
    slices = [visible.sink(slice, clear=1) for slice in range(3)]
    found = [stored(sink, 2, at) for at, sink in enumerate(slices)]
    slices[2].apply(2, found[2])
    for sink in slices:
        sink.close()
    only = visible.sink()
    for rows in found:
        only.apply(2, rows)
    only.clear(3)
    only.apply(4, stored(only, 4, 3))
    only.close()
    assert visible.numbers() == [0, 1, 2, 3]


def test_what_was_never_committed_is_cleared_of_all_slices(visible: World) -> None:
    for slice in range(2):
        sink = visible.sink(slice, clear=1)
        stored(sink, 2, slice)
        sink.close()
    assert visible.hidden() != []
    sink = visible.sink(clear=2)
    assert visible.hidden() == []
    found = stored(sink, 3, 7)
    sink.clear(2)
    sink.apply(3, found)
    sink.close()
    assert visible.numbers() == [7]


def test_a_fenced_engine_that_still_runs_takes_nothing_from_the_newer_one(visible: World) -> None:
    old, new = visible.sink(clear=1), visible.sink(clear=2)
    rows_of_new = stored(new, 3, 1)
    stored(old, 2, 8)
    stored(old, 3, 9)
    old.close()
    new.apply(3, rows_of_new)
    new.close()
    assert visible.numbers() == [1]


def test_two_engines_apply_one_epoch(visible: World) -> None:
    """The older one had committed it, and was slow."""
    old = visible.sink(clear=1)
    found = stored(old, 2, 1, 2, 3)
    new = visible.sink()
    new.apply(2, found)
    new.clear(3)
    old.apply(2, found)
    old.close()
    new.close()
    assert visible.numbers() == [1, 2, 3]


def test_what_is_given_up_leaves_nothing(place: World) -> None:
    sink = place.sink(clear=1)
    sink.write(batch(1, 2, 3))
    sink.close()
    if hasattr(place.model, "path"):
        assert place.names() == []


def test_a_huge_row(visible: World) -> None:
    sink = visible.sink(clear=1)
    row = batch(1).set_column(1, "b", pa.array(["x" * (80 << 20)]))
    sink.write(row)
    sealed = sink.seal(2)
    assert sealed is not None
    sink.apply(2, sealed.store())
    sink.close()
    assert [len(text) for _, text in visible.rows()] == [80 << 20]


def test_rows_of_a_committed_epoch_that_are_gone_are_an_error(visible: World) -> None:
    sink = visible.sink(clear=1)
    found = stored(sink, 2, 1)
    sink.clear(2)  # wrong: before it was applied
    with pytest.raises(InvalidArgument, match="gone"):
        sink.apply(2, found)
    sink.close()


def test_without_checkpoints_rows_are_there_at_the_end(visible: World) -> None:
    slices = [visible.without_checkpoints(slice) for slice in range(2)]
    for at, sink in enumerate(slices):
        for number in range(3):
            sink.write(batch(10 * at + number))
    for sink in slices:
        sink.finish()
        sink.close()
    assert visible.numbers() == [0, 1, 2, 10, 11, 12]
    assert visible.hidden() == []


# ---- Crashes ---------------------------------------------------------------------------------------------------------

CHILD = """
import json, os, signal, sys
from sinks import World, batch
from arroyo_udf_plugin import failpoints
place, where, found = World.of_json(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])

def reached(name):
    if name == where:
        os.kill(os.getpid(), signal.SIGKILL)

failpoints.reached = reached
sink = place.sink(clear=None if found else 1)
if found is None:
    sink.write(batch(1, 2, 3))
    sealed = sink.seal(2)
    reached("sealed")
    found = sealed.store()
    print(json.dumps(found), flush=True)
    reached("staged")
sink.apply(2, found)
reached("applied")
"""


def child(place: World, where: str, found: str = "null") -> str:
    """Runs an epoch up to a point, where it is killed. Returns what was stored."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, place.as_json(), where, found],
        env=os.environ | {"PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout


@pytest.mark.parametrize("where", ["sealed", "staged", "renamed", "applied"])
@pytest.mark.parametrize(
    "visible", [each for each in ALL if each not in ("blackhole", "parts in memory")], indirect=True
)
def test_another_process_goes_on_after_a_crash(visible: World, where: str) -> None:
    if not hasattr(visible.model, "path"):
        where = where.replace("renamed", "applied")
    found = child(visible, where)
    if where == "sealed":
        visible.sink(clear=2).close()
        assert visible.numbers() == []
    else:
        child(visible, "applied", found)
        visible.sink(clear=3).close()
        assert visible.numbers() == [1, 2, 3]
    assert visible.hidden() == []


_TRACED = (database, folder, parts_sink, staged_rows, table, table_target, waiting_rows)


class Crash(BaseException):
    """From one line on, no other line of the sinks runs."""


class CrashAt:
    """`with CrashAt(n)`: at the n-th line. lines: how many there were."""

    FILES = tuple(str(module.__file__) for module in _TRACED)

    def __init__(self, line: int) -> None:
        self._line, self.lines = line, 0

    def __enter__(self) -> CrashAt:
        sys.settrace(self._trace)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        sys.settrace(None)
        return kind is Crash

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in self.FILES:
            return None
        if event == "line":
            self.lines += 1
            if self.lines >= self._line:
                raise Crash
        return self._trace


@pytest.mark.parametrize("kind", ["parts", "parts that wait", "parts in memory", "sqlite", "sqlite by key"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # files that the crash left open
def test_a_crash_at_any_line(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While rows are stored, applied, and leftovers cleared."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    line, has_crashed = 0, True
    while has_crashed:
        line += 1
        place = world(kind, tmp_path / str(line))
        (tmp_path / str(line)).mkdir()
        sink = place.sink(clear=1)
        sink.write(batch(1, 2, 3))
        sealed = sink.seal(2)
        assert sealed is not None
        found = None
        with CrashAt(line):
            found = sealed.store()
            sink.apply(2, found)
            sink.clear(3)
            has_crashed = False
        sink.close()  # a process that is gone has no connections
        for _ in range(2):
            resumed = place.sink()
            if found is not None:
                resumed.apply(2, found)
            resumed.clear(4)
            resumed.close()
        assert place.numbers() == ([] if found is None else [1, 2, 3]), line
        assert place.hidden() == [], line
    assert line > 20
