"""Files in object stores: which ones a URL names, what happens when the store does not answer, and what is missing."""

from __future__ import annotations

import asyncio
import builtins
import io
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pytest
from partitions import read_all, rest, run

import object_store_server
from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.files import Files
from arroyo_udf_plugin.engine.connectors.inputs import input_files
from arroyo_udf_plugin.engine.connectors.interrupt import Interrupt
from arroyo_udf_plugin.engine.connectors.object_store import ObjectFile, objects, open_object_store
from arroyo_udf_plugin.engine.connectors.sink import FileSink

NAMES = (
    "in/a.csv",
    "in/b.csv",
    "in/.hidden.csv",
    "in/_SUCCESS",
    "in/sub/c.csv",
    "in/sub/deep/d.csv",
    "in/sub/.e.csv",
    "in/f [1].csv",
    "in/ä.csv",
    "in.csv",
)


@pytest.fixture(scope="module")
def bucket(object_store: object_store_server.Server) -> str:
    url = object_store.bucket("names")
    store = open_object_store(url)
    for name in NAMES:
        obstore.put(store, name, b"a\n1\n")
    return url


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("in/a.csv", ["in/a.csv"]),
        ("in", ["in/a.csv", "in/b.csv", "in/f [1].csv", "in/ä.csv"]),
        ("in/", ["in/a.csv", "in/b.csv", "in/f [1].csv", "in/ä.csv"]),
        ("", ["in.csv"]),
        ("in.csv", ["in.csv"]),
        ("in/sub", ["in/sub/c.csv"]),
        ("in/*.csv", ["in/a.csv", "in/b.csv", "in/f [1].csv", "in/ä.csv"]),
        ("in/?.csv", ["in/a.csv", "in/b.csv", "in/ä.csv"]),
        ("in/[ab].csv", ["in/a.csv", "in/b.csv"]),
        ("in/[!ab].csv", ["in/ä.csv"]),
        ("in/[a-b].csv", ["in/a.csv", "in/b.csv"]),
        ("in/f [[]1].csv", ["in/f [1].csv"]),
        ("in/*/*.csv", ["in/sub/c.csv"]),
        ("in/**/*.csv", ["in/a.csv", "in/b.csv", "in/f [1].csv", "in/sub/c.csv", "in/sub/deep/d.csv", "in/ä.csv"]),
        ("*.csv", ["in.csv"]),
        ("in/a*c/x", []),
        ("none", []),
        ("in/none.csv", []),
    ],
)
def test_what_a_url_names(bucket: str, url: str, names: list[str]) -> None:
    assert [each.name for each in objects(f"{bucket}/{url}", 5)] == [f"{bucket}/{name}" for name in names]


