"""Files that grow: each line is read once, when its end is there, however the files are rotated meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from partitions import read_all, rest, run, values

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.interface import Gauge, Json, Partition
from arroyo_udf_plugin.engine.connectors.tail import partition as tail_partition
from arroyo_udf_plugin.engine.connectors.tail.connector import Tail
from arroyo_udf_plugin.engine.connectors.tail.source import TailSource
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.pipeline import Pipeline
from arroyo_udf_plugin.engine.pipeline.description import described
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.testing import check_source

_times = itertools.count(1)


class Log:
    """A file of lines {"n": ...}, and how it is read."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "app.log"

    def add(self, *numbers: int, to: Path | None = None, end: str = "\n") -> None:
        path = to or self.path
        with open(path, "a") as file:
            file.write("\n".join(f'{{"n": {n}}}' for n in numbers) + end)
        # Two files that are written within one tick of the clock differ.
        os.utime(path, ns=(0, next(_times) * 1_000_000_000))

    def rotate(self) -> None:
        """By rename, as logrotate does it."""
        for number in (3, 2, 1):
            older = self.folder / f"app.log.{number}"
            if older.exists():
                older.rename(self.folder / f"app.log.{number + 1}")
        self.path.rename(self.folder / "app.log.1")

    def copy_and_truncate(self) -> None:
        shutil.copyfile(self.path, self.folder / "app.log.1")
        os.truncate(self.path, 0)

    def source(self, *paths: str, **keys: Any) -> TailSource:
        chosen: dict[str, Any] = {"types": {"n": "int"}, "bounded": True, "settles": 0.0} | keys
        source = Tail(paths=paths or (str(self.path),), **chosen).source(1)
        assert isinstance(source, TailSource)
        return source

    def numbers(self, position: Json | None = None, **keys: Any) -> tuple[list[int], Json]:
        """What is read of the file from there, and the position then."""
        source = self.source(**keys)
        source.check({} if position is None else {str(self.path): position})
        partition = source.open(str(self.path), position and _again(position))
        try:
            return [row["n"] for row in values(run(lambda: rest(partition)))], _again(partition.position())
        finally:
            partition.close()


def _again(position: Json) -> Json:
    """From where a partition has ended, it goes on, as one does that has no end."""
    return {name: value for name, value in position.items() if name != "end"}


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


async def following(source: TailSource, steps: Sequence[tuple[Callable[[], object], list[int]]]) -> Partition:
    """Does each step while the only file is followed, and waits for its numbers."""
    (name,) = source.partitions()
    partition = source.open(name, None)
    for do, wanted in steps:
        reading = asyncio.create_task(read_so_many(partition, len(wanted)))
        await asyncio.sleep(0)  # it waits
        do()
        assert await reading == wanted
    return partition


