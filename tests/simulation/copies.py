"""Pipelines that copy: each row of some files comes out as it went in, through each kind of sink."""

from __future__ import annotations

import contextlib
import io
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from arroyo_udf_plugin.engine.execution.store import open_store
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from arroyo_udf_plugin.testing import Phase, Scenario, described

Files = Sequence[Sequence[Any]]  # the rows of each file; each is an epoch

FIRST: Files = ([1, 2, 3], [4, 5], [6])
SECOND: Files = ([7, 8],)


def parts(folder: Path, format: str, beside: Sequence[Mapping[str, Any]] = (), **options: Any) -> Scenario:
    """beside: further sinks."""
    sink = {"type": "parts", "path": str(folder / "out"), "format": format, **options}
    return copied(folder, [sink, *beside], lambda: of_parts(folder / "out"))


_AS_TEXT = [{"type": "sql", "select": {"value": "CAST(n AS VARCHAR)"}}]  # lines are one column of text


def copied(
    folder: Path, sinks: Sequence[Mapping[str, Any]], shown: Callable[[], list[Any]], **options: Any
) -> Scenario:
    """Files, and more of them after the end, whose rows go to sinks."""
    place = options.setdefault("place", str(folder / "state"))
    operators = {"operators": _AS_TEXT} if sinks[0].get("format") == "text" else {}
    return Scenario(
        name=f"files to {sinks[0]['type']}",
        folder=folder,
        opened=described(lambda width: pipeline_of(description(folder, width, place, *sinks) | operators)),
        shown=shown,
        phases=[
            Phase(lambda: bring(folder, 0, FIRST), numbers_of(FIRST)),
            Phase(lambda: bring(folder, len(FIRST), SECOND), numbers_of(FIRST, SECOND)),
        ],
        **options,
    )


def description(
    folder: Path, width: int, place: str | None, *sinks: Mapping[str, Any], **source: Any
) -> dict[str, Any]:
    """Of a pipeline that reads the files in `in`."""
    files = {"type": "files", "paths": [str(folder / "in")], "format": "csv", "types": {"n": "int64"}}
    return {
        "name": "simulated",
        "source": files | source,
        "sinks": list(sinks),
        **({} if place is None else {"checkpoints": {"place": place}}),
        "parallelism": width,
    }


def numbers_of(*files: Files) -> list[int]:
    return [n for several in files for file in several for n in file]


def bring(folder: Path, first: int, files: Files, header: str = "n", name: str = "in") -> None:
    (folder / name).mkdir(exist_ok=True)
    for number, rows in enumerate(files, first):
        (folder / name / f"{number:03}.csv").write_text(f"{header}\n" + "".join(f"{row}\n" for row in rows))


def of_parts(folder: Path) -> list[int]:
    """The numbers, by the parts' names."""
    if not folder.is_dir():
        return []
    names = sorted(path.name for path in folder.iterdir() if path.name[0] != ".")
    return [n for name in names for n in _numbers_in(name, (folder / name).read_bytes())]


def _numbers_in(name: str, data: bytes) -> list[int]:
    match name.rpartition(".")[2]:
        case "parquet":
            table = pq.read_table(io.BytesIO(data))
        case "arrow":
            table = pa.ipc.open_file(data).read_all()
        case "arrows":
            table = pa.ipc.open_stream(data).read_all()
        case "jsonl":
            return [json.loads(line)["n"] for line in data.splitlines()]
        case ending:
            return [int(line) for line in data.splitlines()[ending in ("csv", "tsv") :]]
    numbers: list[int] = table.column("n").to_pylist()
    return numbers


def in_objects(folder: Path, **options: Any) -> Scenario:
    """Checkpoints and rows in an object store. Each folder has one of its own. options: of the sink."""
    state, out = f"memory://{folder}/state", f"memory://{folder}/out"
    sink = {"type": "parts", "path": out, "format": "jsonl", **options}
    return copied(folder, [sink], lambda: of_objects(out), place=state, urls=(state, out))


def of_objects(url: str) -> list[int]:
    store = open_store(url)
    names = [name for name in store.names("") if not name.startswith(".")]
    return [n for name in names for n in _numbers_in(name, store.get(name))]


def sqlite(folder: Path, **options: Any) -> Scenario:
    sink = {"type": "table", "uri": f"sqlite:{folder / 'rows.db'}", "table": "rows", **options}
    return copied(folder, [sink], lambda: of_table(folder / "rows.db"))


def of_table(path: Path, columns: str = "n", table: str = "rows") -> list[Any]:
    """Each row, or its only column."""
    if not path.exists():
        return []
    with contextlib.closing(sqlite3.connect(path)) as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
            return []
        rows = database.execute(f"SELECT {columns} FROM {table} ORDER BY rowid").fetchall()
    return [row if len(row) > 1 else row[0] for row in rows]


def watched(folder: Path) -> Scenario:
    """A folder that is watched: the engine is stopped when it has read all that there is."""
    sink = {"type": "parts", "path": str(folder / "out"), "format": "csv"}
    place = str(folder / "state")
    numbers = numbers_of(FIRST)
    return Scenario(
        name="a watched folder",
        folder=folder,
        opened=described(lambda width: pipeline_of(description(folder, width, place, sink, watch=0.001))),
        shown=lambda: of_parts(folder / "out"),
        phases=[Phase(lambda: bring(folder, 0, FIRST), numbers)],
        place=place,
        until=lambda: sorted(of_parts(folder / "out")) == numbers,
    )


def one_file(folder: Path) -> Scenario:
    """One output file, without checkpoints: an engine that was stopped begins anew."""
    out = folder / "out.csv"
    sink = {"type": "file", "path": str(out)}
    numbers = numbers_of(FIRST)
    return Scenario(
        name="files to one file",
        folder=folder,
        opened=described(lambda width: pipeline_of(description(folder, width, None, sink))),
        shown=lambda: _numbers_in(out.name, out.read_bytes()) if out.exists() else [],
        phases=[Phase(lambda: bring(folder, 0, FIRST), numbers)],
        place=None,
    )