def test_patterns_match_as_in_a_local_folder(bucket: str, tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for pattern in ("in/*.csv", "in/?.csv", "in/[!ab].csv", "in/f [[]1].csv", "in/*/*.csv", "in/**/*.csv", "**/a.csv"):
        local = [Path(file.name).relative_to(tmp_path).as_posix() for file in input_files([tmp_path / pattern], "csv")]
        assert [each.name.removeprefix(bucket + "/") for each in objects(f"{bucket}/{pattern}", 5)] == local


def test_a_url_without_objects_is_named(bucket: str) -> None:
    with pytest.raises(InvalidArgument, match=r"names/none: there is no such object, and no object in such a folder"):
        input_files([f"{bucket}/none"], None)


def test_a_bucket_that_does_not_exist_is_named_at_once(
    object_store: object_store_server.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("it waits"))
    with pytest.raises(InvalidArgument, match=r"s3://nobucket/in: .* 404 Not Found"):
        input_files(["s3://nobucket/in"], None)


def test_a_file_url_is_a_local_path(tmp_path: Path) -> None:
    path = tmp_path / "a b.csv"
    path.write_text("a\n1\n")
    source = Files(paths=(path.as_uri(),)).source(1)
    assert list(source.partitions()) == [str(path)]
    assert len(read_all(source)) == 1


@pytest.mark.parametrize(
    ("url", "why"), [("nope://x/y", "nope://x/y cannot be opened: .*recognise URL"), ("s3://", "s3:")]
)
def test_urls_that_are_none(url: str, why: str) -> None:
    with pytest.raises(InvalidArgument, match=why):
        list(objects(url, 0))


def test_a_store_without_obstore_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import_ = builtins.__import__

    def without(name: str, *arguments: Any) -> Any:
        if name.startswith("obstore"):
            raise ModuleNotFoundError("No module named 'obstore'", name="obstore")
        return import_(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InvalidArgument, match=r"s3://rows/in/a\.csv: .* pip install 'arroyo_udf_plugin\[engine\]'"):
        input_files(["s3://rows/in/a.csv"], None)
    with pytest.raises(InvalidArgument, match=r"s3://rows/out: .* pip install 'arroyo_udf_plugin\[engine\]'"):
        FileSink("s3://rows/out/b.csv", pa.schema({"a": pa.string()}))


def test_an_object_as_a_file() -> None:
    store = open_object_store("memory://file")
    obstore.put(store, "a", b"0123456789")
    (found_,) = objects("memory://file/a", 0)
    file = ObjectFile(found_, None)
    assert (file.read(3), file.tell(), file.read(), file.read(3)) == (b"012", 3, b"3456789", b"")
    assert (file.seek(-4, io.SEEK_END), file.read(2), file.seek(1, io.SEEK_CUR), file.read()) == (6, b"67", 9, b"9")
    obstore.put(store, "a", b"9876543210")
    file.seek(0)
    with pytest.raises(InvalidArgument, match="memory://file/a changed after it was begun"):
        file.read(1)


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[object_store_server.Server]:
    """A server that may be killed."""
    with object_store_server.server(tmp_path) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


def large(server: object_store_server.Server) -> str:
    url = server.bucket("large") + "/a.csv"
    obstore.put(open_object_store("s3://large"), "a.csv", b"a\n" + b"".join(b"%09d\n" % n for n in range(300_000)))
    return url


def test_a_store_that_is_killed_and_comes_back_loses_nothing(
    private: object_store_server.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.blocks.BLOCK_BYTES", 100_000)
    wait = Interrupt.wait
    waits: list[float | None] = []

    def restarting(interrupt: Interrupt, seconds: float | None, fd: int | None = None) -> bool:
        if len(waits) == 2:
            private.restart()
        waits.append(seconds)
        return wait(interrupt, seconds, fd)

    monkeypatch.setattr(Interrupt, "wait", restarting)
    source = Files(paths=(large(private),)).source(1)

    async def work() -> int:
        (name,) = source.partitions()
        partition = source.open(name, None)
        rows = await partition.read()
        assert rows is not None
        private.kill()
        count: int = rows.batch.num_rows + sum(rows.batch.num_rows for rows in await rest(partition))
        partition.close()
        return count

    assert run(work) == 300_000
    assert len(waits) >= 3


def test_a_partition_closes_while_its_store_is_dead(
    private: object_store_server.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.blocks.BLOCK_BYTES", 100_000)
    source = Files(paths=(large(private),)).source(1)
    wait, waiting = Interrupt.wait, threading.Event()

    def noted(interrupt: Interrupt, seconds: float | None, fd: int | None = None) -> bool:
        waiting.set()
        return wait(interrupt, 1000, fd)

    monkeypatch.setattr(Interrupt, "wait", noted)

    async def work() -> None:
        (name,) = source.partitions()
        partition = source.open(name, None)
        assert await partition.read() is not None
        private.kill()
        reads = asyncio.ensure_future(rest(partition))
        await asyncio.to_thread(waiting.wait)
        partition.close()
        reads.cancel()

    run(work)
    assert "read ahead" not in [thread.name for thread in threading.enumerate()]


def test_a_dead_store_is_named_after_a_while(
    private: object_store_server.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.inputs._PATIENCE", 0.2)
    private.bucket("rows")
    private.kill()
    with pytest.raises(InvalidArgument, match=r"s3://rows/in/a\.csv: the store cannot be asked: "):
        input_files(["s3://rows/in/a.csv"], None)


def test_a_look_for_new_files_waits_for_the_store_until_the_source_is_closed(
    private: object_store_server.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Files(paths=(large(private).rpartition("/")[0],), watch=1.0).source(1)
    source.partitions()
    wait, waiting = Interrupt.wait, threading.Event()

    def noted(interrupt: Interrupt, seconds: float | None, fd: int | None = None) -> bool:
        waiting.set()
        return wait(interrupt, seconds, fd)

    monkeypatch.setattr(Interrupt, "wait", noted)

    def look_while_dead(then: Callable[[], None]) -> Sequence[str]:
        waiting.clear()
        private.kill()
        with ThreadPoolExecutor() as pool:
            names = pool.submit(source.partitions)
            waiting.wait()
            then()
            return names.result()

    assert look_while_dead(private.restart) == ["s3://large/a.csv"]
    with pytest.raises(InvalidArgument, match="s3://large: the store cannot be asked"):
        look_while_dead(source.close)
