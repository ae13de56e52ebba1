"""Pipelines over simulated disks: from files to each kind of sink, with what must come out, row by row."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from arroyo_udf_plugin.engine.store import open_store
from arroyo_udf_plugin.pipeline.description import Checkpoints, Pipeline
from arroyo_udf_plugin.pipeline.document import pipeline_of
from arroyo_udf_plugin.planner.script import Script
from arroyo_udf_plugin.testing import Phase, Scenario, described

Files = Sequence[Sequence[Any]]  # the rows of each file; each is an epoch

FIRST: Files = ([1, 2, 3], [4, 5], [6])
SECOND: Files = ([7, 8],)


def of_kind(kind: str, folder: Path) -> Scenario:
    return SCENARIOS[kind](folder)


# ---- Copies: each row comes out as it went in ------------------------------------------------------------------------


def _parts(folder: Path, format: str, **options: Any) -> Scenario:
    sink = {"type": "parts", "path": str(folder / "out"), "format": format, **options}
    return _copied(folder, sink, lambda: of_parts(folder / "out"))


def _copied(folder: Path, sink: Mapping[str, Any], shown: Callable[[], list[Any]], **options: Any) -> Scenario:
    """Files, and more of them after the end, whose rows go to a sink."""
    numbers = [n for file in FIRST for n in file]
    more = [n for file in SECOND for n in file]
    place = options.setdefault("place", str(folder / "state"))
    return Scenario(
        name=f"files to {sink['type']}",
        folder=folder,
        opened=described(lambda width: _pipeline(folder, width, place, sink)),
        shown=shown,
        phases=[
            Phase(lambda: _bring(folder, 0, FIRST), numbers),
            Phase(lambda: _bring(folder, len(FIRST), SECOND), numbers + more),
        ],
        **options,
    )


def _pipeline(folder: Path, width: int, place: str | None, *sinks: Mapping[str, Any], **options: Any) -> Pipeline:
    source = {"type": "files", "paths": [str(folder / "in")], "format": "csv", "types": {"n": "int64"}}
    return pipeline_of(
        {
            "name": "simulated",
            "source": source | options,
            "sinks": list(sinks),
            **({} if place is None else {"checkpoints": {"place": place}}),
            "parallelism": width,
        }
    )


def _bring(folder: Path, first: int, files: Files, header: str = "n", name: str = "in") -> None:
    (folder / name).mkdir(exist_ok=True)
    for number, rows in enumerate(files, first):
        (folder / name / f"{number:03}.csv").write_text(f"{header}\n" + "".join(f"{row}\n" for row in rows))


def of_parts(folder: Path) -> list[int]:
    """Column n, by the parts' names."""
    if not folder.is_dir():
        return []
    names = sorted(path.name for path in folder.iterdir() if path.name[0] != ".")
    return [row["n"] for name in names for row in _rows_of(name, (folder / name).read_bytes())]


def _rows_of(name: str, data: bytes) -> Iterable[dict[str, Any]]:
    if name.endswith(".parquet"):
        return list(pq.read_table(io.BytesIO(data)).to_pylist())
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in data.splitlines()]
    return [row | {"n": int(row["n"])} for row in csv.DictReader(io.StringIO(data.decode()))]


def _in_objects(folder: Path) -> Scenario:
    """Checkpoints and rows in an object store. Each folder has one of its own."""
    state, out = f"memory://{folder}/state", f"memory://{folder}/out"
    sink = {"type": "parts", "path": out, "format": "jsonl"}
    return _copied(folder, sink, lambda: of_objects(out), place=state, urls=(state, out))


def of_objects(url: str) -> list[int]:
    store = open_store(url)
    names = [name for name in store.names("") if not name.startswith(".")]
    return [row["n"] for name in names for row in _rows_of(name, store.get(name))]


def _sqlite(folder: Path, **options: Any) -> Scenario:
    sink = {"type": "table", "uri": f"sqlite:{folder / 'rows.db'}", "table": "rows", **options}
    return _copied(folder, sink, lambda: of_table(folder / "rows.db"))


def of_table(path: Path, columns: str = "n") -> list[Any]:
    if not path.exists():
        return []
    with contextlib.closing(sqlite3.connect(path)) as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'rows'").fetchone():
            return []
        rows = database.execute(f"SELECT {columns} FROM rows ORDER BY rowid").fetchall()
    return [row if len(row) > 1 else row[0] for row in rows]


def _watched(folder: Path) -> Scenario:
    """A folder that is watched: the engine is stopped when it has read all that there is."""
    sink = {"type": "parts", "path": str(folder / "out"), "format": "csv"}
    place = str(folder / "state")
    numbers = [n for file in FIRST for n in file]
    return Scenario(
        name="a watched folder",
        folder=folder,
        opened=described(lambda width: _pipeline(folder, width, place, sink, watch=0.001)),
        shown=lambda: of_parts(folder / "out"),
        phases=[Phase(lambda: _bring(folder, 0, FIRST), numbers)],
        place=place,
        until=lambda: sorted(of_parts(folder / "out")) == numbers,
    )


def _one_file(folder: Path) -> Scenario:
    """One output file, without checkpoints: an engine that was stopped begins anew."""
    out = folder / "out.csv"
    sink = {"type": "file", "path": str(out)}
    numbers = [n for file in FIRST for n in file]
    return Scenario(
        name="files to one file",
        folder=folder,
        opened=described(lambda width: _pipeline(folder, width, None, sink)),
        shown=lambda: [row["n"] for row in _rows_of(out.name, out.read_bytes())] if out.exists() else [],
        phases=[Phase(lambda: _bring(folder, 0, FIRST), numbers)],
        place=None,
    )


