"""What may change between a checkpoint and the run that goes on from it: each line of the table in docs/pipelines.md
(O3, O4). While windows are open; test_changed_pipelines.py has more of that."""

from __future__ import annotations

import copy
import json
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.execution.progress import Progress
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from arroyo_udf_plugin.errors import InvalidArgument

Described = dict[str, Any]
Rows = list[dict[str, Any]]

DOCS = Path(__file__).parents[3] / "docs" / "pipelines.md"
FUNCTIONS = """
from arroyo_udf_plugin import udf

@udf
async def plain(x: int) -> int:
    return x

@udf
async def other(x: int) -> int:
    return x
"""
TYPES = {"t": "timestamp[ns]", "u": "timestamp[ns]", "x": "int64"}
WINDOWS: Described = {
    "name": "windows",
    "source": {"type": "files", "paths": ["in"], "types": TYPES},
    "event_time": {"column": "t"},
    "operators": [
        {"plugin": "plain.so", "calls": ["y = plain(x)"], "options": {"timeout": "9s"}},
        {"type": "sql", "select": {"t": "t", "u": "u", "k": "k", "x": "y"}},
        {
            "type": "windows",
            "time": "t",
            "width": "10min",
            "keys": ["k"],
            "aggregates": {"n": "count(*)", "s": "sum(x)"},
        },
        {"type": "sql", "select": {"k": "k", "n": "n", "s": "s"}},
    ],
    "sinks": [{"type": "parts", "path": "out", "format": "jsonl"}],
    "checkpoints": {"place": "state", "every_rows": 1},
}
AS_IT_WAS: Rows = [{"k": "a", "n": 3, "s": 6}]
SESSIONS = copy.deepcopy(WINDOWS)
SESSIONS["operators"][2] |= {"gap": "10min"}
del SESSIONS["operators"][2]["width"]
MONTHS = copy.deepcopy(WINDOWS)
MONTHS["operators"][2] |= {"months": 1}
del MONTHS["operators"][2]["width"]
HOPS = copy.deepcopy(WINDOWS)
HOPS["operators"][2] |= {"slide": "5min", "aggregates": {"n": "count(*)"}}
del HOPS["operators"][3]
COUNTED = {
    "type": "windows",
    "time": "t",
    "width": "1min",
    "keys": ["k"],
    "aggregates": {"n": "count(*)", "s": "sum(x)"},
}
TIMED = {"type": "sql", "select": {"t": "t", "k": "k", "n": "n", "s": "s"}}
JOIN: Described = {
    "name": "join",
    "source": WINDOWS["source"],
    "event_time": WINDOWS["event_time"],
    "sources": {"second": {"source": WINDOWS["source"] | {"paths": ["second"]}, "event_time": WINDOWS["event_time"]}},
    "operators": [
        {**COUNTED, "name": "counted"},
        {**TIMED, "name": "left"},
        {**COUNTED, "name": "counted_again", "after": "second"},
        {**TIMED, "name": "right"},
        {
            "type": "join",
            "left": "left",
            "right": "right",
            "time": "t",
            "kind": "inner",
            "on": "a.k = b.k",
            "select": {"k": "a.k", "n": "a.n", "m": "b.n"},
        },
        {"type": "sql", "select": {"k": "k", "n": "n", "m": "m"}},
    ],
    "sinks": WINDOWS["sinks"],
    "checkpoints": WINDOWS["checkpoints"],
}
"""At its checkpoint the first minute of the left side waits for that of the right one."""
LOOKUP: Described = {
    "name": "lookup",
    "source": WINDOWS["source"],
    "operators": [
        {
            "type": "lookup",
            "uri": "sqlite:places.db",
            "table": "places",
            "keys": {"k": "k"},
            "columns": {"place": "place"},
        },
        {"type": "sql", "select": {"place": "place", "x": "x"}},
    ],
    "sinks": WINDOWS["sinks"],
    "checkpoints": WINDOWS["checkpoints"],
}

Change = tuple[Described, str, Any, Rows | str]
"""Of a pipeline, at a path of keys with slashes between them, a value (None: there is none), or at several paths; what
comes out then, or what the refusal says."""


def free(path: str, value: Any, found: Rows | str = AS_IT_WAS) -> Change:  # type: ignore[assignment]
    return WINDOWS, path, value, found


