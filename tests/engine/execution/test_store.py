"""The checkpoints' store: a name is created once, whoever tries, and what was written is there (slatedb's rule)."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import obstore
import pytest

import object_store_server
from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.disk import using
from arroyo_udf_plugin.engine.execution import store as store_module
from arroyo_udf_plugin.engine.execution.store import AlreadyThere, LocalStore, ObjectStore, Store, open_store
from arroyo_udf_plugin.testing.disk import Crashed, SimulatedDisk

# ---- Places ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object_store_server.Server]:
    with (
        object_store_server.server(tmp_path_factory.mktemp("object_store")) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in server.environment.items():
            patch.setenv(name, value)
        yield server


@pytest.fixture(params=["folder", "url of a folder", "memory", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "s3":
        server: object_store_server.Server = request.getfixturevalue("server")
        return f"{server.bucket('store')}/{tmp_path.name}"
    places = {"folder": "{0}/a/b", "url of a folder": "file://{0}/a%20b", "memory": "memory://{0}"}
    return places[request.param].format(tmp_path)


def test_what_was_put_is_there(place: str) -> None:
    store = open_store(place)
    store.put("states/1/0", b"one")
    store.put("states/1/0", b"two")
    store.put("states/1/1", b"")
    store.put("rows/\N{EURO SIGN} %2F", b"three")
    again = open_store(place)
    assert (again.get("states/1/0"), again.get("states/1/1")) == (b"two", b"")
    assert again.get("rows/\N{EURO SIGN} %2F") == b"three"
    assert again.names("") == ["rows/\N{EURO SIGN} %2F", "states/1/0", "states/1/1"]


@pytest.mark.parametrize("large", [5, 6])
def test_what_is_large_is_loaded_into_a_file_of_its_own(
    place: str, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody who removes it from the store takes it away."""
    monkeypatch.setattr(store_module, "LARGE", large)
    store = open_store(place)
    store.put("states/1", memoryview(b"large"))
    loaded = store.load("states/1")
    store.delete("states/1")
    assert isinstance(loaded, memoryview) == (large == 5)
    assert loaded == b"large"
    with pytest.raises(FileNotFoundError):
        store.load("states/1")


def test_names_begin_with_the_prefix(place: str) -> None:
    store = open_store(place)
    assert store.names("epochs/") == []
    for name in ("epochs/2", "epochs/10", "epochs/1", "epochsx", "rows/1"):
        store.put(name, b"x")
    assert store.names("epochs/") == ["epochs/1", "epochs/10", "epochs/2"]
    assert store.names("epochs/1") == ["epochs/1", "epochs/10"]
    assert store.names("epochs") == ["epochs/1", "epochs/10", "epochs/2", "epochsx"]


def test_a_name_that_is_not_there(place: str) -> None:
    store = open_store(place)
    with pytest.raises(FileNotFoundError):
        store.get("epochs/1")
    store.delete("epochs/1")
    store.put("epochs/1", b"x")
    store.delete("epochs/1")
    store.delete("epochs/1")
    assert store.names("") == []


