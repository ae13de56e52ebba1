"""Pipelines with event time: windows and joins of them, whose rows may come late."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from copies import Files, bring, of_table

from arroyo_udf_plugin.engine.connectors.table import Table
from arroyo_udf_plugin.engine.pipeline import Checkpoints, Pipeline
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.testing import Phase, Scenario, described

WIDTH, LATENESS = 10, 2  # minutes

# Minutes; 3 and 9 in the third file are late: with 21 before them, the window from 0 to 10 is over.
TIMES: Files = ([1, 2, 8], [11, 14, 21], [3, 22, 9], [31])
LATER: Files = ([32, 25, 45],)  # at the end of TIMES all windows are over, so only 45 is in time
IN_TIME: Files = ([1, 2, 8], [11, 9, 14], [16, 21], [31])
TABLE = """
CREATE TABLE {name} (at TIMESTAMP(0), WATERMARK FOR at AS at - INTERVAL '{lateness} minutes')
WITH (connector = 'filesystem', path = '{folder}/{name}', format = 'csv', type = 'source'{options});
"""
OUT = "CREATE TABLE {table} WITH (connector = 'sqlite', uri = 'sqlite:{folder}/rows.db', type = 'sink');"
START = "CAST(date_part('epoch', {window}.start) AS BIGINT) / 60 % 1440"
COUNTS = "SELECT tumble(INTERVAL '10 minutes') AS window, count(*) AS n FROM {name} GROUP BY window"


def _table(folder: Path, name: str, options: str = "") -> str:
    return TABLE.format(name=name, folder=folder, lateness=LATENESS, options=options)


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


def windows(folder: Path, times: Files = TIMES, more: Files = ()) -> Scenario:
    text = (
        _table(folder, "left")
        + OUT.format(folder=folder, table="rows")
        + f"CREATE VIEW counts AS {COUNTS.format(name='left')};"
        + f"INSERT INTO rows SELECT {START.format(window='window')} AS start, n FROM counts;"
    )
    phases = [_timed(folder, "left", 0, times, sorted(counted(times).items()))]
    if more:
        phases.append(_timed(folder, "left", len(times), more, sorted((counted(times) + Counter({40: 1})).items())))
    return _query(folder, "windows", text, phases)


def _timed(folder: Path, name: str, first: int, files: Files, expected: Sequence[Any]) -> Phase:
    texts = [[_time(minute) for minute in minutes] for minutes in files]
    return Phase(lambda: bring(folder, first, texts, "at", name), expected)


HOURS: Files = ([1, 61, 121], [62, 181, 242], [241, 301, 2], [361, 122, 3], [421, 182])


def kept(folder: Path) -> Scenario:
    """Windows that keep their rows until the end: checkpoints share the files of these."""
    hour = 60
    counts = Counter(minute // hour * hour for minutes in HOURS for minute in minutes)
    text = (
        _table(folder, "left").replace(f"'{LATENESS} minutes'", "'1000 minutes'")
        + OUT.format(folder=folder, table="rows")
        + "CREATE VIEW counts AS SELECT tumble(INTERVAL '60 minutes') AS window, count(DISTINCT at) AS n FROM left "
        + "GROUP BY window;"
        + f"INSERT INTO rows SELECT {START.format(window='window')} AS start, n FROM counts;"
    )
    return _query(folder, "windows that keep rows", text, [_timed(folder, "left", 0, HOURS, sorted(counts.items()))])


RIGHT: Files = ([5, 12], [13, 24], [33])


def join(folder: Path) -> Scenario:
    """Two sources; no row is late, whichever of them is faster."""
    left: Files = ([1, 2, 8], [11, 14, 21], [22], [41])
    text = (
        _table(folder, "left")
        + _table(folder, "right")
        + OUT.format(folder=folder, table="rows")
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


# A phase closes windows, or it has rows for them: so a row is late if a phase before has closed its window, and in time
# otherwise, whichever slice reads which file.
PHASES: Sequence[Files] = (
    ([1, 5, 8], [2, 9]),
    ([12, 21], [15, 21]),  # closes the window from 0
    ([3, 13, 20], [9, 19, 21]),  # 3 and 9 are late
    ([33, 34], [34]),  # closes those from 10 and 20
    ([18, 29, 36], [3, 36]),  # 18, 29 and 3 are late
    ([45], [45]),
)
OTHERS: Sequence[Files] = (([3], [6]), ([14, 21], [21]), ([8, 17], [21]), ([33], [34]), ([22, 35], [36]), ([45], [45]))


def late(folder: Path, *names: str) -> Scenario:
    """Windows over watched folders, or their join. After each stop of the engine, late rows come, and are dead letters.

    All rows are copied, too, so that one can see when an engine has read them.
    """
    watched = ", 'source.watch' = '1ms'"
    files = dict(zip(names, (PHASES, OTHERS), strict=False))
    text = "SET on_late = 'dead_letter'; SET dead_letters = 'dead';" + OUT.format(folder=folder, table="rows")
    for name in names:
        text += _table(folder, name, watched) + OUT.format(folder=folder, table=f"all_{name}")
        text += f"CREATE VIEW counts_{name} AS {COUNTS.format(name=name)};"
        text += f"INSERT INTO all_{name} SELECT CAST(date_part('epoch', at) AS BIGINT) / 60 % 1440 AS n FROM {name};"
    text += _INSERTS[len(names)].format(*names, start=START.format(window="w"))
    at = -1

    def phase(number: int) -> Phase:
        def prepare() -> None:
            nonlocal at
            at = number
            for name in names:
                first = sum(map(len, files[name][:number]))
                _timed(folder, name, first, files[name][number], ()).prepare()

        read = {name: [sorted(m for file in of for m in file) for of in files[name][: number + 1]] for name in names}
        watermark = min(of[-1][-1] for of in read.values()) - LATENESS
        counts = [counted(read[name]) for name in names]
        starts = sorted(set.intersection(*map(set, counts)))
        closed = [start for start in starts if start + WIDTH <= watermark]
        every: list[Any] = [(name, m) for name in names for of in read[name] for m in of]
        every += [letter for name in names for letter in _late(folder / name, files[name][: number + 1])]
        return Phase(prepare, every + [("window", start, *(one[start] for one in counts)) for start in closed])

    def shown() -> list[Any]:
        database, columns = folder / "rows.db", ("start", "n", "m")[: 1 + len(names)]
        every: list[Any] = [(name, m) for name in names for m in of_table(database, table=f"all_{name}")]
        every += of_table(database, "failed_outcome, failed_file, failed_row", "dead")
        return every + [("window", *row) for row in of_table(database, ", ".join(columns))]

    phases = [phase(number) for number in range(len(PHASES))]
    letters = Table(uri=f"sqlite:{folder}/rows.db", table="dead")
    found = _query(folder, f"late rows in {' and '.join(names)}", text, phases, dead_letters=letters)
    return dataclasses.replace(found, shown=shown, until=lambda: len(shown()) >= len(phases[at].expected))


def _late(place: Path, phases: Sequence[Files]) -> Iterator[tuple[str, str, int]]:
    """The dead letters of rows whose window a phase before has closed. place: of the files."""
    watermark, number = -1, 0
    for files in phases:
        for minutes in files:
            for row, minute in enumerate(minutes, 1):
                if minute // WIDTH * WIDTH + WIDTH <= watermark:
                    yield "late", str(place / f"{number:03}.csv"), row
            number += 1
        watermark = max(watermark, *(minute - LATENESS for minutes in files for minute in minutes))


_INSERTS = {
    1: "CREATE VIEW result AS SELECT window AS w, n FROM counts_{0}; "
    "INSERT INTO rows SELECT {start} AS start, n FROM result;",
    2: "CREATE VIEW result AS SELECT l.window AS w, l.n AS n, r.n AS m FROM counts_{0} l JOIN counts_{1} r "
    "ON l.window = r.window; INSERT INTO rows SELECT {start} AS start, n, m FROM result;",
}


def _query(
    folder: Path, name: str, text: str, phases: Sequence[Phase], columns: str = "start, n", **others: Any
) -> Scenario:
    """A query, whose rows go to the table `rows`. others: of its pipeline."""
    place = str(folder / "state")

    def pipeline(width: int) -> Pipeline:
        found = Script("query.sql", text, []).pipeline
        return found.model_copy(update={"checkpoints": Checkpoints(place=place), "parallelism": width, **others})

    return Scenario(
        name=name,
        folder=folder,
        opened=described(pipeline),
        shown=lambda: of_table(folder / "rows.db", columns),
        phases=phases,
        place=place,
    )
