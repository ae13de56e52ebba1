"""Whole files on Flink, exactly once: a job fails after a checkpoint, goes on from there, and ends."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet
import pytest
from sessions import Session, until

import object_store_server
from arroyo_udf_plugin.engine.connectors.impulse import SCHEMA
from arroyo_udf_plugin.engine.connectors.parts import Parts

COUNT, ROWS, PARALLELISM = 20_000, 3, 2


@pytest.fixture(scope="module")
def folder(shared_session: Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the job leaves behind."""
    folder = tmp_path_factory.mktemp("sinks")
    program = Path(__file__).with_name("file_sink_program.py")
    job = shared_session.run(program, str(folder), str(COUNT), parallelism=PARALLELISM)
    job.await_state("FINISHED")
    assert (folder / "failed").exists(), "no checkpoint was complete before the end"
    return folder


def shown(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if not path.name.startswith(".")]


def test_each_element_is_a_file_once(folder: Path) -> None:
    files = shown(folder / "elements")
    assert Counter(path.read_text() for path in files) == Counter(str(number) for number in range(0, COUNT, 100))
    assert all(path.name.startswith("part-") and path.suffix == ".text" for path in files)


@pytest.mark.parametrize("name", ["rows", "full"])
def test_each_row_is_in_one_part(folder: Path, name: str) -> None:
    model = Parts(path=str(folder / name))
    rows = Counter(counter for part in model.shown(SCHEMA) for counter in part["counter"].to_pylist())
    assert rows == Counter(range(COUNT * ROWS))
    assert sorted(model.files()) == sorted(map(str, shown(folder / name)))


def test_rows_are_shown_at_checkpoints(folder: Path) -> None:
    assert len(shown(folder / "rows")) > PARALLELISM


def test_a_part_ends_when_it_is_full(folder: Path) -> None:
    parts = [pyarrow.parquet.read_metadata(path).num_rows for path in shown(folder / "full")]
    assert max(parts) == 100


def test_parts_on_s3_of_a_job_that_goes_on_from_a_savepoint(
    session_cluster: Session, s3_server: object_store_server.Server
) -> None:
    model = Parts(path="s3://flink/goes-on", format="csv", compression="gzip")
    sink = {"type": "parts", "path": model.path, "format": "csv", "compression": "gzip"}
    described = {"name": "on", "source": {"type": "impulse", "rows": 100_000, "rate": 10_000}, "sinks": [sink]}
    job = session_cluster.submit(described)
    until(lambda: bool(model.files()), "a part")
    savepoint = job.stop_with_savepoint("s3://flink/savepoints")
    before = set(model.files())
    session_cluster.submit(described, savepoint=savepoint, parallelism=1).await_state("FINISHED")
    assert before < set(model.files())
    rows = [counter for part in model.shown(SCHEMA) for counter in part["counter"].to_pylist()]
    assert sorted(rows) == list(range(100_000))
