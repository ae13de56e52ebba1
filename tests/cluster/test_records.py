"""Rows of previews and numbers of jobs in bounded files."""

import errno
import json
import logging
import os
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from clusters import shown

from arroyo_udf_plugin.cluster.records import Line, Reader, Records


def all_of(reader: Reader) -> list[Line]:
    found: list[Line] = []
    while some := reader.read():
        found += some
    return found


def rows(lines: list[Line]) -> list[int]:
    return [json.loads(line.text)["start_id"] for line in lines]


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_lines_have_running_numbers_and_readers_go_on_from_any(records: Records) -> None:
    records.show("job_1", [shown(n) for n in range(3)])
    records.show("job_2", [shown(7)])
    assert [(line.number, row) for line, row in zip(all_of(records.output("job_1")), range(3), strict=True)] == [
        (0, 0),
        (1, 1),
        (2, 2),
    ]
    reader = records.output("job_1", 2)
    assert rows(all_of(reader)) == [2]
    state = reader.state()
    assert reader.state() == state
    records.show("job_1", [shown(3)])
    assert reader.state() != state
    assert rows(all_of(reader)) == [3]
    assert all_of(records.output("job_1", 99)) == []
    assert all_of(records.output("job_3")) == []


def test_a_job_keeps_to_its_limit_and_loses_the_oldest_rows(tmp_path: Path) -> None:
    """Two previews made a database of 1.5 GiB in a minute."""
    records = Records(tmp_path, preview_bytes=100_000)
    early = records.output("job_1")
    for n in range(3000):
        records.show("job_1", [shown(n, batch="x" * 1000)])
        assert n % 100 or size(tmp_path) <= 100_000
        if n == 0:
            assert rows(early.read()) == [0]
    kept = all_of(records.output("job_1"))
    assert 30 < len(kept) < 100
    assert rows(kept) == list(range(3000 - len(kept), 3000))
    assert [line.number for line in kept] == rows(kept)
    assert rows(all_of(early)) == rows(kept), "one that was left behind goes on with the oldest that is there"
    records.show("job_1", [shown(1, batch="x" * 50_000), shown(3001)])
    assert rows(all_of(early)) == [3001], "what fits into no file is left out"


def test_a_writer_goes_on_where_another_one_was_killed(tmp_path: Path) -> None:
    Records(tmp_path).show("job_1", [shown(0), shown(1)])
    (file,) = (tmp_path / "jobs" / "job_1").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    with file.open("ab") as torn:
        torn.write(b'{"start_id": 2, "ba')
    reader = Records(tmp_path).output("job_1")
    assert rows(all_of(reader)) == [0, 1], "half a line is none"
    Records(tmp_path).show("job_1", [shown(3)])
    assert [(line.number, json.loads(line.text)["start_id"]) for line in all_of(reader)] == [(2, 3)]


def test_writers_do_not_mix_and_readers_see_whole_lines_in_order(tmp_path: Path) -> None:
    """As a controller that does not know yet that another one leads."""
    writers = [Records(tmp_path, preview_bytes=20_000) for _ in range(3)]

    def write(one: Records, seed: int) -> None:
        rng = random.Random(seed)
        for n in range(300):
            one.show("job_1", [shown(n, batch="x" * rng.randint(0, 300)) for _ in range(rng.randint(1, 3))])

    threads = [threading.Thread(target=write, args=(one, seed)) for seed, one in enumerate(writers)]
    for thread in threads:
        thread.start()
    seen: list[Line] = []
    reader = writers[0].output("job_1")
    while any(thread.is_alive() for thread in threads):
        seen += reader.read()
    seen += all_of(reader)
    numbers = [line.number for line in seen]
    assert numbers == sorted(set(numbers))
    assert all(json.loads(line.text)["operator_id"] == "preview" for line in seen)
    assert size(tmp_path) <= 20_000


def test_numbers_are_those_since_a_moment_and_the_latest(records: Records) -> None:
    assert (records.numbers("job_1"), records.latest("job_1")) == ([], None)
    for at in (1, 100, 300):
        records.count("job_1", {"rows_in": at}, at)
    assert [one.at for one in records.numbers("job_1", 50)] == [100, 300]
    assert [one.at for one in records.numbers("job_1", 999)] == [300]
    assert records.latest("job_1") == {"rows_in": 300}
    records.count("job_1", {"rows_in": 7}, 200)  # the clock was set back
    assert [one.at for one in records.numbers("job_1")] == [1, 100, 200]
    records.count("job_1", {"long": "x" * 100_000}, 400)
    assert records.latest("job_1") == {"long": "x" * 100_000}


def test_a_full_disk_costs_lines_and_nothing_else(
    records: Records, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    records.show("job_1", [shown(0)])
    opened = os.open

    def full(path: Any, flags: int, *more: Any, **others: Any) -> int:
        if flags & os.O_WRONLY:
            raise OSError(errno.ENOSPC, "No space left on device")
        return opened(path, flags, *more, **others)

    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
        patched.setattr(os, "open", full)
        records.show("job_1", [shown(1)])
    assert "job_1: output cannot be written: No space left on device" in caplog.text
    records.show("job_1", [shown(2)])
    assert rows(all_of(records.output("job_1"))) == [0, 2]


def test_files_of_a_job_go_at_once(records: Records) -> None:
    records.count("job_1", {})
    records.show("job_2", [shown(0)])
    assert records.jobs() == ["job_1", "job_2"]
    records.remove("job_2")
    records.remove("job_3")
    assert records.jobs() == ["job_1"]
    records.show("job_2", [shown(5)])
    assert [line.number for line in all_of(records.output("job_2"))] == [0]
