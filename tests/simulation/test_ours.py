"""Each source and sink of this package passes the kit, or says that it cannot be resumed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest
from copies import bring, description, of_objects, of_parts, of_table, one_file, parts

from arroyo_udf_plugin.engine.connectors.files import Files
from arroyo_udf_plugin.engine.connectors.impulse import Impulse
from arroyo_udf_plugin.engine.connectors.interface import Stage
from arroyo_udf_plugin.engine.connectors.parts import Parts
from arroyo_udf_plugin.engine.connectors.registry import sink_models, source_models
from arroyo_udf_plugin.engine.connectors.table import Table
from arroyo_udf_plugin.engine.connectors.written import Format
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.execution.store import open_store
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from arroyo_udf_plugin.errors import InvalidArgument
from arroyo_udf_plugin.testing import Simulation, check_sink, check_source

pytestmark = [pytest.mark.once, pytest.mark.timeout(7200)]

MOST = None if "SCHEDULES" in os.environ else 1
POSITIONS = None if "SCHEDULES" in os.environ else 0  # only from each of its positions


# ---- Sinks -----------------------------------------------------------------------------------------------------------


def of_model(model: Any) -> Callable[[pa.Schema, int, Stage | None], Any]:
    return lambda schema, slice, stage: model.sink(schema, slice, stage, "pipeline", "sink")


@pytest.mark.parametrize("kind", ["folder", "objects", "table", "table by key"] if MOST is None else ["objects"])
def test_sinks_that_are_resumed(kind: str, folder: Path) -> None:
    url, uri = "memory://conformance", f"sqlite:{folder / 'rows.db'}"
    sinks: dict[str, tuple[Any, Callable[[], list[int]], Sequence[str]]] = {
        "folder": (Parts(path=str(folder / "out"), format="jsonl"), lambda: of_parts(folder / "out"), ()),
        "objects": (Parts(path=url, format="csv"), lambda: of_objects(url), (url,)),
        "table": (Table(uri=uri, table="rows"), lambda: of_table(folder / "rows.db"), ()),
        "table by key": (Table(uri=uri, table="rows", key=["n"]), lambda: of_table(folder / "rows.db"), ()),
    }
    model, shown, urls = sinks[kind]
    report = check_sink(folder, of_model(model), shown, urls, MOST)
    assert report.faults["two engines"]


@pytest.mark.parametrize("format", get_args(Format) if MOST is None else ["text"])
def test_a_folder_in_each_format(format: str, folder: Path) -> None:
    Simulation(parts(folder, format), most=MOST).stop_everywhere(["torn"])


@pytest.mark.parametrize("type", ["blackhole", "preview"])
def test_sinks_that_keep_nothing(type: str, folder: Path) -> None:
    """Nobody can see afterwards what they were given; an engine goes on with them."""
    scenario = parts(folder, "jsonl", beside=[{"type": type}])
    Simulation(scenario, most=MOST).stop_everywhere(["torn"])


@pytest.mark.parametrize("sink", [{"type": "file", "path": "out.csv"}, {"type": "stdout"}], ids=["file", "stdout"])
def test_sinks_that_cannot_be_resumed_say_so(sink: dict[str, Any], folder: Path) -> None:
    with pytest.raises(InvalidArgument, match="checkpoints"):
        begun(folder, sinks=[sink])


def test_a_file_is_whole_or_not_there(folder: Path) -> None:
    Simulation(one_file(folder), most=MOST).stop_everywhere()


def begun(folder: Path, **keys: Any) -> None:
    folder.mkdir()
    bring(folder, 0, NUMBERS)
    run_pipeline(pipeline_of(description(folder, 1, str(folder / "state"), {"type": "blackhole"}) | keys))


ELSEWHERE = {"adbc", "kafka", "redis", "delta", "tail", "polling_http", "sse", "webhook", "postgresql_cdc"}
"""Those whose tests are in tests/connectors/ and tests/engine/connectors/, beside what they need."""
SINKS = {"parts", "table", "blackhole", "preview", "file", "stdout"}


# ---- Sources ---------------------------------------------------------------------------------------------------------

NUMBERS = ([0, 1, 2], [3, 4], [5])


def written(format: str, folder: Path) -> list[str]:
    """Files with numbers, as our own sinks write them."""
    name = "value" if format == "text" else "n"
    schema = pa.schema([(name, pa.string() if format == "text" else pa.int64())])
    for number, some in enumerate(NUMBERS):
        own = Parts(path=str(folder / f"{number}"), format=format)
        sink = own.sink(schema, 0, None, "pipeline", "sink")
        rows = pa.array(some, pa.int64()).cast(schema.field(0).type)
        sink.write(pa.record_batch([rows], schema=schema))
        sink.finish()
    return [str(folder / f"{number}") for number in range(len(NUMBERS))]


@pytest.mark.parametrize("format", get_args(Format))
def test_files_of_each_format(format: str, folder: Path) -> None:
    paths = [str(folder / "in" / f"{number}") for number in range(len(NUMBERS))]
    source = Files(paths=paths, format=format)
    check_source(folder, lambda: source.source(1), lambda: written(format, folder / "in") and None, POSITIONS)


def test_files_in_an_object_store(folder: Path) -> None:
    store = open_store("memory://conformance-of-sources")
    for number, some in enumerate(NUMBERS):
        store.put(f"{number}.csv", ("n\n" + "".join(f"{n}\n" for n in some)).encode())
    source = Files(paths=[store.place])
    check_source(folder, lambda: source.source(1), most=POSITIONS)


@pytest.mark.parametrize("name", ["rows.csv.gz", "rows.jsonl.zst", "rows.json"])
def test_one_file_that_is_compressed_or_an_array(name: str, folder: Path) -> None:
    def prepare() -> None:
        (folder / "in").mkdir()
        text = b"[" + b",".join(b'{"n": %d}' % n for n in range(9)) + b"]"
        if name != "rows.json":
            text = b"n\n1\n2\n3\n" if ".csv" in name else b'{"n": 1}\n{"n": 2}\n'
        with contextlib.closing(pa.output_stream(str(folder / "in" / name), compression="detect")) as file:
            file.write(text)

    source = Files(paths=[str(folder / "in" / name)])
    check_source(folder, lambda: source.source(1), prepare, POSITIONS)


def test_impulse(folder: Path) -> None:
    source = Impulse(rows=7, start=datetime(2020, 1, 1, tzinfo=UTC), interval=1.0)
    assert check_source(folder, lambda: source.source(2), most=MOST).schedules


def test_standard_input_cannot_be_resumed(folder: Path) -> None:
    with pytest.raises(InvalidArgument, match="checkpoints"):
        begun(folder, source={"type": "stdin", "format": "text"})


SOURCES = {"files", "impulse", "stdin", "table"}


# ---- All of them -----------------------------------------------------------------------------------------------------


def test_none_is_left_out() -> None:
    """A new source or sink is named here, with its tests above."""
    assert {model.model_fields["type"].default for model in source_models()} - ELSEWHERE == SOURCES
    assert {model.model_fields["type"].default for model in sink_models()} - ELSEWHERE == SINKS
