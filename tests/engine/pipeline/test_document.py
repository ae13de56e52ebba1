"""TOML, JSON and Python say the same; what is wrong is told together, each by the path of its key, with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from arroyo_udf_plugin.engine.connectors.blackhole import Blackhole
from arroyo_udf_plugin.engine.connectors.files import Files
from arroyo_udf_plugin.engine.connectors.parts import Parts
from arroyo_udf_plugin.engine.pipeline import Checkpoints, EventTime, Functions, Pipeline
from arroyo_udf_plugin.engine.pipeline.description import described, schema
from arroyo_udf_plugin.engine.pipeline.document import Document, pipeline_of
from arroyo_udf_plugin.engine.pipeline.problems import InvalidPipeline
from arroyo_udf_plugin.errors import InvalidArgument

TOML = """
name = "speeds"
parallelism = 2

[source]
type = "files"
paths = ["${FOLDER}/flights.parquet"]

[event_time]
column = "departure"
lateness = "1.5s"
idle = 10

[[operators]]
plugin = "functions.so"
calls = ["speed = mph(miles, minutes)", "plane(tail)"]
on_error = "dead_letter"
options = { timeout = "2s" }

[[sinks]]
type = "parts"
path = "out"

[[sinks]]
type = "blackhole"

[dead_letters]
type = "parts"
path = "dead"

[checkpoints]
place = "state"
every = "500ms"
"""

PIPELINE = Pipeline(
    name="speeds",
    parallelism=2,
    source=Files(paths=("${FOLDER}/flights.parquet",)),
    event_time=EventTime(column="departure", lateness=1.5, idle=10.0),
    operators=(
        Functions(
            plugin="functions.so",
            calls=("speed = mph(miles, minutes)", "plane(tail)"),
            on_error="dead_letter",
            options={"timeout": "2s"},
        ),
    ),
    sinks=(Parts(path="out"), Blackhole()),
    dead_letters=Parts(path="dead"),
    checkpoints=Checkpoints(place="state", every=0.5),
)


def document(folder: Path, text: str, name: str = "p.toml") -> Document:
    (folder / name).write_text(text)
    return Document.read(folder / name)


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(InvalidPipeline) as error:
        document(folder, text)
    return [line.replace(f"{folder}/", "").strip() for line in str(error.value).splitlines()]


def test_toml_json_and_python_are_the_same(tmp_path: Path) -> None:
    assert document(tmp_path, TOML).pipeline == PIPELINE
    again = json.dumps(described(PIPELINE))
    assert document(tmp_path, again, "p.json").pipeline == PIPELINE
    assert "${FOLDER}" in again


def test_lists_do_for_python_too() -> None:
    pipeline = Pipeline(
        name="a",
        source=Files(paths=["a.csv"]),  # type: ignore[arg-type]
        sinks=[Blackhole()],  # type: ignore[arg-type]
    )
    assert pipeline.sinks == (Blackhole(),)


def test_all_that_is_wrong_is_one_error(tmp_path: Path) -> None:
    text = """nme = "x"
