"""Everything is checked before anything starts: plugins, functions, columns, types, options, sinks, variables."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin.engine.pipeline.document import Document, pipeline_of
from arroyo_udf_plugin.engine.pipeline.explain import explained
from arroyo_udf_plugin.engine.pipeline.plan import Planned, plan
from arroyo_udf_plugin.engine.pipeline.problems import InvalidPipeline

pytestmark = pytest.mark.usefixtures("folder")


def described(*calls: str, **others: Any) -> dict[str, Any]:
    """A pipeline over the flights. others: further keys, of the operator and of the pipeline."""
    keys = ("isolation", "on_error", "on_timeout", "options", "plugin", "workers")
    operator = {key: others.pop(key) for key in keys if key in others}
    return {
        "name": "test",
        "source": {"type": "files", "paths": ["flights.parquet"]},
        "operators": [{"plugin": "functions.so", "calls": list(calls)} | operator] if calls else [],
        "sinks": [{"type": "blackhole"}],
    } | others


def planned(*calls: str, **others: Any) -> Planned:
    made = plan(pipeline_of(described(*calls, **others)))
    made.inputs[0].source.close()
    return made


def problems(*calls: str, environment: dict[str, str] | None = None, **others: Any) -> list[str]:
    with pytest.raises(InvalidPipeline) as error:
        plan(pipeline_of(described(*calls, **others)), environment or {})
    return [str(problem) for problem in error.value.problems]


def test_results_are_columns_of_the_output() -> None:
    made = planned("speed = mph(miles, minutes)", "plane(tail)", "faster = mph(miles, 30)")
    assert made.chain.schemas[0].names == ["tail", "miles", "minutes", "departure", "speed", "plane", "faster"]
    assert made.chain.schemas[0].types[4:] == [pa.float64(), pa.string(), pa.float64()]


def test_no_operators_are_a_copy() -> None:
    assert planned().chain.schemas[None].names == ["tail", "miles", "minutes", "departure"]
    assert planned().operators() == []


def test_calls_belong_to_their_operators() -> None:
    operators = [
        {"plugin": "functions.so", "calls": ["a = mph(miles, minutes)", "b = plane(tail)"]},
        {"plugin": "functions.so", "calls": ["c = plane(b)"], "name": "mine"},
        {"plugin": "functions.so", "calls": ["d = plane(c)"]},
    ]
    made = planned(operators=operators).operators()
    assert [(one.name, [stage.name for stage in one.stages]) for one in made] == [
        ("functions", ["a", "b"]),
        ("mine", ["c"]),
        ("functions-2", ["d"]),
    ]


def test_a_source_is_built(folder: Path) -> None:
    (folder / "own.py").write_text(
        "from arroyo_udf_plugin import udf\n\n@udf\ndef half(miles: int) -> float:\n    return miles / 2\n"
    )
    assert planned("half", plugin="own.py").chain.schemas[0].names[-1] == "half"


def test_everything_that_is_wrong_is_told_at_once() -> None:
    others = {
        "plugin": "functions.so",
        "on_error": "dead_letter",
        "options": {"timeout": "soon", "timout": 1},
        "event_time": {"column": "tail"},
        "sinks": [{"type": "parts", "path": "out"}, {"type": "blackhole"}, {"type": "stdout"}],
        "checkpoints": {"place": "state"},
    }
    assert problems(
        "speed = mph(miles, minuts)",
        "x = plan(tail)",
        "y = mph(x, speed)",
        "z = mph(tail, minutes)",
        "mph(miles)",
        "miles = mph(miles, minutes)",
        "w = plane(miles)",
        "v = mph(miles, 'a')",
        "f(",
        **others,
    ) == [
        "event_time.column: event time: column 'tail' is string; name a column of timestamps, dates, or text that has "
        "them",
        'operators[0].on_error: the policy dead_letter needs a place: add [dead_letters], such as type = "parts"',
        "operators[0].calls[0]: there is no column 'minuts': write 'minutes'",
        "operators[0].calls[1]: plugin functions has no function 'plan': write 'plane'",
        "operators[0].calls[3]: column 'tail': argument 'miles' is string, not int64: cast it in an operator "
        'before, type = "sql", or change the function'
        "'s signature",
        "operators[0].calls[4]: mph takes 2 arguments (miles: int64, minutes: int64), but the columns named are: miles",
        "operators[0].calls[5]: there is a column 'miles' already: name the result, as in other = mph(...)",
        "operators[0].calls[6]: column 'miles': argument 'tail' is int64, not string: cast it in an operator "
        'before, type = "sql", or change the function'
        "'s signature",
        "operators[0].calls[7]: functions.mph: the constant for 'minutes': 'a' is not int64",
        "operators[0].calls[8]: 'f(': write FUNCTION, FUNCTION(COLUMN, ...) or NAME = FUNCTION(COLUMN, ...)",
        "operators[0].options.timeout: timeout='soon'; write seconds above 0 and up to 1e9, a text such as '10ms', or "
        "math.inf",
        "operators[0].options.timout: there is no such option: write 'timeout'",
        "sinks[2].type: 'stdout' cannot go on where it stopped: write a folder, type = \"parts\", or leave out the "
        "checkpoints",
    ]


def test_what_shares_standard_output_can_be_told_apart() -> None:
    lines, rows = {"type": "stdout", "format": "jsonl"}, {"type": "stdout"}
    letters = {"on_error": "dead_letter", "dead_letters": rows}
    told = "standard output gets other rows already, with the columns tail, miles, minutes, departure, speed: "
    told += "write both as newline JSON, or name another place for one"
    call = "speed = mph(miles, minutes)"
    assert problems(call, sinks=[rows], **letters) == [f"dead_letters: {told}"]
    assert problems(call, sinks=[lines, {"type": "file", "path": "-"}]) == [f"sinks[1]: {told}"]
    assert problems(call, sinks=[rows, {**rows, "header": False}]) == [f"sinks[1]: {told}"]
    planned(call, sinks=[rows, rows]).close()
    planned(call, sinks=[lines], **{**letters, "dead_letters": lines}).close()


def test_options_are_checked() -> None:
    assert problems("plane(tail)", options={"timeout": "soon", "timout": 1}) == [
        "operators[0].options.timeout: timeout='soon'; write seconds above 0 and up to 1e9, a text such as '10ms', or "
        "math.inf",
        "operators[0].options.timout: there is no such option: write 'timeout'",
    ]
    assert problems("mph(miles, minutes)", options={"timeout": 1}) == [
        "operators[0].options: options are for async functions, and mph is none: leave them out"
    ]


def test_each_function_may_have_options_of_its_own() -> None:
    calls = ("plane(tail)", "mph(miles, minutes)")
    options = {"timeout": "3s", "max_rows": 100, "plane": {"timeout": "2s"}}
    with contextlib.closing(planned(*calls, options=options)) as made:
        (operator,) = made.operators()
        operator.start()
        assert operator.stages[0]._options == {"timeout": "2s", "max_rows": 100}  # type: ignore[attr-defined]
        operator.stop()
        operator.close()
    assert problems(*calls, options={"mph": {"timeout": "2s"}, "plan": {}, "plane": {"timout": 1, "seed": -1}}) == [
        "operators[0].options.mph: options are for async functions, and mph is none: leave them out",
        "operators[0].options.plan: no call is of 'plan': write 'plane'",
        "operators[0].options.plane.timout: there is no such option: write 'timeout'",
        "operators[0].options.plane.seed: seed=-1; write a whole number from 1 to 18446744073709551615",
    ]


def test_text_that_has_no_times_is_no_event_time(folder: Path) -> None:
    (folder / "rows.csv").write_text("tail,at\nN1,NA\nN2,2013-01-01T00:00:00Z\nN3,soon\n")
    source = {"type": "files", "paths": ["rows.csv"]}
    assert problems(source=source, event_time={"column": "tail"}) == [
        "event_time.column: event time: column 'tail' is text, and none of its first 3 cells is a time, such as 'N1': "
        "name another column"
    ]
    planned(source=source, event_time={"column": "at"}).close()


def test_a_place_of_checkpoints_that_cannot_be_made_is_refused(folder: Path) -> None:
    (folder / "file").touch()
    assert problems(checkpoints={"place": "file/state"}) == [
        f"checkpoints.place: cannot write into file/state: {folder}/file is a file"
    ]


def test_parts_of_another_run_are_seen_before_a_run_without_checkpoints(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "part-000-000000.parquet").touch()
    keys = {"sinks": [{"type": "parts", "path": "out"}]}
    with contextlib.closing(planned(**keys)) as made, pytest.raises(InvalidPipeline, match="parts of another run"):
        made.check_free()
    with contextlib.closing(planned(**keys, checkpoints={"place": "state"})) as made:
        made.check_free()


def test_a_timeout_of_a_sync_function_needs_worker_processes(folder: Path) -> None:
    (folder / "own.py").write_text(
        "from arroyo_udf_plugin import udf\n\n@udf(timeout=60)\ndef half(miles: int) -> float:\n    return miles / 2\n"
    )
    assert problems("half", plugin="own.py") == [
        "operators[0].calls[0]: half has a timeout, and only worker processes keep one: choose isolation = "
        '"process" for this operator, or leave the timeout out'
    ]
    with contextlib.closing(planned("half", plugin="own.py", isolation="process")) as made:
        assert made.chain.schemas[0].names[-1] == "half"


def test_the_workers_of_all_slices_are_counted() -> None:
    wrong = problems("mph(miles, minutes)", "plan", isolation="process", workers=1024, parallelism=2)
    assert wrong[0] == "operators[0].isolation: workers=2048: at most 1024"
    assert len(wrong) == 2


def test_a_plugin_that_is_missing() -> None:
    (told,) = problems("f(tail)", plugin="nothing.py")
    assert told.startswith("operators[0].plugin: ")
    assert told.endswith("nothing.py: there is no such file")
    (told,) = problems("f(tail)", plugin="nothing.so")
    assert told.startswith("operators[0].plugin: ")
    assert "nothing.so" in told


def test_a_result_of_a_wrong_call_is_not_told_to_be_missing() -> None:
    assert problems("speed = mph(miles, minuts)", "plane(speed)", "x = plane(speed)") == [
        "operators[0].calls[0]: there is no column 'minuts': write 'minutes'"
    ]


def test_functions_are_checked_although_the_source_is_missing() -> None:
    assert problems("x = plan(tail)", "y = mph(a)", source={"type": "files", "paths": ["nothing.csv"]}) == [
        "source: nothing.csv: there is no such file",
        "operators[0].calls[0]: plugin functions has no function 'plan': write 'plane'",
        "operators[0].calls[1]: mph takes 2 arguments (miles: int64, minutes: int64), but the columns named are: a",
    ]


def test_dead_letters_need_a_policy_and_a_policy_dead_letters() -> None:
    dead = {"type": "parts", "path": "dead"}
    assert problems("mph(miles, minutes)", dead_letters=dead) == [
        'dead_letters: no policy sends rows here: write on_error = "dead_letter" for an operator'
    ]
    source = {"type": "files", "paths": ["flights.parquet"], "bad_records": "dead_letter"}
    (told,) = problems("mph(miles, minutes)", source=source)
    assert told.startswith("source.bad_records: the policy dead_letter needs a place")
    assert planned("mph(miles, minutes)", source=source, dead_letters=dead).letter_schema.names[-1] == "failed_plugin"


@pytest.mark.parametrize(
    ("sinks", "told"),
    [
        (
            [{"type": "parts", "path": "out"}, {"type": "parts", "path": "./out"}],
            "sinks[1].path: ./out is the place of sinks[0], too: name another output",
        ),
        (
            [{"type": "file", "path": "flights.parquet"}],
            "sinks[0].path: flights.parquet is an input, too: name another output",
        ),
        (
            [{"type": "file", "path": "out.what"}],
            "sinks[0]: out.what: the file's ending must be one of",
        ),
    ],
)
def test_outputs_have_places_of_their_own(sinks: list[dict[str, Any]], told: str) -> None:
    (found,) = problems(sinks=sinks)
    assert found.startswith(told)


@pytest.mark.parametrize("sink", [{"type": "file", "path": "out.csv"}, {"type": "stdout"}])
def test_what_cannot_take_back_rows_has_no_checkpoints(sink: dict[str, Any]) -> None:
    assert problems(sinks=[sink], checkpoints={"place": "state"}) == [
        f'sinks[0].type: {sink["type"]!r} cannot go on where it stopped: write a folder, type = "parts", or leave '
        "out the checkpoints"
    ]


def test_checks_leave_nothing_behind(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    planned(
        "mph(miles, minutes)",
        sinks=[{"type": "parts", "path": "out"}, {"type": "table", "uri": "sqlite:own.db", "table": "t"}],
    )
    planned(sinks=[{"type": "file", "path": "out.csv"}])
    assert sorted(folder.rglob("*")) == before


def test_variables_are_resolved_only_when_used(folder: Path) -> None:
    told = pipeline_of(described("mph(miles, minutes)", source={"type": "files", "paths": ["${FOLDER}/*.parquet"]}))
    made = plan(told, {"FOLDER": str(folder)})
    made.inputs[0].source.close()
    assert made.pipeline is told
    assert made.inputs[0].source.name == "${FOLDER}/*.parquet"
    assert list(made.inputs[0].source.partitions()) == ["${FOLDER}/flights.parquet"]
    made.inputs[0].source.open("${FOLDER}/flights.parquet", None).close()
    for text in (explained(made), repr(made.fingerprint)):
        assert "${FOLDER}" in text
        assert str(folder) not in text


def test_a_column_of_file_names_does_not_show_values(folder: Path) -> None:
    source = {"type": "files", "paths": ["${FOLDER}/*.parquet"], "metadata": {"file": "filename", "number": "row"}}
    with contextlib.closing(plan(pipeline_of(described(source=source)), {"FOLDER": str(folder)})) as made:
        (given,) = made.inputs
        with contextlib.closing(given.source.open("${FOLDER}/flights.parquet", None)) as partition:
            rows = asyncio.run(partition.read())  # type: ignore[arg-type]
        (block,) = given.admit(rows)
    assert block.rows.schema.equals(made.columns.schema)
    assert set(block.rows.column("file").to_pylist()) == {"${FOLDER}/flights.parquet"}
    assert block.rows.column("number")[0].as_py() == 1


def test_errors_do_not_show_values(folder: Path) -> None:
    source = {"type": "files", "paths": ["${FOLDER}/nothing.csv"]}
    assert problems(source=source, environment={"FOLDER": "/secret/folder"}) == [
        "source: ${FOLDER}/nothing.csv: there is no such file"
    ]
    assert problems(event_time={"column": "departure", "lateness": "${LATE}"}, environment={"LATE": "secretly"}) == [
        "event_time.lateness: write seconds as a number, or a text with a unit (ns, us, ms, s, min, h or d), such as "
        "'10s' or '500ms', not '${LATE}'"
    ]


def test_missing_variables_are_one_error_before_anything_else() -> None:
    assert problems("${A}", plugin="${B}") == [
        "operators[0].plugin: the environment variable B is not set: export B=...",
        "operators[0].calls[0]: the environment variable A is not set: export A=...",
    ]


def test_errors_have_lines(folder: Path) -> None:
    (folder / "p.toml").write_text(
        """name = "test"
