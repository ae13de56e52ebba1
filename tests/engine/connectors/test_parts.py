"""A folder of parts: names, sizes, and what else is in the folder. (test_sinks.py has what all sinks promise.)"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pytest
from sinks import SCHEMA, StageIn, World, batch
from streams import read

import object_store_server
from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors import object_store as object_store_module
from arroyo_udf_plugin.engine.connectors.folder import open_folder
from arroyo_udf_plugin.engine.connectors.parts import Parts
from arroyo_udf_plugin.engine.execution.store import open_store


def at(tmp_path: Path, **keys: Any) -> World:
    return World(Parts(path=str(tmp_path / "out"), **keys), str(tmp_path / "checkpoints"), "history")


def applied(place: World, epoch: int, *batches: pa.RecordBatch, slice: int = 0) -> None:
    sink = place.sink(slice, clear=epoch - 1)
    for each in batches:
        sink.write(each)
    sealed = sink.seal(epoch)
    assert sealed is not None
    sink.apply(epoch, sealed.store())
    sink.close()


def sizes(place: World) -> list[int]:
    return [read(Path(place.model.path) / name).num_rows for name in place.names()]


def test_parts_are_named_after_epoch_slice_and_number(tmp_path: Path) -> None:
    place = at(tmp_path, part_rows=2)
    applied(place, 12, batch(1, 2, 3), slice=7)
    assert place.names() == ["part-000000012-007-000.parquet", "part-000000012-007-001.parquet"]


def test_an_epoch_may_have_more_parts_than_open_files(tmp_path: Path) -> None:
    place = at(tmp_path, part_rows=1)
    sink = place.sink(0, clear=1)
    sink.write(batch(*range(3)))
    before = len(os.listdir("/proc/self/fd"))
    sink.write(batch(*range(50)))
    assert len(os.listdir("/proc/self/fd")) == before
    sealed = sink.seal(2)
    assert sealed is not None
    sink.apply(2, sealed.store())
    sink.close()
    assert len(place.names()) == 53


def test_parts_of_an_epoch_that_is_given_up_are_removed(tmp_path: Path) -> None:
    place = at(tmp_path, part_rows=1)
    sink = place.sink(0, clear=1)
    sink.write(batch(1, 2, 3))
    sink.close()
    assert os.listdir(place.model.path) == []


def test_a_part_that_a_reader_takes_away_before_a_crash_does_not_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = at(tmp_path, part_rows=1)
    sink = place.sink(0, clear=1)
    sink.write(batch(1, 2))
    sealed = sink.seal(2)
    assert sealed is not None
    stored = sealed.store()

    def crash(name: str) -> None:
        raise KeyboardInterrupt(name)

    with monkeypatch.context() as patched:
        patched.setattr("arroyo_udf_plugin.failpoints.reached", crash)
        with pytest.raises(KeyboardInterrupt):
            sink.apply(2, stored)
    folder = Path(place.model.path)
    (taken,) = (name for name in place.names() if not name.startswith("."))
    (folder / taken).unlink()
    with pytest.raises(InvalidArgument, match=f"{taken}, which has rows of the last checkpoint, is gone"):
        sink.apply(2, stored)
    (folder / taken).touch()  # as the error says
    sink.apply(2, stored)
    assert [(folder / name).stat().st_size > 0 for name in place.names()] == [False, True]
    sink.close()


def test_without_checkpoints_parts_are_named_after_slice_and_number_and_appear_when_they_are_complete(
    tmp_path: Path,
) -> None:
    place = at(tmp_path, part_rows=2, format="csv")
    sink = place.without_checkpoints(3)
    sink.write(batch(1, 2, 3))
    assert place.names() == ["part-003-000000.csv"]
    sink.finish()
    sink.close()
    assert place.names() == ["part-003-000000.csv", "part-003-000001.csv"]


@pytest.mark.parametrize(
    ("format", "compression", "ending"),
    [
        ("csv", None, "csv"),
        ("csv", "gzip", "csv.gz"),
        ("tsv", "zstd", "tsv.zst"),
        ("jsonl", "none", "jsonl"),
        ("parquet", "zstd", "parquet"),
        ("arrow", "lz4", "arrow"),
        ("arrows", None, "arrows"),
    ],
)
def test_formats(tmp_path: Path, format: Any, compression: str | None, ending: str) -> None:
    place = at(tmp_path, format=format, compression=compression)
    applied(place, 2, batch(1, 2))
    assert place.names() == [f"part-000000002-000-000.{ending}"]
    assert place.numbers() == [1, 2]


def test_a_part_has_at_most_so_many_rows(tmp_path: Path) -> None:
    place = at(tmp_path, part_rows=3)
    applied(place, 2, batch(1, 2), batch(*range(3, 13)), batch(13))
    assert sizes(place) == [3, 3, 3, 3, 1]
    assert place.numbers() == list(range(1, 14))


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_part_ends_when_it_has_so_many_bytes(tmp_path: Path, format: Any) -> None:
    place = at(tmp_path, part_bytes=100_000, format=format, row_group_rows=8192)
    n = 50_000
    rows = pa.record_batch([pa.array(range(n)), pa.array([os.urandom(20).hex() for _ in range(n)])], schema=SCHEMA)
    applied(place, 2, *(rows.slice(offset, 1000) for offset in range(0, n, 1000)))
    files = [(Path(place.model.path) / name).stat().st_size for name in place.names()]
    assert len(files) > 1
    assert all(100_000 <= size < 600_000 for size in files[:-1])
    assert place.numbers() == list(range(n))


def test_a_part_ends_after_so_many_seconds_although_no_row_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers: list[Callable[[], None]] = []

    class Timer:
        def __init__(self, seconds: float, call: Callable[..., None], arguments: list[Any]) -> None:
            assert seconds == 5
            self._fire = lambda: call(*arguments)

        def start(self) -> None:
            timers.append(self._fire)

        def cancel(self) -> None:
            """It may fire all the same."""

    monkeypatch.setattr(threading, "Timer", Timer)
    place = at(tmp_path, part_seconds=5, part_rows=3)
    sink = place.without_checkpoints()
    sink.write(batch(1))
    sink.write(batch(2))
    assert place.names() == []
    timers.pop()()
    assert sizes(place) == [2]
    sink.write(batch(3, 4, 5))  # full
    timers.pop()()
    sink.write(batch(6))
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.parts_sink.FileSink.finish", _refuse)
    timers.pop()()
    with pytest.raises(InvalidArgument, match="the disk is full"):
        sink.write(batch(7))
    with pytest.raises(InvalidArgument, match="the disk is full"):
        sink.finish()
    monkeypatch.undo()
    sink.close()
    assert sizes(place) == [2, 3]


def _refuse(*_: object) -> None:
    raise InvalidArgument("the disk is full")


# ---- The folder ------------------------------------------------------------------------------------------------------


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    place = at(tmp_path)
    (tmp_path / "out").mkdir()
    for name in ("README", "rows.parquet", ".hidden", "part-x.csv"):
        (tmp_path / "out" / name).write_text("other")
    applied(place, 2, batch(1))
    assert place.names() == [".hidden", "README", "part-000000002-000-000.parquet", "part-x.csv", "rows.parquet"]


def test_parts_that_flink_has_written_are_rows_of_the_folder_and_left_alone(tmp_path: Path) -> None:
    """A pipeline may move from Flink to this engine."""
    place = at(tmp_path)
    applied(place, 2, batch(1))
    (part,) = place.names()
    name = "part-27ce5532-6f47-4fb5-baca-2d3aa55c98b7-0.parquet"
    os.rename(f"{place.model.path}/{part}", f"{place.model.path}/{name}")
    place.sink(clear=1).close()
    assert place.model.files() == [f"{place.model.path}/{name}"]
    assert [row["a"] for part in place.model.shown(SCHEMA) for row in part.to_pylist()] == [1]


def test_parts_of_another_history_are_refused(tmp_path: Path) -> None:
    """A pipeline that is started anew would mix its rows with the older ones, or replace them."""
    place = at(tmp_path)
    applied(place, 2, batch(1))
    with pytest.raises(InvalidArgument, match=r"out has part-000000002-.*another engine .*leave all to that one"):
        place.sink(clear=2)
    begins: tuple[Callable[[], object], ...] = (place.without_checkpoints, lambda: place.sink(clear=1))
    for begin in begins:  # no engine was before it
        with pytest.raises(
            InvalidArgument, match=r"out has parts of another run, such as part-000000002-000-000\.parquet: "
        ):
            begin()
    place.sink(clear=3).close()


def test_a_folder_that_cannot_be_made_is_refused_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgument, match=rf"cannot write into {tmp_path}/file/a/b: {tmp_path}/file is a file"):
        Parts(path=f"{tmp_path}/file/a/b").check(SCHEMA)
    Parts(path=f"{tmp_path}/a/b").check(SCHEMA)
    assert not (tmp_path / "a").exists()
    if os.geteuid():  # root may write everywhere
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(InvalidArgument, match=rf"no permission to write into {tmp_path}/closed"):
            Parts(path=f"{tmp_path}/closed/a").check(SCHEMA)


def test_parts_of_a_run_without_checkpoints_are_refused(tmp_path: Path) -> None:
    place = at(tmp_path)
    sink = place.without_checkpoints()
    sink.write(batch(1))
    sink.finish()
    sink.close()
    with pytest.raises(InvalidArgument, match=r"parts of another run, such as part-000-000000\.parquet"):
        place.sink(clear=5)


def test_a_part_of_another_pipeline_is_not_replaced(tmp_path: Path) -> None:
    place = at(tmp_path)
    one, other = place.sink(clear=1), place.sink(1, clear=1)
    one.write(batch(1))
    other.write(batch(2))
    of_one, of_other = one.seal(2), other.seal(2)
    assert of_one is not None
    assert of_other is not None
    one.apply(2, of_one.store())
    stored = {**of_other.store(), "slice": 0}
    with pytest.raises(InvalidArgument, match=r"part-000000002-000-000\.parquet is there already, from another run"):
        other.apply(2, stored)
    assert place.numbers() == [1]
    one.close()
    other.close()


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = at(tmp_path)
    sink = place.sink(clear=1)
    sink.write(batch(1))
    sealed = sink.seal(2)
    assert sealed is not None
    stored = sealed.store()

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    sink.apply(2, stored)
    sink.close()
    assert place.numbers() == [1]
    assert place.hidden() == []


def test_a_place_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(InvalidArgument, match="is a file; name a folder"):
        at(tmp_path).model.check(SCHEMA)


def test_a_check_makes_nothing(tmp_path: Path) -> None:
    place = at(tmp_path)
    place.model.check(SCHEMA)
    place.without_checkpoints().close()
    place.sink().close()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("keys", "schema", "text"),
    [
        ({"columns": ["c"]}, SCHEMA, r"out: there is no column 'c'; the columns are a, b"),
        ({"format": "csv"}, pa.schema([("l", pa.list_(pa.int8()))]), r"out: CSV cannot hold column 'l'"),
        ({"format": "parquet", "compression": "zip"}, SCHEMA, r"out: the compressions of parquet are snappy"),
        (
            {"format": "csv", "compression": "snappy"},
            SCHEMA,
            r"the compressions of csv are none, gzip, zstd, not snappy",
        ),
        ({"format": "csv", "delimiter": "ab"}, SCHEMA, r"delimiter"),
    ],
)
def test_what_cannot_be_written_is_refused_before_any_row(
    tmp_path: Path, keys: dict[str, Any], schema: pa.Schema, text: str
) -> None:
    model = at(tmp_path, **keys).model
    with pytest.raises(InvalidArgument, match=text):
        model.check(schema)
    with pytest.raises(InvalidArgument, match=text):
        model.sink(schema, 0, StageIn(open_store(str(tmp_path)), "h"), "pipeline", "sink")
    assert not (tmp_path / "out").exists()


def test_text_cells_stay_as_they_are_in_csv() -> None:
    assert not Parts(path="out", format="csv").typed
    assert Parts(path="out", format="jsonl").typed


def test_columns_are_chosen(tmp_path: Path) -> None:
    place = at(tmp_path, columns=["b"], format="csv")
    applied(place, 2, batch(1))
    assert (tmp_path / "out" / place.names()[0]).read_text() == "b\nrow 1\n"


# ---- An object store -------------------------------------------------------------------------------------------------


def test_a_store_that_restarts_between_any_two_calls_loses_nothing(
    object_store: object_store_server.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = World(Parts(path=f"{object_store.bucket('restarts')}/{tmp_path.name}"), str(tmp_path), "history")
    real = object_store_module.patiently

    def patiently(ask: Callable[[], Any], *arguments: Any) -> Any:
        object_store.restart()
        return real(ask, *arguments)

    applied(place, 2, batch(1, 2, 3))  # an empty bucket does not outlast this server
    monkeypatch.setattr(object_store_module, "patiently", patiently)
    applied(place, 4, batch(4))
    monkeypatch.undo()
    assert place.numbers() == [1, 2, 3, 4]
    assert place.hidden() == []


def test_an_upload_that_has_failed_can_be_repeated(
    object_store: object_store_server.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = World(Parts(path=f"{object_store.bucket('repeated')}/{tmp_path.name}"), str(tmp_path), "history")
    (tmp_path / "aside").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "aside"))
    sink = place.sink(clear=1)
    sink.write(batch(1, 2))
    sealed = sink.seal(2)
    assert sealed is not None
    with monkeypatch.context() as patch:
        patch.setattr(obstore, "put", _refuse)
        for _ in range(2):
            with pytest.raises(InvalidArgument, match="the disk is full"):
                sealed.store()
    sink.apply(2, sealed.store())
    assert place.numbers() == [1, 2]
    assert list((tmp_path / "aside").iterdir()) == []
    sink.close()


def test_a_part_larger_than_one_upload(object_store: object_store_server.Server, tmp_path: Path) -> None:
    place = World(Parts(path=f"{object_store.bucket('large')}/{tmp_path.name}", compression="none"), "", "history")
    sink = place.without_checkpoints()
    text = os.urandom(12 << 20).hex()
    sink.write(batch(1).set_column(1, "b", pa.array([text])))
    sink.finish()
    sink.close()
    assert [row[1] == text for row in place.rows()] == [True]
    assert open_folder(place.model.path).names() == ["part-000-000000.parquet"]


KILLED = """
import os, signal, sys
import pyarrow as pa
from arroyo_udf_plugin.engine.connectors.parts import Parts

class Stage:
    history = "h"

sink = Parts(path="memory://parts", part_rows=1).sink(pa.schema([("n", pa.int64())]), 0, Stage(), "p", "s")
for n in range(3):
    sink.write(pa.record_batch({"n": [n]}))
assert any(files for _, _, files in os.walk(sys.argv[1]))
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
sink.close()
"""


def test_a_killed_process_leaves_no_files_of_an_object_store_for_ever(tmp_path: Path) -> None:
    """The next one removes them, and its own; those of a process that lives stay."""
    living = tmp_path / "arroyo-udf-parts-living"
    living.mkdir()
    (living / "part").touch()
    fd = os.open(living, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        for how, status, left in (("killed", -9, 2), ("killed", -9, 2), ("closed", 0, 1)):
            command = [sys.executable, "-c", KILLED, str(tmp_path), how]
            done = subprocess.run(command, env=os.environ | {"TMPDIR": str(tmp_path)}, capture_output=True)
            assert done.returncode == status, done.stderr
            assert len(list(tmp_path.iterdir())) == left
    finally:
        os.close(fd)
    assert (living / "part").exists()
