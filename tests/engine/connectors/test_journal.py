"""The journal of deliveries: what is durable is read, what was torn is not, and what is damaged is an error."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from arroyo_udf_plugin.engine.connectors.disk import Disk, using
from arroyo_udf_plugin.engine.connectors.http import journal as journals
from arroyo_udf_plugin.engine.connectors.http.journal import Delivery, Journal, JournalReader, ends_of
from arroyo_udf_plugin.errors import InvalidArgument


def delivery(n: int, received: int = 0, key: str = "") -> Delivery:
    return Delivery(received, key, [b'{"n": %d}' % n, b'{"n":\n%d}' % n])


def write(folder: Path, *batches: Sequence[int]) -> None:
    with Journal(folder, 3600) as journal:
        for batch in batches:
            journal.add([delivery(n, key=f"key {n}") for n in batch])


def numbers(folder: Path, at: int = 0) -> list[str]:
    reader = JournalReader(folder, at)
    try:
        return [each.key for each, _ in reader.deliveries(ends_of(folder)[1])]
    finally:
        reader.close()


def keys(*numbers: int) -> list[str]:
    return [f"key {n}" for n in numbers]


def test_deliveries_are_read_from_any_one_on(tmp_path: Path) -> None:
    write(tmp_path, [1, 2], [3])
    write(tmp_path, [4])  # another process
    reader = JournalReader(tmp_path, 0)
    found = list(reader.deliveries(ends_of(tmp_path)[1]))
    reader.close()
    assert [each.rows for each, _ in found] == [[b'{"n": %d}' % n, b'{"n": %d}' % n] for n in range(1, 5)]
    for number, (_, behind) in enumerate(found, 1):
        assert numbers(tmp_path, behind) == keys(*range(1 + number, 5))
    with Journal(tmp_path, 3600) as journal:
        assert journal.knows("key 4")
        assert not journal.knows("key 5")


def test_a_journal_has_one_process(tmp_path: Path) -> None:
    with Journal(tmp_path, 3600), pytest.raises(InvalidArgument, match="is used by another process"):
        Journal(tmp_path, 3600)
    write(tmp_path, [1])


@pytest.mark.parametrize("seed", range(20))
def test_a_batch_that_was_torn(seed: int, tmp_path: Path) -> None:
    """The power was lost while it was written: any part of it may be there. What comes next is behind whole ones."""
    chance = random.Random(seed)
    write(tmp_path, [1], [2, 3])
    (path,) = tmp_path.glob("*.journal")
    whole = path.read_bytes()
    begin = len(whole) // 3
    torn = bytearray(whole[: chance.randrange(begin, len(whole))])
    for place in range(begin, len(torn)):
        torn[place] = torn[place] if chance.random() < 0.9 else 0
    path.write_bytes(torn)
    found = numbers(tmp_path)
    assert found == keys(1, 2, 3)[: len(found)]
    write(tmp_path, [4], [5])
    assert numbers(tmp_path) == [*found, *keys(4, 5)]


def test_what_was_confirmed_and_is_damaged_is_an_error(tmp_path: Path) -> None:
    """Each byte of a batch that has a later one in its file, or in another."""
    write(tmp_path / "whole", [1], [2])
    (path,) = (tmp_path / "whole").glob("*.journal")
    whole = path.read_bytes()
    for place in range(len(whole) // 2):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        for read in (ends_of, lambda folder: Journal(folder, 3600)):
            with pytest.raises(InvalidArgument, match=f"{path} is damaged at byte 0"):
                read(tmp_path / "whole")
    path.write_bytes(whole)
    write(tmp_path / "whole", [3])
    path.write_bytes(whole[:-1])
    with pytest.raises(InvalidArgument, match=f"{path} is damaged"):
        Journal(tmp_path / "whole", 3600)
    with pytest.raises(InvalidArgument, match=f"{path} is damaged"):
        numbers(tmp_path / "whole")


class FullDisk(Disk):
    """A disk that fails when something is to be made durable, or before it is whole."""

    def __init__(self) -> None:
        self.is_full = False

    def fsync(self, fd: int) -> None:
        if self.is_full:
            raise OSError(28, "No space left on device")
        super().fsync(fd)


def test_what_could_not_be_made_durable_is_never_read(tmp_path: Path) -> None:
    """Although its bytes may be there: who has sent it sends it again."""
    disk = FullDisk()
    with using(disk):
        journal = Journal(tmp_path, 3600)
    with journal:
        journal.add([delivery(1, key="key 1")])
        reader = JournalReader(tmp_path, 0)
        assert [each.key for each, _ in reader.deliveries(journal.end)] == keys(1)
        reader.at = journal.end
        disk.is_full = True
        for _ in range(2):
            with pytest.raises(OSError, match="No space"):
                journal.add([delivery(2, key="key 2"), delivery(3, key="key 3")])
        assert not journal.knows("key 2")
        disk.is_full = False
        journal.add([delivery(4, key="key 4")])
        journal.add([delivery(5, key="key 5")])
        assert [each.key for each, _ in reader.deliveries(journal.end)] == keys(4, 5)
        reader.close()
    assert numbers(tmp_path) == keys(1, 4, 5)


def test_files_go_when_they_are_read_and_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "_FILE_BYTES", 1)  # each batch has a file
    monkeypatch.setattr(time, "time", lambda: 10_000.0)
    with Journal(tmp_path, 100) as journal:
        ends = []
        for n, received in enumerate((9_800_000, 9_850_000, 9_950_000, 9_990_000)):
            journal.add([delivery(n, received, f"key {n}")])
            ends.append(journal.end)
        journal.forget(ends[0])
        assert (journal.first, journal.knows("key 0"), journal.knows("key 1")) == (ends[0], False, True)
        journal.forget(ends[3])
        assert (journal.first, journal.knows("key 1"), journal.knows("key 2")) == (ends[1], False, True)
    assert ends_of(tmp_path) == (ends[1], ends[3])
    assert numbers(tmp_path, ends[1]) == keys(2, 3)
    with pytest.raises(InvalidArgument, match="has no deliveries at 0 any more"):
        numbers(tmp_path)


def test_nothing_is_an_empty_journal(tmp_path: Path) -> None:
    assert ends_of(tmp_path / "none") == (0, 0)
    with Journal(tmp_path, 3600) as journal:
        assert (journal.first, journal.end) == (0, 0)
    shutil.rmtree(tmp_path)
