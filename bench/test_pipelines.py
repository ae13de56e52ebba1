"""Pipelines: the engine against a plain loop, what checkpoints and waiting cost, and what a second slice gives."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from arroyo_udf_plugin import load, run_pipeline
from arroyo_udf_plugin.engine.connectors.options import ROW_GROUP_ROWS
from arroyo_udf_plugin.engine.execution.progress import PipelineSummary
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.pipeline import (
    Blackhole,
    Checkpoints,
    EventTime,
    File,
    Files,
    Functions,
    Impulse,
    Parts,
    Pipeline,
    Windows,
)
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
        goal=1.1,
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
    times = int(30 * without / len(flights)) + 1
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


def in_two_slices(benchmark: Any, name: str, pipeline: Pipeline, n_rows: int, goal: float | None) -> None:
    """Wall time, against one slice; for a machine that is idle."""

    def seconds(parallelism: int) -> float:
        start = time.perf_counter()
        run_pipeline(pipeline.model_copy(update={"parallelism": parallelism}))
        return time.perf_counter() - start

    seconds(1)
    one = min(seconds(1) for _ in range(3))
    two = min(benchmark.pedantic(lambda: [seconds(2) for _ in range(3)], rounds=1))
    note(benchmark, name, two / n_rows * 1e9, "ns/row", "one slice", two / one, goal)


def test_slices(benchmark: Any) -> None:
    pipeline = Pipeline(
        name="slices",
        source=Impulse(rows=SLICE_ROWS),
        operators=[Functions(plugin=str(plugin_path(".c")), calls=["y = two_us(counter)"])],
        sinks=[Blackhole()],
    )
    in_two_slices(benchmark, "two slices, 2 us a row", pipeline, SLICE_ROWS, 1 / 1.7)


WINDOW_FILES, WINDOW_ROWS = 8, 200_000  # rows of each file


@pytest.fixture(scope="module", params=["csv", "parquet"])
def timed_files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Rows a millisecond apart, of a thousand keys."""
    folder = tmp_path_factory.mktemp(request.param)
    for number in range(WINDOW_FILES):
        numbers = range(number * WINDOW_ROWS, (number + 1) * WINDOW_ROWS)
        columns = {
            "t": pa.array(numbers, pa.timestamp("ms")),
            "k": pa.array([f"key-{n * 7919 % 1000}" for n in numbers]),
            "x": pa.array([n % 97 / 7 for n in numbers]),
        }
        path = folder / f"{number}.{request.param}"
        if request.param == "csv":
            pyarrow.csv.write_csv(pa.table(columns), path)
        else:
            pyarrow.parquet.write_table(pa.table(columns), path)
    return request.param, folder


def test_windows_in_slices(benchmark: Any, timed_files: tuple[str, Path]) -> None:
    """CSV is parsed without the GIL; of Parquet, the steps in Python are most of the work."""
    format_, folder = timed_files
    types = {"t": "datetime", "k": "str", "x": "float"} if format_ == "csv" else {}
    pipeline = Pipeline(
        name="windows",
        source=Files(paths=[str(folder)], types=types),
        event_time=EventTime(column="t"),
        operators=[Windows(time="t", width=60, keys=["k"], aggregates={"n": "count(*)", "s": "sum(x)"})],
        sinks=[Blackhole()],
    )
    goal = 1 / 1.4 if format_ == "csv" else None
    in_two_slices(benchmark, f"windows in two slices, {format_}", pipeline, WINDOW_FILES * WINDOW_ROWS, goal)
