"""The kit for authors of connectors: wrong ones do not pass it. Ours do: test_ours.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin.engine.connectors.interface import Json
from arroyo_udf_plugin.testing import Broken, Numbers, check_sink, check_source

pytestmark = pytest.mark.once


class Appending:
    """A sink that shows rows as they come, and forgets that it has."""

    name = "appending"

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
