"""What of a disk survives when the power fails."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from arroyo_udf_plugin.testing.disk import Crashed, ProcessDisk, SimulatedDisk

SEEDS = range(60)


@pytest.fixture
def disk(folder: Path) -> SimulatedDisk:
    folder.mkdir()
    return SimulatedDisk(folder)


def written(process: ProcessDisk, path: Path, data: bytes, sync: bool = False) -> None:
    with process.file(process.create(path)) as file:
        file.write(data)
        if sync:
            process.fsync(file.fileno())


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_what_is_synced_stays(disk: SimulatedDisk, folder: Path) -> None:
    process = disk.process()
    process.make(folder / "a" / "b")
    written(process, folder / "a" / "b" / "file", b"bytes", sync=True)
    process.sync(folder / "a" / "b")
    disk.lose_power()
    assert tree(folder) == {"a/b/file": b"bytes"}


def test_a_file_without_its_folder_and_a_name_without_its_bytes_are_lost(disk: SimulatedDisk, folder: Path) -> None:
    process = disk.process()
    written(process, folder / "synced", b"bytes", sync=True)
    written(process, folder / "named", b"bytes")
    disk.lose_power()
    assert tree(folder) == {}
    written(process, folder / "named", b"bytes")
    process.sync(folder)
    disk.lose_power()
    assert tree(folder) == {"named": b""}


def test_a_folder_that_is_not_synced_is_lost_with_all_in_it(disk: SimulatedDisk, folder: Path) -> None:
    process = disk.process()
    process.mkdir(folder / "a")
    written(process, folder / "a" / "file", b"bytes", sync=True)
    process.sync(folder / "a")
    disk.lose_power()
    assert tree(folder) == {}
    assert not (folder / "a").exists()


def test_a_removal_and_a_rename_are_undone(disk: SimulatedDisk, folder: Path) -> None:
    (folder / "before").write_bytes(b"before")
    process = disk.process()
    written(process, folder / "one", b"one", sync=True)
    process.sync(folder)
    process.replace(folder / "one", folder / "two")
    process.unlink(folder / "before")
    disk.lose_power()
    assert tree(folder) == {"before": b"before", "one": b"one"}
    process.replace(folder / "one", folder / "before")
    process.sync(folder)
    disk.lose_power()
    assert tree(folder) == {"before": b"one"}


def test_by_chance_each_change_is_kept_or_lost_as_a_whole(folder: Path) -> None:
    found = set()
    for seed in SEEDS:
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():
            path.unlink()
        disk = SimulatedDisk(folder)
        process = disk.process()
        written(process, folder / "old", b"old", sync=True)
        written(process, folder / "new", b"new", sync=True)
        process.sync(folder)
        process.replace(folder / "new", folder / "old")
        written(process, folder / "torn", b"torn")
        disk.lose_power(random.Random(seed))
        left = tree(folder)
        assert (left["old"], left.get("new")) in ((b"old", b"new"), (b"new", None))
        torn = left.get("torn", b"lost")
        assert torn == b"lost" or b"torn".startswith(torn) or torn == bytes(4)
        found.add((left["old"], torn))
    assert {torn for _, torn in found} >= {b"lost", b"", b"torn", bytes(4)}


def test_a_stopped_process_changes_nothing_any_more(disk: SimulatedDisk, folder: Path) -> None:
    process = disk.process(stop_at=2)
    with process.file(process.create(folder / "file")) as file:
        file.write(b"one")
        with pytest.raises(Crashed):
            process.replace(folder / "file", folder / "other")
        assert file.write(b"two") == 3
        with pytest.raises(Crashed):
            process.unlink(folder / "file")
    assert tree(folder) == {"file": b"one"}
    assert process.reached is not None
    assert process.reached.operation == "rename"
    assert process.reached.caller.endswith(
        f"test_disk.py:{test_a_stopped_process_changes_nothing_any_more.__code__.co_firstlineno + 5}"
    )


def test_after_a_step(disk: SimulatedDisk, folder: Path) -> None:
    process = disk.process(stop_at=0, after=True)
    with pytest.raises(Crashed):
        process.mkdir(folder / "a")
    assert (folder / "a").is_dir()


def test_an_empty_folder_that_is_not_synced_is_lost_and_can_be_made_again(disk: SimulatedDisk, folder: Path) -> None:
    process = disk.process()
    process.mkdir(folder / "a")
    disk.lose_power()
    assert not (folder / "a").exists()
    process.make(folder / "a")
    disk.lose_power()
    assert (folder / "a").exists()
