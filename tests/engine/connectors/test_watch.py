"""Folders that are read once or watched, and files that change after they were begun: local, and in an object store."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import obstore
import pytest
from partitions import read_all, rest, run, values

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.file_source import FilesSource
from arroyo_udf_plugin.engine.connectors.files import Files
from arroyo_udf_plugin.engine.connectors.interface import Json
from arroyo_udf_plugin.engine.connectors.object_store import open_object_store

CHANGED = r"changed after it was begun, .*Writers must write each new file under another name and rename it into"
_numbers = itertools.count()


class Folder:
    """A folder, local or in a store."""

    def __init__(self, place: str) -> None:
        self.place = place

    def write(self, name: str, text: str) -> None:
        if "://" in self.place:
            obstore.put(open_object_store(self.place), name, text.encode())
        else:
            path = Path(self.place, name)
            path.write_text(text)
            os.utime(path, ns=(0, next(_numbers)))  # two writes within one tick of the clock differ

    def remove(self, name: str) -> None:
        if "://" in self.place:
            obstore.delete(open_object_store(self.place), name)
        else:
            Path(self.place, name).unlink()

    def source(self, pattern: str = "", **keys: Any) -> FilesSource:
        source = Files(paths=(self.place + pattern,), **keys).source(1)
        assert isinstance(source, FilesSource)
        return source

    def name(self, name: str) -> str:
        return f"{self.place}/{name}"


@pytest.fixture(params=["local", "memory", "s3"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    match request.param:
        case "local":
            place = str(tmp_path)
        case "memory":
            place = f"memory://watch-{next(_numbers)}"
        case _:
            place = request.getfixturevalue("object_store").bucket(f"watch-{next(_numbers)}") + "/in"
    found = Folder(place)
    found.write("b.csv", "a\n1\n2\n")
    return found


def lines(n: int) -> str:
    return "a\n" + "".join(f"{i}\n" for i in range(n))


def test_without_watch_a_folder_is_read_once(folder: Folder) -> None:
    source = folder.source()
    assert source.watch is None
    assert [row["a"] for row in read_all(source)] == ["1", "2"]
    folder.write("c.csv", "a\n3\n")
    assert list(source.partitions()) == [folder.name("b.csv")]


@pytest.mark.parametrize("pattern", ["", "/*.csv"])
def test_with_watch_new_files_are_picked_up(folder: Folder, pattern: str) -> None:
    source = folder.source(pattern, watch=1.0)
    assert source.watch == 1.0
    assert list(source.partitions()) == [folder.name("b.csv")]
    folder.write("c.csv", "a\n3\n")
    folder.write("a.csv", "a\n4\n")
    folder.write(".d.csv", "half a fi")
    assert list(source.partitions()) == [folder.name(f"{name}.csv") for name in "bac"]  # known ones come first
    assert [row["a"] for row in read_all(source)] == ["1", "2", "4", "3"]


def test_files_that_appear_late_are_read_whatever_their_names(folder: Folder) -> None:
    """Also those that appear while nobody looks."""
    source = folder.source(watch=1.0)
    (known,) = source.partitions()
    partition = source.open(known, None)
    run(lambda: rest(partition))
    position = partition.position()
    folder.write("a.csv", "a\n3\n")
    again = folder.source(watch=1.0)
    again.check({known: position})
    assert list(again.partitions()) == [folder.name("a.csv"), folder.name("b.csv")]
    folder.write("0.csv", "a\n4\n")
    assert set(again.partitions()) == {folder.name(f"{name}.csv") for name in "ab0"}
    assert [row["a"] for row in read_all(again, {known: position})] == ["3", "4"]


def test_a_new_file_with_other_columns_is_refused_when_it_is_read(folder: Folder) -> None:
    source = folder.source(watch=1.0)
    source.partitions()
    folder.write("c.csv", "z\n3\n")
    with pytest.raises(InvalidArgument, match=r"b\.csv has a column 'a', and .*c\.csv does not"):
        read_all(source)


def test_a_file_that_changed_after_it_was_read_is_an_error(folder: Folder) -> None:
    source = folder.source(watch=1.0)
    read_all(source)
    assert list(source.partitions()) == [folder.name("b.csv")]
    folder.write("b.csv", "a\n1\n2\n3\n")
    with pytest.raises(InvalidArgument, match=rf"b\.csv {CHANGED}"):
        source.partitions()


def test_a_file_that_changed_before_it_is_begun_is_fine(folder: Folder) -> None:
    source = folder.source(watch=1.0)
    source.partitions()
    folder.write("b.csv", "a\n1\n2\n3\n")
    assert [row["a"] for row in read_all(source)] == ["1", "2", "3"]


@pytest.mark.parametrize(
    "text", [lines(30_001), lines(29_999) + "99999\n", "a\n1\n"], ids=["grown", "same size", "cut"]
)
def test_a_file_that_changes_while_it_is_read_is_an_error(folder: Folder, text: str) -> None:
    folder.write("b.csv", lines(30_000))
    source = folder.source()

    async def work() -> None:
        partition = source.open(folder.name("b.csv"), None)
        assert await partition.read() is not None
        folder.write("b.csv", text)
        try:
            await rest(partition)
        finally:
            partition.close()

    with pytest.raises(InvalidArgument, match=rf"b\.csv {CHANGED}"):
        run(work)


def test_a_file_that_has_been_read_may_be_removed(folder: Folder) -> None:
    source = folder.source(watch=1.0)
    assert len(read_all(source)) == 2
    folder.remove("b.csv")
    assert list(source.partitions()) == [folder.name("b.csv")]  # and no error, although the folder is empty
    folder.write("c.csv", "a\n3\n")
    assert list(source.partitions()) == [folder.name("b.csv"), folder.name("c.csv")]


def read_until(folder: Folder, batches: int) -> Json:
    async def work() -> Json:
        source = folder.source()
        partition = source.open(folder.name("b.csv"), None)
        for _ in range(batches):
            await partition.read()
        position = partition.position()
        partition.close()
        source.close()
        return position

    return run(work)


def resumed(folder: Folder, position: Json) -> Callable[[], Any]:
    async def work() -> Any:
        source = folder.source(watch=1.0)
        partition = source.open(folder.name("b.csv"), position)
        try:
            return values(await rest(partition))
        finally:
            partition.close()
            source.close()

    return lambda: run(work)


@pytest.mark.parametrize("batches", [1, 9])
def test_a_file_that_changed_before_a_resume_is_an_error(folder: Folder, batches: int) -> None:
    folder.write("b.csv", lines(30_000))
    resume = resumed(folder, read_until(folder, batches))
    assert len(resume()) == (30_000 - 8192 if batches == 1 else 0)
    folder.write("b.csv", lines(30_001))
    with pytest.raises(InvalidArgument, match=rf"b\.csv {CHANGED}"):
        resume()


def test_at_a_resume_only_a_file_that_was_read_may_be_gone(folder: Folder) -> None:
    folder.write("b.csv", lines(30_000))
    half, whole = read_until(folder, 1), read_until(folder, 9)
    folder.write("c.csv", "a\n3\n")
    folder.remove("b.csv")
    assert resumed(folder, whole)() == []
    with pytest.raises(InvalidArgument, match=r"b\.csv was read up to row 8192 and is gone: put it back to go on"):
        resumed(folder, half)()


def test_with_a_limit_the_last_file_is_needed_although_it_was_read_to_its_end(folder: Folder) -> None:
    source = folder.source(limit=9)
    (name,) = source.partitions()
    partition = source.open(name, None)
    assert [row["a"] for row in values(run(lambda: rest(partition)))] == ["1", "2"]
    position = partition.position()
    partition.close()
    source.check({name: position})
    folder.remove("b.csv")
    folder.write("c.csv", "a\n3\n")
    with pytest.raises(InvalidArgument, match=r"b\.csv was read up to row 2 and is gone: put it back to go on"):
        folder.source(limit=9).check({name: position})


def test_a_file_that_is_gone_before_its_turn_is_named(folder: Folder) -> None:
    source = folder.source()
    folder.remove("b.csv")
    with pytest.raises(InvalidArgument, match=r"b\.csv was read up to row 0 and is gone"):
        read_all(source)


def test_a_file_that_is_named_twice_is_read_twice(folder: Folder) -> None:
    name = folder.name("b.csv")
    source = Files(paths=(name, folder.place)).source(1)
    assert list(source.partitions()) == [name, f"{name} (2)"]
    assert [row["a"] for row in read_all(source)] == ["1", "2", "1", "2"]


def test_watch_and_limit_exclude_each_other(folder: Folder) -> None:
    with pytest.raises(InvalidArgument, match="watch looks for files for ever, and limit ends the source"):
        folder.source(watch=1.0, limit=3)


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_a_watched_folder_may_be_empty_if_its_columns_are_declared(folder: Folder, format: str) -> None:
    """At the start, and at a resume. Then the first files say nothing about the columns."""
    folder.remove("b.csv")
    declared: dict[str, Any] = {"columns": ("a", "b"), "types": {"a": "int64", "b": "string"}, "format": format}
    source = folder.source(watch=1.0, **declared)
    assert list(source.partitions()) == []
    folder.write(f"1.{format}", "b,a,c\nx,1,\n" if format == "csv" else '{"b": "x", "a": 1, "c": null}\n')
    folder.write(f"2.{format}", "a,b\n" if format == "csv" else "")
    folder.write(f"3.{format}", "a,b\n2,y\n3,z\n" if format == "csv" else '{"a":2,"b":"y"}\n{"a":3,"b":"z","d":1}\n')
    assert [(row["a"], row["b"], row["why"]) for row in read_all(source)] == [
        (1, "x", None),
        (2, "y", None),
        (3, "z", None),
    ]
    with contextlib.closing(folder.source(watch=1.0, **declared)) as full:
        assert full.schema == source.schema


def test_an_empty_folder_is_refused_if_nobody_would_look_again(folder: Folder) -> None:
    folder.remove("b.csv")
    with pytest.raises(InvalidArgument, match=r"no (files|such object)"):
        folder.source(columns=("a",), types={"a": "int64"}, format="csv")
    with pytest.raises(InvalidArgument, match=r"no (files|such object)"):
        folder.source(columns=("a",), format="csv", watch=1.0)


def test_a_look_checks_some_of_many_files_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all: a look would cost more the more files there have been. Before, it asked for each of them."""
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.file_source.CHECKED", 2)
    folder = Folder(str(tmp_path))
    for name in "abcde":
        folder.write(f"{name}.csv", "a\n1\n")
    source = folder.source(watch=1.0)
    assert len(read_all(source)) == 5
    asked = []
    stat = os.stat
    with monkeypatch.context() as patch:

        def noted(path: str | Path, **keys: Any) -> os.stat_result:
            asked.append(str(path))
            return stat(path, **keys)

        patch.setattr(os, "stat", noted)
        for _ in range(5):
            source.partitions()
    files = [Path(path).stem for path in asked if path.endswith(".csv")]
    assert files == [*"ab", *"cd", "e", *"ab", *"cd"]
    folder.write("d.csv", "a\n1\n2\n")
    source.partitions()  # e
    source.partitions()  # a and b
    with pytest.raises(InvalidArgument, match=rf"d\.csv {CHANGED}"):
        source.partitions()


def test_a_file_that_was_read_before_a_resume_may_not_change_after_it(folder: Folder) -> None:
    """It is not opened again, and still looked at."""
    folder.write("b.csv", lines(3))
    position = read_until(folder, 9)
    source = folder.source(watch=1.0)
    source.check({folder.name("b.csv"): position})
    source.partitions()
    source.partitions()
    folder.write("b.csv", lines(4))
    with pytest.raises(InvalidArgument, match=rf"b\.csv {CHANGED}"):
        source.partitions()


def test_files_that_two_inputs_name_are_numbered_at_each_look_as_at_the_first(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    folder.write("b.csv", "a\n1\n")
    with contextlib.closing(Files(paths=(folder.place, f"{folder.place}/*.csv"), watch=1.0).source(1)) as source:
        source.partitions()
        folder.write("a.csv", "a\n2\n")
        names = [name for file in "ba" for name in (folder.name(f"{file}.csv"), folder.name(f"{file}.csv (2)"))]
        assert list(source.partitions()) == names
        assert list(source.partitions()) == names