# ---- Windows and joins -----------------------------------------------------------------------------------------------

WIDTH, LATENESS = 10, 2  # minutes

# Minutes; 3 and 9 in the third file are late: with 21 before them, the window from 0 to 10 is over.
TIMES: Files = ([1, 2, 8], [11, 14, 21], [3, 22, 9], [31])
LATER: Files = ([32, 25, 45],)  # at the end of TIMES all windows are over, so only 45 is in time
IN_TIME: Files = ([1, 2, 8], [11, 9, 14], [16, 21], [31])
TABLE = """
CREATE TABLE {name} (at TIMESTAMP(0), WATERMARK FOR at AS at - INTERVAL '{lateness} minutes')
WITH (connector = 'filesystem', path = '{folder}/{name}', format = 'csv', type = 'source');
"""
OUT = "CREATE TABLE rows WITH (connector = 'sqlite', uri = 'sqlite:{folder}/rows.db', type = 'sink');"
START = "CAST(date_part('epoch', {window}.start) AS BIGINT) / 60 % 1440"
COUNTS = "SELECT tumble(INTERVAL '10 minutes') AS window, count(*) AS n FROM {name} GROUP BY window"


def _time(minute: int) -> str:
    return f"2020-01-01 {minute // 60:02}:{minute % 60:02}:00"


def counted(files: Files) -> Counter[int]:
    """The windows of all files, by their start: the watermark before a file decides which of its rows are late."""
    counts: Counter[int] = Counter()
    watermark = -1
    for minutes in files:
        counts.update(start for m in minutes if (start := m // WIDTH * WIDTH) + WIDTH > watermark)
        watermark = max(watermark, *(m - LATENESS for m in minutes))
    return counts


def _windows(folder: Path, times: Files = TIMES, more: Files = ()) -> Scenario:
    text = (
        TABLE.format(name="left", folder=folder, lateness=LATENESS)
        + OUT.format(folder=folder)
        + f"CREATE VIEW counts AS {COUNTS.format(name='left')};"
        + f"INSERT INTO rows SELECT {START.format(window='window')} AS start, n FROM counts;"
    )
    phases = [_timed(folder, "left", 0, times, sorted(counted(times).items()))]
    if more:
        phases.append(_timed(folder, "left", len(times), more, sorted((counted(times) + Counter({40: 1})).items())))
    return _query(folder, "windows", text, phases)


def _timed(folder: Path, name: str, first: int, files: Files, expected: Sequence[Any]) -> Phase:
    texts = [[_time(minute) for minute in minutes] for minutes in files]
    return Phase(lambda: _bring(folder, first, texts, "at", name), expected)


RIGHT: Files = ([5, 12], [13, 24], [33])


def _join(folder: Path) -> Scenario:
    """Two sources; no row is late, whichever of them is faster."""
    left: Files = ([1, 2, 8], [11, 14, 21], [22], [41])
    text = (
        "".join(TABLE.format(name=name, folder=folder, lateness=LATENESS) for name in ("left", "right"))
        + OUT.format(folder=folder)
        + f"CREATE VIEW l AS {COUNTS.format(name='left')}; CREATE VIEW r AS {COUNTS.format(name='right')};"
        + "CREATE VIEW both AS SELECT l.window AS w, l.n AS n, r.n AS m FROM l JOIN r ON l.window = r.window;"
        + f"INSERT INTO rows SELECT {START.format(window='w')} AS start, n, m FROM both;"
    )
    counts, others = counted(left), counted(RIGHT)
    expected = [(start, n, others[start]) for start, n in sorted(counts.items()) if start in others]

    def bring() -> None:
        for name, files in (("left", left), ("right", RIGHT)):
            _timed(folder, name, 0, files, ()).prepare()

    return _query(folder, "a join", text, [Phase(bring, expected)], "start, n, m")


def _query(folder: Path, name: str, text: str, phases: Sequence[Phase], columns: str = "start, n") -> Scenario:
    """A query, whose rows go to the table `rows`."""
    place = str(folder / "state")

    def pipeline(width: int) -> Pipeline:
        found = Script("query.sql", text, []).pipeline
        return found.model_copy(update={"checkpoints": Checkpoints(place=place), "parallelism": width})

    return Scenario(
        name=name,
        folder=folder,
        opened=described(pipeline),
        shown=lambda: of_table(folder / "rows.db", columns),
        phases=phases,
        place=place,
    )


SCENARIOS: Mapping[str, Callable[[Path], Scenario]] = {
    "parts of csv": lambda folder: _parts(folder, "csv"),
    "parts of parquet": lambda folder: _parts(folder, "parquet", part_rows=2),
    "parts of json": lambda folder: _parts(folder, "jsonl", compression="none"),
    "sqlite": _sqlite,
    "sqlite by key": lambda folder: _sqlite(folder, key=["n"]),
    "objects": _in_objects,
    "watched": _watched,
    "one file": _one_file,
    "windows": _windows,
    "windows in slices": lambda folder: _windows(folder, IN_TIME),  # with several, other rows are late
    "windows and more": lambda folder: _windows(folder, TIMES, LATER),
    "join": _join,
}