LINES: Mapping[str, Sequence[Change]] = {
    "`--parallelism`, `on_error`, `on_timeout`, `on_late`, `allowed_lateness` (from the next watermark on), "
    "`max_drift`, options of functions, their `isolation` and `workers`, `bad_records`, `watch`, `lateness`, "
    "`idle`, limits": [
        free("parallelism", 3),
        free("operators/0/on_error", "drop"),
        free("operators/0/on_timeout", "null"),
        free("operators/0/options", {"plain": {"timeout": "8s"}, "max_attempts": 2}),
        free("operators/0/isolation", "process"),
        free("operators/0/isolation operators/0/workers", ["process", 2]),
        free("source/bad_records", "drop"),
        free("source/watch", None),
        free("event_time/lateness", "1h"),
        free("event_time/idle", "1s"),
        free("operators/2/on_late dead_letters", ["dead_letter", {"type": "parts", "path": "dead"}]),
        free("operators/2/allowed_lateness", "1h"),
        free("operators/2/max_drift", "1h"),
        free("operators/2/memory_limit", 1 << 20),
        free("operators/2/disk_limit", 1 << 20),
    ],
    "sizes of parts, `row_group_rows`, `create` of a table; `dead_letters` that there were not before; "
    "layout and comments of expressions": [
        free("sinks/0/part_rows", 1),
        free("sinks/0/part_bytes", 1000),
        free("sinks/0/row_group_rows", 1),
        free("dead_letters operators/0/on_error", [{"type": "parts", "path": "dead"}, "dead_letter"]),
        free("operators/3/select/s", " s  -- the sum"),
    ],
    "another build of a plugin": [
        free("", "rebuilt", r"the plugin of y is not the one that ran before: .*, or add --allow-")
    ],
    "an expression of a query, such as behind windows": [
        free("operators/3/select/s", "s * 10", [{"k": "a", "n": 3, "s": 60}]),
        free("operators/3/select/s", "s * 0.5", r"columns\[0\]\.s was .int64., and is .double"),
    ],
    "an expression in front of windows that their keys, event time or aggregates are made of": [
        free("operators/1/select/k", "upper(k)", r"operators\[1\]\.select\.k was"),
        free("operators/1/select/t", "u", r"operators\[1\]\.select\.t was"),
        free("operators/1/select/x", "y + 1", r"operators\[1\]\.select\.x was"),
    ],
    "a condition (`where`), also one that comes or goes": [
        free("operators/1/where", "y < 3", [{"k": "a", "n": 2, "s": 3}]),
        free("operators/3/where", "s > 6", []),
    ],
    "an aggregate": [
        free("operators/2/aggregates", {"s": "sum(x)", "n": "count(*)"}),
        free("operators/2/aggregates/s", "count(*)", [{"k": "a", "n": 3, "s": 3}]),
    ],
    "an aggregate of something else, such as `max(x)` instead of `sum(x)`": [
        free("operators/2/aggregates/s", "max(x)", r"had rows with the columns .*, and now gets .*max"),
    ],
    "the columns of a join": [
        (JOIN, "operators/4/select", {"k": "a.k", "n": "a.n + b.n", "m": "b.n"}, [{"k": "a", "n": 2, "m": 1}]),
        (
            JOIN,
            "operators/4/select",
            {"k": "a.k", "n": "a.s", "m": "b.n"},
            r"had rows with the columns .*, and now gets",
        ),
    ],
    "columns of a query: more, fewer, other names, other types": [
        free("operators/3/select/more", "n", r"operators\[3\]\.select\.more was null"),
        free("operators/3/select/s", None, r"operators\[3\]\.select\.s was .s., and is null"),
        free("operators/3/select", {"k": "k", "n": "n", "sum": "s"}, r"operators\[3\]\.select\.s was .s., and is null"),
        free("operators/3/select/n", "CAST(n AS DOUBLE)", r"columns\[0\]\.n was .int64., and is .double"),
    ],
    "the width, slide, months, gap, keys or time of windows; the kind, condition or interval of a join": [
        free("operators/2/width", "20min", r"operators\[2\]\.width was 600"),
        (HOPS, "operators/2/slide", "2min", r"operators\[2\]\.slide was 300"),
        (MONTHS, "operators/2/months", 2, r"operators\[2\]\.months was 1, and is 2"),
        (SESSIONS, "operators/2/gap", "20min", r"operators\[2\]\.gap was 600"),
        free("operators/2/keys", ["k", "x"], r"operators\[2\]\.keys\[1\] is new"),
        free("operators/2/time", "u", r"operators\[2\]\.time was .t., and is .u"),
        (JOIN, "operators/4/kind", "left", r"operators\[4\]\.kind was .inner., and is .left"),
        (JOIN, "operators/4/within", [0, 60], r"operators\[4\]\.within was null"),
        (JOIN, "operators/4/on", "a.n = b.n", r"operators\[4\]\.on was .a\.k = b\.k., and is .a\.n"),
    ],
    "lookups, calls of functions, sources, sinks": [
        (LOOKUP, "operators/0/columns", {"place": "k"}, r"operators\[0\]\.columns\.place was .place., and is .k"),
        (LOOKUP, "operators/0/where", "x > 1", r"operators\[0\]\.where was null"),
        free("operators/0/calls", ["y = other(x)"], r"operators\[0\]\.calls\[0\] was .y = plain\(x\)"),
        free("source/paths", ["in", "more"], r"source\.paths\[1\] is new"),
        free("sinks/0/path", "elsewhere", r"sinks\[0\]\.path was .out., and is .elsewhere"),
    ],
}
CHANGES = [change for changes in LINES.values() for change in changes]