parallelism = 0
[source]
type = "fils"
[[operators]]
plugin = 3
calls = "f"
on_error = "dead"
[[operators]]
plugin = "a.so"
calls = []
[[operators]]
plugin = "a.so"
[[sinks]]
type = "parts"
paht = "x"
[[sinks]]
path = "x"
[event_time]
column = "t"
lateness = "10 parsecs"
[checkpoints]
place = "x"
every_rows = true
"""
    assert problems(tmp_path, text) == [
        "p.toml has 14 errors:",
        "name: is missing; write a name by which databases and checkpoints know the pipeline: letters, digits, `_`, "
        "`.` and `-`",
        "line 1: nme: there is no such key: write 'name'",
        "line 2: parallelism: it must be greater than or equal to 1, not 0",
        "line 4: source.type: there is no type 'fils': write 'files'",
        "line 6: operators[0].plugin: write a text, not 3",
        "line 7: operators[0].calls: write a list, not 'f'",
        "line 8: operators[0].on_error: write 'fail', 'null', 'drop' or 'dead_letter', not 'dead'",
        "line 11: operators[1].calls: write at least one",
        "line 12: operators[2].calls: is missing; write NAME = FUNCTION(COLUMN, ...), one after another",
        "line 14: sinks[0].path: is missing; write the folder, or its URL in an object store (`s3://bucket/folder`)",
        "line 16: sinks[0].paht: there is no such key: write 'path'",
        "line 17: sinks[1].type: is missing; write one of 'parts', 'file', 'stdout', 'blackhole', 'table', "
        "'kafka', 'redis', 'webhook', 'delta', 'preview'",
        "line 21: event_time.lateness: write seconds as a number, or a text with a unit (ns, us, ms, s, min, h or d), "
        "such as '10s' or '500ms', not '10 parsecs'",
        "line 24: checkpoints.every_rows: write a whole number, not True",
    ]


def test_one_error_is_one_line(tmp_path: Path) -> None:
    text = TOML.replace('every = "500ms"', 'evry = "500ms"')
    assert problems(tmp_path, text) == ["p.toml:33: checkpoints.evry: there is no such key: write 'every'"]


def test_nothing_is_done_again_all_the_time(tmp_path: Path) -> None:
    text = TOML.replace('every = "500ms"', "every = 0").replace('"files"', '"files"\nwatch = "0s"')
    assert problems(tmp_path, text) == [
        "p.toml has 2 errors:",
        "line 7: source.watch: it must be greater than 0, not '0s'",
        "line 34: checkpoints.every: it must be greater than 0, not 0",
    ]


def test_one_table_in_the_place_of_several_says_how_toml_writes_them(tmp_path: Path) -> None:
    text = 'name = "x"\n[source]\ntype = "impulse"\n[sinks]\ntype = "blackhole"\n'
    assert problems(tmp_path, text) == [
        "p.toml:4: sinks: write a list; in TOML, each of its parts begins with [[sinks]]"
    ]


def test_a_key_that_is_like_none_says_which_there_are(tmp_path: Path) -> None:
    told = "event_time.xyz: there is no such key: there are computed, watermark"
    text = TOML.replace("idle = 10", "idle = 10\nxyz = 1")
    assert problems(tmp_path, text) == [f"p.toml:13: {told}"]
    text = TOML.replace("idle = 10", "xyz = 1")
    assert problems(tmp_path, text) == [f"p.toml:12: {told}, idle"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("name = 1\n= 2\n", r"p\.toml: .*line 2"),
        ("\xff", r"p\.toml cannot be read: .*utf-8"),
    ],
)
def test_a_text_that_is_no_toml(tmp_path: Path, text: str, error: str) -> None:
    (tmp_path / "p.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidArgument, match=error):
        Document.read(tmp_path / "p.toml")


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"p\.toml: there is no such file"):
        Document.read(tmp_path / "p.toml")
    with pytest.raises(InvalidArgument, match=r"p\.yaml: a pipeline is described in a file that ends in \.toml or"):
        Document.read(tmp_path / "p.yaml")


@pytest.mark.parametrize("value", [[], 3, "a", None])
def test_json_that_is_no_table(tmp_path: Path, value: Any) -> None:
    (tmp_path / "p.json").write_text(json.dumps(value))
    with pytest.raises(InvalidPipeline, match=r"p\.json: write a table"):
        Document.read(tmp_path / "p.json")


def test_variables_wait_in_texts_and_times() -> None:
    pipeline = pipeline_of(
        {
            "name": "a",
            "source": {"type": "files", "paths": ["${A}"], "watch": "${B}"},
            "sinks": [{"type": "blackhole"}],
            "event_time": {"column": "${C}", "lateness": "${D}"},
        }
    )
    assert described(pipeline)["event_time"]["lateness"] == "${D}"


def test_the_schema_knows_each_key() -> None:
    told = schema()
    assert set(told["properties"]) == set(Pipeline.model_fields)
    assert told["additionalProperties"] is False
    for model in told["$defs"].values():
        for name, key in model["properties"].items():
            assert name == "type" or "description" in key or "$ref" in key, (model["title"], name)


def test_times_are_texts_in_json(tmp_path: Path) -> None:
    text = """
name = "a"
source = { type = "impulse", start = 2013-01-01T00:00:00Z, interval = "1s" }
sinks = [{ type = "blackhole" }]
"""
    pipeline = document(tmp_path, text).pipeline
    assert document(tmp_path, json.dumps(described(pipeline)), "p.json").pipeline == pipeline


def test_the_guide_names_each_key() -> None:
    """Most connectors have a page of their own."""
    docs = Path(__file__).resolve().parents[3] / "docs"
    guide = "".join(page.read_text() for page in (docs / "pipelines.md", *sorted((docs / "connectors").glob("*.md"))))
    told = schema()
    keys = {key for model in (told, *told["$defs"].values()) for key in model["properties"]} - {"type"}
    assert {key for key in keys if f"`{key}`" not in guide} == set()
    types = [model["properties"]["type"]["const"] for model in told["$defs"].values() if "type" in model["properties"]]
    assert [type_ for type_ in types if f"| `{type_}` |" not in guide] == []