async def read_so_many(partition: Partition, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        rows = await partition.read()
        assert rows is not None
        found += rows.batch.column("n").to_pylist()
    return found


# ---- Lines -----------------------------------------------------------------------------------------------------------


def test_lines_are_read_when_their_ends_are_there(log: Log) -> None:
    def half() -> None:
        with open(log.path, "a") as file:
            file.write('{"n": 3}\n{"n": ')

    def other_half() -> None:
        with open(log.path, "a") as file:
            file.write("4}\n")

    log.add(1, 2)
    run(lambda: following(log.source(bounded=False), [(lambda: None, [1, 2]), (half, [3]), (other_half, [4])]))


def test_what_was_not_read_is_told_in_bytes(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is not whole was not read either."""
    monkeypatch.setattr(tail_partition, "BLOCK_BYTES", 20)
    log.add(*range(5))
    log.add(5, end="")
    size = log.path.stat().st_size

    async def work() -> None:
        source = log.source(bounded=False)
        partition: Any = source.open(source.partitions()[0], None)
        with contextlib.closing(partition):
            assert partition.gauges() == []
            unread = []
            for _ in range(3):
                assert await partition.read() is not None
                unread += partition.gauges()
        assert unread == [Gauge("unread", size - read, "bytes") for read in (0, 18, 36)]

    run(work)


def test_a_half_line_waits_for_the_next_run(log: Log) -> None:
    log.add(1, 2)
    log.add(3, end="")
    numbers, position = log.numbers()
    assert numbers == [1, 2]
    with open(log.path, "a") as file:
        file.write("\n")
    assert log.numbers(position)[0] == [3]


def test_a_file_may_be_empty_at_first_or_not_there(log: Log) -> None:
    source = log.source(bounded=False)
    assert source.partitions() == []
    log.path.touch()

    async def work() -> None:
        partition = await following(source, [(lambda: log.add(1), [1])])
        partition.close()

    run(work)
    assert source.open("gone.log", None).position() == {"first": 1, "row": 1}


def test_new_files_are_noticed(log: Log) -> None:
    source = log.source(f"{log.folder}/*.log")
    log.add(1)
    assert list(source.partitions()) == [str(log.path)]
    log.add(2, to=log.folder / "b.log")
    assert list(source.partitions()) == [str(log.path), str(log.folder / "b.log")]
    assert [row["n"] for row in read_all(source)] == [1, 2]


TEXTS: dict[Literal["jsonl", "text", "csv", "tsv"], str] = {
    "jsonl": '{"n": 1}\n\n{"n": 2, "other": [1]}\n{"n": 3}\n',
    "text": "one\n\ntwo \u00fc\n",
    "csv": 'extra,n\n"a\nb",1\nc,2\n',
    "tsv": "n\textra\n1\ta\n2\tb\n",
}


@pytest.mark.parametrize("format", TEXTS)
def test_the_kit(log: Log, format: Literal["jsonl", "text", "csv", "tsv"]) -> None:
    types = {} if format == "text" else {"n": "int"}

    def prepare() -> None:
        for name in ("a.log", "b.log"):
            (log.folder / name).write_text(TEXTS[format])

    paths = (str(log.folder / "a.log"), str(log.folder / "b.log"))
    model = Tail(paths=paths, format=format, types=types, bounded=True, metadata={"file": "filename", "number": "row"})
    check_source(log.folder, lambda: model.source(1), prepare, most=0)


def test_many_lines_in_several_blocks(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.tail.partition.BLOCK_BYTES", 100_000)
    log.add(*range(30_000))
    source = log.source()

    async def work() -> None:
        partition, found, positions = source.open(str(log.path), None), [], []
        while (rows := await partition.read()) is not None:
            found += rows.batch.column("n").to_pylist()
            positions.append((partition.position(), len(found)))
        assert found == list(range(30_000))
        for position, count in positions:
            again = values(await rest(source.open(str(log.path), position)))
            assert [row["n"] for row in again] == list(range(count, 30_000))
            assert [row["row"] for row in again] == list(range(count + 1, 30_001))

    run(work)


def test_a_row_larger_than_a_block(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.tail.partition.BLOCK_BYTES", 64)
    log.path.write_text(f'{{"n": 1, "text": "{"x" * 1000}"}}\n{{"n": 2}}\n')
    assert log.numbers()[0] == [1, 2]
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.tail.partition.RECORD_BYTES", 512)
    with pytest.raises(InvalidArgument, match=r"app\.log: a row is longer than"):
        log.numbers()


def test_a_line_that_cannot_be_read_is_refused_with_its_number(log: Log) -> None:
    log.add(1)
    with open(log.path, "a") as file:
        file.write('no json\n{"n": "x"}\n')
    (first, second, third) = read_all(log.source(metadata={"number": "row"}))
    assert (first["n"], first["why"]) == (1, None)
    assert (second["number"], second["why"].startswith("the line is not JSON")) == (2, True)
    assert (third["number"], third["n"]) == (3, None)
    assert "n" in third["why"]


def test_csv_has_its_header_in_each_file_and_after_a_resume(log: Log) -> None:
    log.path.write_text("\nextra,n\na,1\n")
    numbers, position = log.numbers(format="csv")
    assert numbers == [1]
    with open(log.path, "a") as file:
        file.write("b,2\n")
    numbers, position = log.numbers(position, format="csv")
    assert numbers == [2]
    log.rotate()
    log.path.write_text("n,extra\n3,c\n")
    assert log.numbers(position, format="csv")[0] == [3]


def test_csv_without_a_header_has_the_columns_of_types(log: Log) -> None:
    log.path.write_text("a,1\nb,2,3\nc,4\n")
    rows = read_all(log.source(format="csv", header=False, types={'te"xt': "str", "n": "int"}))
    assert [(row['te"xt'], row["n"]) for row in rows if row["why"] is None] == [("a", 1), ("c", 4)]
    assert [row["row"] for row in rows if row["why"]] == [2]


# ---- Rotation by rename ----------------------------------------------------------------------------------------------


def test_a_renamed_file_is_read_to_its_end_before_the_next_one(log: Log) -> None:
    def rotate() -> None:
        log.rotate()
        log.add(2, to=log.folder / "app.log.1")  # its writer has it open still
        log.add(3)

    log.add(1)
    run(lambda: following(log.source(bounded=False), [(lambda: None, [1]), (rotate, [2, 3]), (rotate, [2, 3])]))


def test_a_renamed_file_is_not_left_before_it_has_settled(log: Log) -> None:
    log.add(1)
    source = log.source(bounded=False, settles=3600.0)

    def rotate() -> None:
        log.rotate()
        log.add(3)

    def late() -> None:
        log.add(2, to=log.folder / "app.log.1")

    run(lambda: following(source, [(lambda: None, [1]), (rotate, []), (late, [2])]))


@pytest.mark.parametrize("times", [1, 2, 3])
def test_files_that_were_rotated_meanwhile_are_all_read(log: Log, times: int) -> None:
    log.add(-1)
    log.rotate()  # an older one, which nobody asks for
    log.add(0, 1)
    numbers, position = log.numbers()
    assert numbers == [0, 1]
    log.add(2)
    for number in range(times):
        log.rotate()
        log.add(10 + number)
    assert log.numbers(position)[0] == [2, *range(10, 10 + times)]


def test_files_with_dates_are_rotated_ones_too(log: Log) -> None:
    log.add(1)
    _, position = log.numbers()
    for day in (27, 28):
        log.path.rename(log.folder / f"app.log-202611{day}")
        log.add(day)
    source = log.source(f"{log.folder}/app.log*")
    assert list(source.partitions()) == [str(log.path)]
    assert log.numbers(position)[0] == [27, 28]


def test_a_packed_one_in_between_is_an_error(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    log.add(1)
    _, position = log.numbers()
    log.rotate()
    log.add(2)
    log.rotate()
    log.add(3)
    packed = log.folder / "app.log.1.gz"
    (log.folder / "app.log.1").rename(packed)
    with pytest.raises(InvalidArgument, match=r"app\.log\.1\.gz is packed, and was not read before: unpack it"):
        log.numbers(position)
    assert log.numbers(position, missing="warn")[0] == [3]
    assert "is packed" in caplog.text


def test_rotated_files_that_paths_takes_in_are_no_partitions(log: Log) -> None:
    log.add(1)
    log.rotate()
    log.add(2)
    (log.folder / "app.log.9.gz").write_bytes(b"")
    log.add(3, to=log.folder / "app-errors.log")
    source = log.source(f"{log.folder}/app*")
    assert [Path(name).name for name in source.partitions()] == ["app-errors.log", "app.log"]


@pytest.mark.parametrize("is_resumed", [False, True])
def test_a_new_name_that_paths_takes_in_otherwise_is_an_error(log: Log, is_resumed: bool) -> None:
    source = log.source(f"{log.folder}/*.log")
    log.add(1)
    read_all(source)
    position = source.open(str(log.path), None)
    _, at = log.numbers()
    log.path.rename(log.folder / "app-1.log")
    log.add(2)
    if is_resumed:
        source = log.source(f"{log.folder}/*.log")
        source.check({str(log.path): at})
    with pytest.raises(InvalidArgument, match=r"app-1\.log is the file that was .*app\.log, and paths takes in both"):
        source.partitions()
    position.close()


def test_a_file_that_was_replaced_by_a_longer_copy_goes_on(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    """As rsync does it."""
    log.add(1, 2)

    def replace() -> None:
        aside = log.folder / "aside"
        shutil.copyfile(log.path, aside)
        log.add(3, to=aside)
        aside.replace(log.path)

    run(lambda: following(log.source(bounded=False), [(lambda: None, [1, 2]), (replace, [3])]))
    assert "was replaced by a file that begins like it" in caplog.text


def test_another_file_of_the_same_bytes_is_not_taken_for_the_one_that_was_renamed(log: Log) -> None:
    log.add(*[7] * 5)
    _, position = log.numbers()
    log.rotate()
    log.add(*[7] * 8)
    assert log.numbers(position)[0] == [7] * 8


def test_the_end_of_a_rotated_file_without_a_line_end_is_an_error(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    log.add(1)
    log.add(2, end="")
    _, position = log.numbers()
    log.rotate()
    log.add(3)
    with pytest.raises(InvalidArgument, match=r"app\.log: 8 bytes at the end of the file that had this name have no "):
        log.numbers(position)
    assert log.numbers(position, missing="warn")[0] == [3]
    assert "8 bytes at the end" in caplog.text
    with open(log.folder / "app.log.1", "a") as file:
        file.write("\n")
    assert log.numbers(position)[0] == [2, 3]


# ---- Rotation by truncation ------------------------------------------------------------------------------------------


def test_what_was_not_read_before_a_truncation_is_read_from_the_copy(log: Log) -> None:
    def rotate(first: int) -> None:
        log.add(first)
        log.copy_and_truncate()
        log.add(first + 1)

    log.add(1)
    steps = [(lambda: None, [1]), (lambda: rotate(2), [2, 3]), (lambda: rotate(4), [4, 5])]
    run(lambda: following(log.source(bounded=False), steps))


def test_a_truncation_while_nobody_reads(log: Log) -> None:
    log.add(1)
    _, position = log.numbers()
    log.add(2)
    log.copy_and_truncate()
    log.add(*range(3, 9))  # longer than before
    assert log.numbers(position)[0] == [2, *range(3, 9)]


@pytest.mark.parametrize("count", [1, 50], ids=["shorter", "longer"])
def test_a_truncation_without_a_copy_is_told(log: Log, count: int, caplog: pytest.LogCaptureFixture) -> None:
    def cut() -> None:
        with open(log.path, "r+") as file:
            file.truncate(0)
        log.add(*range(100, 100 + count))

    log.add(*range(10))
    source = log.source(bounded=False)
    run(lambda: following(source, [(lambda: None, list(range(10))), (cut, list(range(100, 100 + count)))]))
    assert "app.log was truncated: it was read up to byte 90, and what came after that" in caplog.text


def test_lines_that_were_seen_before_a_truncation_and_not_read_are_an_error(
    log: Log, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.tail.partition.BLOCK_BYTES", 32)
    log.add(1, 2, 3, 4, 5, 6)

    async def work(source: TailSource) -> list[int]:
        (name,) = source.partitions()
        partition = source.open(name, None)
        assert await read_so_many(partition, 3) == [1, 2, 3]
        os.truncate(log.path, 0)
        log.add(7)
        return await read_so_many(partition, 1)

    before = log.path.read_bytes()
    with pytest.raises(InvalidArgument, match=r"truncated: it was read up to byte 27, and 27 bytes more were there"):
        run(lambda: work(log.source(bounded=False)))
    log.path.write_bytes(before)
    assert run(lambda: work(log.source(bounded=False, missing="warn"))) == [7]
    assert "27 bytes more were there" in caplog.text


# ---- Files that are gone ---------------------------------------------------------------------------------------------


def test_a_file_that_is_gone_at_a_resume_is_an_error(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    log.add(1)
    _, position = log.numbers()
    log.path.unlink()
    log.add(2)
    told = r'app\.log: the file that had this name was read up to byte 9, and is not .* set missing = "warn"'
    with pytest.raises(InvalidArgument, match=told):
        log.source().check({str(log.path): position})
    with pytest.raises(InvalidArgument, match=told):
        log.source().open(str(log.path), position)
    assert log.numbers(position, missing="warn")[0] == [2]
    assert "was read up to byte 9" in caplog.text


def test_a_file_that_was_read_and_removed_is_no_error(log: Log) -> None:
    log.add(1)
    source = log.source(bounded=False)

    async def work() -> Json:
        partition = await following(source, [(lambda: None, [1])])
        log.path.unlink()
        reading = asyncio.create_task(partition.read())
        while "left" not in partition.position():
            await asyncio.sleep(0)
        reading.cancel()
        partition.close()
        return partition.position()

    position = run(work)
    log.source().check({str(log.path): position})
    assert log.numbers(position)[0] == []
    log.add(2)
    assert log.numbers(position)[0] == [2]


def test_a_file_that_was_renamed_before_its_first_line_was_read(log: Log) -> None:
    log.path.touch()
    _, position = log.numbers()
    log.add(1)
    log.rotate()
    log.add(2)
    assert log.numbers(position)[0] == [1, 2]


# ---- Descriptions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["s3://bucket/logs/*.log", "-", "/dev/null"])
def test_what_does_not_grow_is_refused(path: str) -> None:
    with pytest.raises(InvalidArgument, match=f"{re.escape(path)} does not grow as files of this machine do"):
        Tail(paths=(path,), types={"n": "int"}).source(1)


@pytest.mark.parametrize(
    ("keys", "error"),
    [
        ({}, "types: name the columns with their types"),
        ({"format": "text", "types": {"n": "int"}}, "lines of text have one column, 'value'"),
        ({"types": {"n": "int"}, "metadata": {"n": "row"}}, "there is a column 'n' already"),
        ({"types": {"n": "timestamp[parsecs]"}}, "there is no type"),
    ],
)
def test_wrong_columns_are_refused(log: Log, keys: dict[str, Any], error: str) -> None:
    with pytest.raises(InvalidArgument, match=error):
        Tail(paths=(str(log.path),), **keys).source(1)


def query(log: Log, **options: str) -> Pipeline:
    written = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    text = f"""
        CREATE TABLE t (n BIGINT, file TEXT METADATA FROM 'filename')
        WITH (connector = 'tail', path = '{log.folder}/*.log', {written});
        CREATE TABLE out WITH (connector = 'filesystem', path = '{log.folder / "out"}', format = 'json');
        INSERT INTO out SELECT n, file FROM t;
    """
    return Script("query.sql", text, []).pipeline


def shown(folder: Path) -> list[dict[str, Any]]:
    lines = [line for part in sorted((folder / "out").glob("part-*")) for line in part.read_text().splitlines()]
    return sorted((json.loads(line) for line in lines), key=lambda row: row["n"])


def test_a_query_goes_on_with_what_was_added(log: Log) -> None:
    other = log.folder / "b.log"
    log.add(1, 2)
    log.add(3, to=other)
    pipeline = query(
        log, format="json", **{"source.bounded": "true", "source.missing": "warn", "source.settles": "0 s"}
    )
    keys = {**described(pipeline), "parallelism": 2, "checkpoints": {"place": str(log.folder / "state")}}
    run_pipeline(pipeline_of(keys))
    told = [{"n": 1, "file": str(log.path)}, {"n": 2, "file": str(log.path)}, {"n": 3, "file": str(other)}]
    assert shown(log.folder) == told


@pytest.mark.parametrize(
    ("format", "columns", "text", "values"),
    [
        ("json", "n BIGINT, j JSON", '{"j": [1], "n": 1}\n', '{"n":1,"j":"[1]"}'),
        ("json", "value JSON", "[1]\n", '{"value":"[1]"}'),
        ("raw_string", "value TEXT", "[1]\n", '{"value":"[1]"}'),
        ("csv", "n BIGINT, day DATE", "day;n\n1.2.2026;1\n", '{"n":1,"day":"2026-02-01"}'),
    ],
)
def test_formats_of_sql(log: Log, format: str, columns: str, text: str, values: str) -> None:
    log.path.write_text(text)
    more = {"json": "", "csv": ", 'csv.delimiter' = ';', 'csv.date_format' = '%d.%m.%Y'"}.get(format, "")
    if columns == "value JSON":
        more = ", 'json.unstructured' = 'true'"
    (table, out) = (
        f"CREATE TABLE t ({columns}) WITH (connector = 'tail', path = '{log.path}', format = '{format}',"
        f" 'source.bounded' = 'true'{more});",
        f"CREATE TABLE o WITH (connector = 'filesystem', path = '{log.folder / 'out'}', format = 'json');",
    )
    run_pipeline(Script("query.sql", f"{table} {out} INSERT INTO o SELECT * FROM t;", []).pipeline)
    assert [part.read_text().strip() for part in (log.folder / "out").glob("part-*")] == [values]


def test_formats_that_do_not_grow_are_refused_in_sql(log: Log) -> None:
    with pytest.raises(InvalidArgument, match="files of the format parquet do not grow: use json, raw_string, csv or"):
        _ = query(log, format="parquet")
    with pytest.raises(InvalidArgument, match=r"there is no option source\.limit here"):
        _ = query(log, format="json", **{"source.limit": "3"})


def test_a_pipeline_goes_on_without_a_file_that_is_gone_when_it_is_told_to(log: Log) -> None:
    described_: dict[str, Any] = {
        "name": "logs",
        "source": {"type": "tail", "paths": [str(log.path)], "types": {"n": "int"}, "settles": 0.01},
        "sinks": [{"type": "parts", "path": str(log.folder / "out"), "format": "jsonl"}],
        "checkpoints": {"place": str(log.folder / "state"), "every": 0.01},
    }

    def until_shown(count: int, **source: Any) -> None:
        stop = StopRequest()

        def hear(_: object) -> None:
            if len(shown(log.folder)) == count:
                stop.request()

        keys = {**described_, "source": {**described_["source"], **source}}
        run_pipeline(pipeline_of(keys), stop=stop, progress=hear)
        assert [row["n"] for row in shown(log.folder)] == list(range(count))

    log.add(0, 1)
    until_shown(2)
    log.path.unlink()
    log.add(2)
    with pytest.raises(InvalidArgument, match=r"app\.log: the file that had this name was read up to byte 18"):
        until_shown(3)
    until_shown(3, missing="warn", settles=0.02)


def test_the_example_of_the_page_is_a_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[3] / "docs" / "connectors" / "tail.md").read_text()
    (example,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("logs").mkdir()
    Path("logs/a.log").write_text('{"path": "/", "millis": 700}\n{"path": "/x", "millis": 7}\n')
    select = (
        "CREATE TABLE out WITH (connector = 'single_file', path = 'out.jsonl', format = 'json'); INSERT INTO out SELECT"
    )
    text = example.replace("SELECT", select).replace(
        "format = 'json'\n", "format = 'json', 'source.bounded' = 'true'\n"
    )
    run_pipeline(Script("query.sql", text, []).pipeline)
    assert Path("out.jsonl").read_text() == '{"path":"/","millis":700}\n'