@pytest.fixture(scope="session")
def plugins(build_plugin: Callable[..., Path]) -> Mapping[str, Path]:
    return {
        "plain": build_plugin(FUNCTIONS, name="plain"),
        "rebuilt": build_plugin(FUNCTIONS + "\nREBUILT = True\n", name="plain"),
    }


@pytest.fixture(autouse=True)
def here(tmp_path: Path, plugins: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plain.so").symlink_to(plugins["plain"])
    for name in ("in", "more", "second"):
        Path(name).mkdir()
    bring("in/1.csv", (1, 2))
    bring("more/3.csv", ())
    bring("second/1.csv", (1,))
    with closing(sqlite3.connect("places.db")) as places, places:
        places.execute("CREATE TABLE places (k TEXT, place TEXT)")
        places.execute("INSERT INTO places VALUES ('a', 'home')")


def bring(path: str, numbers: Sequence[int]) -> None:
    rows = "".join(f"2020-01-01 00:0{n}:00,2020-01-01 00:0{n}:00,a,{n}\n" for n in numbers)
    Path(path).write_text(f"t,u,k,x\n{rows}")


def begin(described: Described) -> None:
    """A run that is stopped while a window is open, with rows of x = 1 and 2, and of a second source 1."""
    stop = StopRequest()
    watched = copy.deepcopy(described)
    sources = [watched["source"], *(one["source"] for one in watched.get("sources", {}).values())]
    for source in sources:
        source["watch"] = 0.01

    def hear(progress: Progress) -> None:
        if progress.rows_in == 1 + len(sources) and not stop.requests:
            stop.request()

    assert run_pipeline(pipeline_of(watched), stop=stop, progress=hear).ended == "resumable"


def go_on(described: Described, allow_changed_plugin: bool = False) -> Rows:
    """To the end of the input, in which there is one more row, of x = 3. Returns what is there then."""
    bring("in/2.csv", (3,))
    run_pipeline(pipeline_of(described), resume=True, allow_changed_plugin=allow_changed_plugin)
    lines = [line for part in sorted(Path("out").glob("part-*")) for line in part.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def changed(described: Described, path: str, value: Any) -> Described:
    found = copy.deepcopy(described)
    paths = path.split(" ")
    for each, new in zip(paths, value if len(paths) > 1 else [value], strict=True):
        *keys, last = each.split("/")
        at: Any = found
        for key in keys:
            at = at[int(key) if isinstance(at, list) else key]
        if new is None:
            at.pop(last, None)
        else:
            at[last] = new
    return found


def everything() -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in Path("state").rglob("*") if one.is_file()}


@pytest.mark.parametrize(
    ("was", "path", "value", "found"), CHANGES, ids=lambda one: one if isinstance(one, str) else ""
)
def test_it_goes_on_or_is_refused_by_name(
    was: Described, path: str, value: Any, found: Rows | str, plugins: Mapping[str, Path]
) -> None:
    """A refusal changes nothing, and it goes on when the change is undone."""
    begin(was)
    now = was if not path else changed(was, path, value)
    if not path:
        rebuild(plugins[value])
    if not isinstance(found, str):
        assert go_on(now) == found
        return
    before = everything()
    with pytest.raises(InvalidArgument, match=found):
        go_on(now)
    assert everything() == before
    rebuild(plugins["plain"])
    assert go_on(was)


def rebuild(plugin: Path) -> None:
    Path("plain.so").unlink()
    Path("plain.so").symlink_to(plugin)


def test_another_build_of_a_plugin_if_it_is_allowed(plugins: Mapping[str, Path]) -> None:
    begin(WINDOWS)
    rebuild(plugins["rebuilt"])
    assert go_on(WINDOWS, allow_changed_plugin=True) == AS_IT_WAS


def test_each_line_of_the_table_is_here() -> None:
    section = DOCS.read_text().partition("### What may change")[2].partition("### ")[0]
    lines = re.findall(r"^\| (.*?) \| .* \|$", section, re.MULTILINE)
    assert lines[1:] == list(LINES)
