"""A pipeline in a few lines of Python."""

from __future__ import annotations

from pathlib import Path

import pyarrow.dataset as ds
import pytest

from arroyo_udf_plugin.engine.connectors.files import Files
from arroyo_udf_plugin.engine.connectors.parts import Parts
from arroyo_udf_plugin.engine.connectors.table import Table
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.pipeline import Checkpoints, Functions, Pipeline
from arroyo_udf_plugin.engine.pipeline.problems import InvalidPipeline
from arroyo_udf_plugin.errors import ArroyoUdfError

pytestmark = pytest.mark.usefixtures("folder")


def pipeline(**others: object) -> Pipeline:
    chosen = {"source": Files(paths=("flights.parquet",)), "sinks": (Parts(path="out"),)} | others
    functions = Functions(plugin="functions.so", calls=("plane(tail)",))
    return Pipeline(name="planes", operators=(functions,), **chosen)  # type: ignore[arg-type]


def test_a_pipeline() -> None:
    summary = run_pipeline(pipeline())
    assert (summary.ended, summary.progress.rows_out) == ("finished", 3)
    assert sorted(ds.dataset("out").to_table()["plane"].to_pylist()) == ["n1", "n2", "n3"]


def test_a_finished_pipeline_has_nothing_to_resume() -> None:
    with_checkpoints = pipeline(checkpoints=Checkpoints(place="state", every_rows=1))
    assert run_pipeline(with_checkpoints).progress.rows_out == 3
    assert run_pipeline(with_checkpoints, resume=True).progress.rows_out == 0
    assert ds.dataset("out").count_rows() == 3


def test_another_description_is_not_resumed() -> None:
    run_pipeline(pipeline(checkpoints=Checkpoints(place="state")))
    other = pipeline(checkpoints=Checkpoints(place="state"), sinks=(Parts(path="other"),))
    with pytest.raises(ArroyoUdfError, match="sinks"):
        run_pipeline(other, resume=True)


def test_errors_do_not_show_values(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PLACE", str(tmp_path / "flights.parquet" / "secret"))
    with pytest.raises(ArroyoUdfError) as error:
        run_pipeline(pipeline(checkpoints=Checkpoints(place="${PLACE}")))
    assert "${PLACE}" in str(error.value)
    assert "secret" not in str(error.value)


def test_why_rows_failed_is_told_and_logged_without_values(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TOKEN", "very secret")
    lines = ("from arroyo_udf_plugin import udf", "@udf", "def ask(tail: str, token: str) -> str:")
    (folder / "asks.py").write_text("\n".join([*lines, "    raise ValueError(f'{tail}: {token} is no token')", ""]))
    asking = Functions(plugin="asks.py", calls=("ask(tail, '${TOKEN}')",), on_error="drop")
    with caplog.at_level("INFO", "arroyo_udf_plugin"):
        summary = run_pipeline(pipeline().model_copy(update={"operators": (asking,)}))
    (failure,) = summary.progress.operators[0].failures
    assert (failure.function, failure.kind, failure.rows) == ("ask", "ValueError", 3)
    assert failure.message == "flights.parquet, row 1: ValueError: N1: ${TOKEN} is no token"
    (record,) = caplog.records
    assert record.getMessage() == f"a row failed, the first of its kind: {failure.message}"
    assert record.__dict__["operator"] == "ask"


def test_values_are_not_in_the_checkpoint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FOLDER", str(tmp_path))
    told = pipeline(checkpoints=Checkpoints(place="state"), source=Files(paths=("${FOLDER}/*.parquet",)))
    run_pipeline(told)
    stored = b"".join(file.read_bytes() for file in (tmp_path / "state").rglob("*") if file.is_file())
    assert b"${FOLDER}/flights.parquet" in stored
    assert str(tmp_path).encode() not in stored
    assert run_pipeline(told, resume=True).progress.rows_in == 0


def test_a_database_that_cannot_be_reached_is_told_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "very secret")
    table = Table(uri="postgresql://me:${PASSWORD}@127.0.0.1:1/none", table="t")
    with pytest.raises(InvalidPipeline, match=r"sinks\[0\]: ") as error:
        run_pipeline(pipeline(sinks=(table,)))
    assert "secret" not in str(error.value)