def test_a_store_is_cleared_and_its_neighbours_stay(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_MANY", 2)
    store, other = open_store(f"{place}/job_1"), open_store(f"{place}/job_10")
    store.clear()
    for name in ("epochs/1", "epochs/2", "states/1", "rows/a/b", "x"):
        store.put(name, b"x")
    other.put("epochs/1", b"x")
    store.clear()
    store.clear()
    assert (store.names(""), other.names("")) == ([], ["epochs/1"])


def test_many_names_are_removed_with_one_request(tmp_path: Path) -> None:
    asked: list[int] = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(obstore, name)

        def delete(self, store: Any, paths: Any) -> None:
            asked.append(len(paths))
            obstore.delete(store, paths)

    store = open_store(f"memory://{tmp_path}")
    assert isinstance(store, ObjectStore)
    for number in range(2500):
        store.put(f"states/{number}", b"x")
    store._obstore = Counting()  # type: ignore[assignment]
    store.clear()
    assert (sum(asked), max(asked)) == (2500, 1000)
    assert store.names("") == []


def test_the_second_to_create_a_name_is_told(place: str) -> None:
    store = open_store(place)
    store.create("epochs/1", b"first")
    with pytest.raises(AlreadyThere, match="epochs/1 is there already"):
        store.create("epochs/1", b"second")
    assert store.get("epochs/1") == b"first"
    store.delete("epochs/1")
    store.create("epochs/1", b"third")
    assert store.get("epochs/1") == b"third"


CREATOR = """
import sys
from arroyo_udf_plugin.engine.execution.store import AlreadyThere, open_store
store, own = open_store(sys.argv[1]), sys.argv[2].encode()
print("ready", flush=True)
sys.stdin.readline()
for number in range(10):
    try:
        store.create(f"epochs/{number}", own * 1000)
        print(number)
    except AlreadyThere:
        pass
"""


@pytest.mark.parametrize("place", ["folder", "s3"], indirect=True)
def test_of_eight_processes_one_creates_a_number(place: str) -> None:
    creators = [
        subprocess.Popen(
            [sys.executable, "-c", CREATOR, place, str(which)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for which in range(8)
    ]
    for each in creators:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in creators:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    won = {which: [int(line) for line in each.communicate()[0].split()] for which, each in enumerate(creators)}
    assert sorted(number for numbers in won.values() for number in numbers) == list(range(10))
    store = open_store(place)
    for which, numbers in won.items():
        for number in numbers:
            assert store.get(f"epochs/{number}") == str(which).encode() * 1000


def test_threads_share_a_store(place: str) -> None:
    store, won = open_store(place), []

    def create(which: int) -> None:
        for number in range(5):
            try:
                store.create(f"epochs/{number}", bytes([which]))
            except AlreadyThere:
                continue
            won.append(number)

    threads = [threading.Thread(target=create, args=[which]) for which in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(won) == list(range(5))


# ---- A folder --------------------------------------------------------------------------------------------------------


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.fixture(params=["unnamed files", "no unnamed files"])
def local(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalStore:
    if request.param == "no unnamed files":
        real = os.open

        def refuse(path: Any, flags: int, *rest: Any, **others: Any) -> int:
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(errno.EOPNOTSUPP, "Operation not supported")
            return real(path, flags, *rest, **others)

        monkeypatch.setattr(os, "open", refuse)
    return LocalStore(tmp_path / "store")


def test_nothing_else_stays_in_the_folder(local: LocalStore, tmp_path: Path) -> None:
    local.put("states/1", b"x")
    local.put("states/1", b"y")
    local.create("epochs/1", b"z")
    with pytest.raises(AlreadyThere):
        local.create("epochs/1", b"other")
    assert files(tmp_path / "store") == ["epochs/1", "states/1"]
    assert local.get("states/1") == b"y"


def test_a_failure_leaves_no_name(local: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    local.put("states/1", b"old")
    monkeypatch.setattr(os, "fsync", full)
    for write in (local.put, local.create):
        with pytest.raises(InvalidArgument, match=r"^cannot write .*store/states/1: No space left on device$"):
            write("states/1", b"new")
    monkeypatch.undo()
    assert files(tmp_path / "store") == ["states/1"]
    assert local.get("states/1") == b"old"


def test_bytes_are_durable_before_their_name_and_the_name_before_the_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kernel is told: the file, then its name, then the folder. Before, once, the folder's own name: a process
    that was killed may have made it."""
    told: list[str] = []
    for call in ("fsync", "link", "replace"):
        real = getattr(os, call)

        def noted(*arguments: Any, _call: str = call, _real: Any = real, **others: Any) -> Any:
            if _call == "fsync":
                told.append("folder" if os.path.isdir(f"/proc/self/fd/{arguments[0]}") else "file")
            else:
                told.append(_call)
            return _real(*arguments, **others)

        monkeypatch.setattr(os, call, noted)
    store = LocalStore(tmp_path)
    store.put("1", b"x")
    store.create("2", b"x")
    assert told == ["folder", "file", "link", "folder", "file", "link", "folder"]
    told.clear()
    store.put("1", b"y")
    assert told == ["file", "link", "link", "replace", "folder"], "a name cannot be linked over"


def test_a_new_folder_is_durable_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def noted(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        real(fd)

    monkeypatch.setattr(os, "fsync", noted)
    LocalStore(tmp_path / "a" / "b").create("epochs/1", b"x")
    folders = [str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b"), str(tmp_path / "a" / "b" / "epochs")]
    assert [each for each in synced if each in folders] == folders


def test_a_place_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgument, match="file"):
        open_store(str(tmp_path / "file")).put("epochs/1", b"x")


# ---- An object store -------------------------------------------------------------------------------------------------


class Losing:
    """obstore, whose answers get lost: a call is done, and then fails."""

    def __init__(self, lost: int) -> None:
        self._lost = lost
        self.exceptions = obstore.exceptions

    def __getattr__(self, name: str) -> Any:
        real = getattr(obstore, name)

        def call(*arguments: Any, **others: Any) -> Any:
            result = real(*arguments, **others)
            if self._lost:
                self._lost -= 1
                raise obstore.exceptions.GenericError("connection closed before message completed")
            return result

        return call


def losing(place: str, lost: int) -> Store:
    store = open_store(place)
    assert isinstance(store, ObjectStore)
    store._obstore = Losing(lost)  # type: ignore[assignment]
    return store


def test_an_answer_that_got_lost_is_no_conflict(tmp_path: Path) -> None:
    """The object was created; the repeated call finds it, with our own bytes."""
    place = f"memory://{tmp_path}"
    losing(place, 1).create("epochs/1", b"ours")
    assert open_store(place).get("epochs/1") == b"ours"
    with pytest.raises(AlreadyThere):
        losing(place, 1).create("epochs/1", b"another's")
    assert open_store(place).get("epochs/1") == b"ours"


def test_other_calls_are_repeated_too(tmp_path: Path) -> None:
    place = f"memory://{tmp_path}"
    losing(place, 1).put("a", b"x")
    assert losing(place, 1).get("a") == b"x"
    assert losing(place, 1).names("") == ["a"]
    losing(place, 1).delete("a")
    assert open_store(place).names("") == []


def test_a_bucket_that_is_not_there(server: object_store_server.Server) -> None:
    for write in (open_store("s3://no-such-bucket/a").put, open_store("s3://no-such-bucket/a").create):
        with pytest.raises(InvalidArgument, match="s3://no-such-bucket/a: there is no such bucket"):
            write("epochs/1", b"x")


def test_a_server_that_restarts(server: object_store_server.Server, tmp_path: Path) -> None:
    store = open_store(f"{server.bucket('restarts')}/{tmp_path.name}")
    store.create("epochs/1", b"x")
    server.kill()
    later = threading.Timer(0.3, server.restart)
    later.start()
    store.create("epochs/2", b"y")
    later.join()
    assert (store.get("epochs/1"), store.get("epochs/2")) == (b"x", b"y")
    assert store.names("epochs/") == ["epochs/1", "epochs/2"]


@pytest.mark.parametrize("number", [0, 1])
def test_a_folder_that_a_killed_process_has_made_survives_a_loss_of_power(tmp_path: Path, number: int) -> None:
    """It was killed between making it and the fsync of the folder above."""
    world, name = SimulatedDisk(tmp_path), "epochs/1"
    undisturbed = world.process()
    with using(undisturbed):
        LocalStore(tmp_path / "a").create(name, b"x")
    made = [at for at, step in enumerate(undisturbed.steps) if step.operation == "mkdir"][number]
    with using(world.process(stop_at=made, after=True)), pytest.raises(Crashed):
        LocalStore(tmp_path / "b").create(name, b"x")
    with using(world.process()):
        LocalStore(tmp_path / "b").create(name, b"x")
    world.lose_power()
    assert LocalStore(tmp_path / "b").get(name) == b"x"


def test_what_killed_processes_have_left_goes_when_the_next_one_writes_there(tmp_path: Path) -> None:
    """Unless it may still be written."""
    store = LocalStore(tmp_path)
    store.put("states/1", b"state")
    now, old = (tmp_path / "states" / f".{digit * 16}.partial" for digit in "ab")
    other = tmp_path / "states" / ".others.partial"
    for path in (now, old, other):
        path.touch()
    for path in (old, other):
        os.utime(path, (0, 0))
    LocalStore(tmp_path).put("states/2", b"state")
    assert sorted(path.name for path in (tmp_path / "states").iterdir()) == [now.name, other.name, "1", "2"]
