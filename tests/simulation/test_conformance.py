"""The kit for authors of connectors: ours pass it, and wrong ones do not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from scenarios import of_objects, of_parts, of_table

from arroyo_udf_plugin.connectors.files import Files
from arroyo_udf_plugin.connectors.impulse import Impulse
from arroyo_udf_plugin.connectors.interface import Json, Stage
from arroyo_udf_plugin.connectors.parts import Parts
from arroyo_udf_plugin.connectors.table import Table
from arroyo_udf_plugin.testing import Broken, Numbers, check_sink, check_source

pytestmark = pytest.mark.once


class Appending:
    """A sink that shows rows as they come, and forgets that it has."""

    name, resumable = "appending", True

    def __init__(self, folder: Path) -> None:
        self._path, self._rows = folder / "rows", list[int]()

    def write(self, batch: pa.RecordBatch) -> None:
        self._rows += batch.column(0).to_pylist()

    def seal(self, epoch: int) -> Appending | None:
        return self if self._rows else None

    def store(self) -> Json:
        rows, self._rows = self._rows, []
        return {"rows": rows}

    def apply(self, epoch: int, stored: Json) -> None:
        with open(self._path, "a") as file:
            file.writelines(f"{n}\n" for n in stored["rows"])

    def check(self, committed: int, epoch: int, waiting: Sequence[Json]) -> None: ...
    def clear(self, committed: int) -> None: ...
    def finish(self) -> None: ...
    def close(self) -> None: ...


def test_a_sink_that_applies_an_epoch_twice_does_not_pass(folder: Path) -> None:
    def shown() -> list[int]:
        path = folder / "rows"
        return [int(line) for line in path.read_text().splitlines()] if path.exists() else []

    with pytest.raises(Broken, match="too many"):
        check_sink(folder, lambda schema, slice, stage: Appending(folder), shown, most=1)


class Forgetful(Numbers):
    """A source that begins each partition anew."""

    def open(self, partition: str, position: Json | None) -> Any:
        return super().open(partition, None)


def test_a_source_that_ignores_positions_does_not_pass(folder: Path) -> None:
    with pytest.raises(AssertionError, match=r"a does not go on at .* with row 2"):
        check_source(folder, lambda: Forgetful({"a": [[1], [2]]}))


def sink_of(model: Any, schema: pa.Schema, slice: int, stage: Stage | None) -> Any:
    return model.sink(schema, slice, stage, "pipeline", "sink")


@pytest.mark.parametrize("kind", ["parts", "table", "objects"] if "SCHEDULES" in os.environ else ["objects"])
def test_sinks_of_ours(kind: str, folder: Path) -> None:
    url = "memory://conformance"
    sinks: dict[str, tuple[Any, Any, Sequence[str]]] = {
        "parts": (Parts(path=str(folder / "out"), format="jsonl"), lambda: of_parts(folder / "out"), ()),
        "table": (Table(uri=f"sqlite:{folder / 'rows.db'}", table="rows"), lambda: of_table(folder / "rows.db"), ()),
        "objects": (Parts(path=url, format="csv"), lambda: of_objects(url), (url,)),
    }
    model, shown, urls = sinks[kind]
    report = check_sink(folder, lambda *asked: sink_of(model, *asked), shown, urls, most=1)
    assert report.faults["two engines"]


def test_sources_of_ours(folder: Path) -> None:
    def prepare() -> None:
        (folder / "in").mkdir()
        for number in range(3):
            (folder / "in" / f"{number}.csv").write_text("n\n" + "".join(f"{n}\n" for n in range(number, 5)))

    files = Files(paths=[str(folder / "in")])
    impulse = Impulse(rows=7, start=datetime(2020, 1, 1, tzinfo=UTC), interval=1.0)
    report = check_source(folder, lambda: files.source(1), prepare, most=1)
    assert report.schedules
    check_source(folder, lambda: impulse.source(2), most=1)