[source]
type = "files"
paths = ["flights.parquet"]
[[operators]]
plugin = "functions.so"
calls = [
  "a = mph(miles, minutes)",
  "b = plane(tial)",
]
[[sinks]]
type = "blackhole"
"""
    )
    document = Document.read("p.toml")
    told = r"^p\.toml:9: operators\[0\]\.calls\[1\]: there is no column 'tial'"
    with pytest.raises(InvalidPipeline, match=told), document.located():
        plan(document.pipeline)


def test_the_chain_explained() -> None:
    made = planned(
        "speed = mph(miles, 60)",
        "plane(tail)",
        on_error="dead_letter",
        event_time={"column": "departure", "lateness": "10s"},
        dead_letters={"type": "parts", "path": "dead"},
        parallelism=2,
    )
    assert explained(made).splitlines() == [
        "pipeline test: 2 slices",
        "source files: paths = ['flights.parquet']",
        "    tail       string",
        "    miles      int64",
        "    minutes    int64",
        "    departure  timestamp[us, tz=UTC]",
        "event time: column = departure, lateness = 10.0",
        "operator functions: plugin = functions.so, on_error = dead_letter",
        "    speed = mph(miles, 60)    sync, speed: double",
        "    plane(tail)    async, plane: string",
        "sink blackhole: defaults",
        "    tail       string",
        "    miles      int64",
        "    minutes    int64",
        "    departure  timestamp[us, tz=UTC]",
        "    speed      double",
        "    plane      string",
        "dead letters parts: path = dead",
        "    tail             string",
        "    miles            int64",
        "    minutes          int64",
        "    departure        timestamp[us, tz=UTC]",
        "    failed_row       uint64",
        "    failed_file      string",
        "    failed_outcome   string",
        "    failed_error     string",
        "    failed_attempts  uint32",
        "    failed_function  string",
        "    failed_plugin    string",
    ]


def test_checkpoints_have_time_between_them() -> None:
    (told,) = problems(checkpoints={"place": "state", "every": 0})
    assert told == "checkpoints.every: it must be greater than 0, not 0"


def test_errors_of_files_name_keys(folder: Path) -> None:
    """The same texts name options in `run PLUGIN INPUT`."""
    (folder / "flights.txt").write_text("a;b\n1;2\n")
    (told,) = problems(source={"type": "files", "paths": ["flights.txt"]})
    assert told.startswith("source: flights.txt: the file's ending must be one of")
    assert told.endswith(", or format must name the format")
