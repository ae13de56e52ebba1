"""Pipelines: the engine against a plain loop, what checkpoints and waiting cost, and what a second slice gives."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from arroyo_udf_plugin import load, run_pipeline
from arroyo_udf_plugin.engine.connectors.options import ROW_GROUP_ROWS
from arroyo_udf_plugin.engine.execution.progress import PipelineSummary
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.pipeline import Blackhole, Checkpoints, File, Files, Functions, Impulse, Parts, Pipeline
from conftest import BATCH_ROWS, Compare, note, plugin_path

SLICE_ROWS = 1_000_000


@pytest.fixture(scope="module")
def flights_file(flights: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flights") / "flights.parquet"
    pyarrow.parquet.write_table(flights, path, row_group_size=ROW_GROUP_ROWS)
    return path


def test_engine(compare: Compare, flights: pa.Table, flights_file: Path, tmp_path: Path) -> None:
    function = load(plugin_path(".py")).functions["mph"]

    def loop() -> None:
        source = pyarrow.parquet.ParquetFile(flights_file)
        schema = source.schema_arrow.append(pa.field("speed", pa.float64()))
        with pyarrow.parquet.ParquetWriter(tmp_path / "loop.parquet", schema) as writer:
            waiting: list[pa.RecordBatch] = []
            n_rows = 0
            for batch in source.iter_batches(BATCH_ROWS):
                speeds = function(batch.column("distance"), batch.column("air_time"))
                waiting.append(pa.RecordBatch.from_arrays([*batch.columns, speeds], schema=schema))
                n_rows += batch.num_rows
                if n_rows >= ROW_GROUP_ROWS:
                    writer.write_table(pa.Table.from_batches(waiting), row_group_size=ROW_GROUP_ROWS)
                    waiting, n_rows = [], 0
            writer.write_table(pa.Table.from_batches(waiting, schema), row_group_size=ROW_GROUP_ROWS)

    pipeline = Pipeline(
        name="speeds",
        source=Files(paths=[str(flights_file)]),
        operators=[Functions(plugin=str(plugin_path(".py")), calls=["speed = mph(distance, air_time)"])],
        sinks=[File(path=str(tmp_path / "out.parquet"))],
    )
    compare(
        "mph: engine, Parquet to Parquet",
        lambda: run_pipeline(pipeline),
        loop,
        n=len(flights),
        unit="ns/row",
        scale=1e9,
        reference_name="plain loop",
        goal=1.15,
    )


def test_checkpoints(benchmark: Any, flights: pa.Table, flights_file: Path, tmp_path: Path) -> None:
    """Rows per second of wall time, with an epoch each 1.2 s, against the same without. A run takes 20 s and more."""

    def rate(times: int, place: Path | None) -> tuple[float, PipelineSummary]:
        summary = run_pipeline(
            Pipeline(
                name="at-once",
                source=Files(paths=[str(flights_file)] * times),
                operators=[Functions(plugin=str(plugin_path(".py")), calls=["y = at_once(distance)"])],
                sinks=[Parts(path=str(tmp_path / f"out-{times}-{place is None}"))],
                checkpoints=None if place is None else Checkpoints(place=str(place), every=1.2),
            )
        )
        return summary.rows_per_s, summary

    without, _ = rate(3, None)
    times = int(22 * without / len(flights)) + 1
    without, _ = rate(times, None)
    with_, summary = benchmark.pedantic(rate, (times, tmp_path / "state"), rounds=1)
    assert summary.progress.seconds >= 20
    assert summary.progress.checkpoint is not None
    assert summary.progress.checkpoint.epochs >= 15
    # As time per row, so that the goal is an upper limit: a rate of 80 %.
    note(benchmark, "at_once: an epoch each 1.2 s", 1e9 / with_, "ns/row", "no checkpoints", without / with_, 1 / 0.8)


def test_idle(benchmark: Any, tmp_path: Path) -> None:
    """CPU of a pipeline that waits for rows, in a second of wall time."""
    stop, spent = StopRequest(), []

    def look() -> None:
        began.wait()
        for _ in range(2):
            time.sleep(2)  # what is measured is that nothing happens meanwhile
            spent.append(time.process_time())
        stop.request()

    began = threading.Event()
    watcher = threading.Thread(target=look)
    watcher.start()
    pipeline = Pipeline(
        name="idle",
        source=Impulse(rate=0.001),
        operators=[Functions(plugin=str(plugin_path(".py")), calls=["y = at_once(counter)"])],
        sinks=[Blackhole()],
        checkpoints=Checkpoints(place=str(tmp_path / "state"), every=3600),
    )
    benchmark.pedantic(lambda: run_pipeline(pipeline, stop=stop, progress=lambda _: began.set()), rounds=1)
    watcher.join()
    note(benchmark, "idle pipeline", (spent[1] - spent[0]) / 2 * 1e3, "ms/s", None, None, 1.0)


def test_slices(benchmark: Any) -> None:
    """Wall time; for a machine that is idle."""

    def seconds(parallelism: int) -> float:
        start = time.perf_counter()
        run_pipeline(
            Pipeline(
                name="slices",
                source=Impulse(rows=SLICE_ROWS),
                operators=[Functions(plugin=str(plugin_path(".c")), calls=["y = two_us(counter)"])],
                sinks=[Blackhole()],
                parallelism=parallelism,
            )
        )
        return time.perf_counter() - start

    seconds(1)
    one = min(seconds(1) for _ in range(3))
    two = min(benchmark.pedantic(lambda: [seconds(2) for _ in range(3)], rounds=1))
    note(benchmark, "two slices, 2 us a row", two / SLICE_ROWS * 1e9, "ns/row", "one slice", two / one, 1 / 1.7)
