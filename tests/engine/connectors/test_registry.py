"""Connectors of installed packages: queries, descriptions and the catalogue know them; a broken one disturbs none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from packages import environment, install

GROUP = "arroyo_udf_plugin.connectors"
TICKS = '''
import threading
from typing import Annotated, Any, ClassVar, Literal
from collections.abc import Mapping

import pyarrow as pa
import pydantic

from arroyo_udf_plugin.engine.connectors.connector import CatalogueEntry, Connector, Form
from arroyo_udf_plugin.engine.connectors.described import Input
from arroyo_udf_plugin.engine.connectors.source import Rows

SCHEMA = pa.schema([("tick", pa.int64())])


class Ticks(Input):
    """Numbers."""

    type: Literal["ticks"] = "ticks"

    count: Annotated[int, pydantic.Field(ge=0)]
    """How many."""

    names_in_sql: ClassVar[Mapping[str, str]] = {"number": "tick"}

    @classmethod
    def of_table(cls, options: Any) -> "Ticks":
        return cls(count=options.read("count", int, "a whole number"))

    def source(self, parallelism: int) -> "TicksSource":
        return TicksSource(self.count)


class TicksSource:
    name, schema, resumable, side_by_side, watch = "ticks", SCHEMA, True, False, None

    def __init__(self, count: int) -> None:
        self.rows = count

    def partitions(self) -> list[str]:
        return ["all"]

    def check(self, positions: Any) -> None: ...

    def open(self, partition: str, position: Any) -> "_Partition":
        return _Partition(self.rows, 0 if position is None else position["next"])

    def close(self) -> None: ...


class _Partition:
    def __init__(self, rows: int, first: int) -> None:
        self.rows, self.next = rows, first

    async def read(self) -> Rows | None:
        if self.next == self.rows:
            return None
        batch = pa.RecordBatch.from_pydict({"tick": [self.next]}, schema=SCHEMA)
        self.next += 1
        return Rows("ticks", self.next, batch)

    def position(self) -> dict[str, int]:
        return {"next": self.next}

    def close(self) -> None: ...


class TicksForm(Form):
    count: int

    def options(self) -> dict[str, str]:
        return {"count": str(self.count)}


CONNECTOR = Connector("ticks", source=Ticks, entry=CatalogueEntry("Ticks", "Numbers", TicksForm))
OTHER_NAME = Connector("tocks", source=Ticks)
IMPULSE = Connector("impulse", source=Ticks)
MEMORY = Connector("memory", source=Ticks)


class Loose(Ticks):
    type: str = "loose"


class Unfinished(Input):
    type: Literal["unfinished"] = "unfinished"


class Unresolved(Ticks):
    type: Literal["unresolved"] = "unresolved"
    other: "Nowhere" = None


class Unschemed(Ticks):
    model_config = {"arbitrary_types_allowed": True}
    type: Literal["unschemed"] = "unschemed"
    other: threading.Thread | None = None


class OnlyDescribed(Input):
    type: Literal["only_described"] = "only_described"

    def source(self, parallelism: int) -> "TicksSource":
        return TicksSource(3)


class Failing(Ticks):
    type: Literal["failing"] = "failing"

    @classmethod
    def of_table(cls, options):
        raise RuntimeError("never")


LOOSE = Connector("loose", source=Loose)
UNFINISHED = Connector("unfinished", source=Unfinished)
UNRESOLVED = Connector("unresolved", source=Unresolved)
UNSCHEMED = Connector("unschemed", source=Unschemed)
SHOWN = Connector("shown", entry=CatalogueEntry("S", "S", TicksForm, profile=TicksForm, secrets=("auth.password",)))
FORMLESS = Connector("formless", entry=CatalogueEntry("F", "F", dict))
ONLY_DESCRIBED = Connector("only_described", source=OnlyDescribed)
FAILING = Connector("failing", source=Failing)
'''
ONCE = '''
from typing import Any, ClassVar, Literal

from arroyo_udf_plugin.engine.connectors.connector import Connector
from arroyo_udf_plugin.engine.connectors.described import Output


class Once(Output):
    """Counts rows, and prints their number."""

    type: Literal["once"] = "once"
    resumable: ClassVar[bool] = False

    @classmethod
    def of_table(cls, options: Any) -> "Once":
        return cls()

    def check(self, schema: Any) -> None: ...

    def sink(self, schema: Any, slice: int, stage: Any, pipeline: str, name: str) -> "OnceSink":
        return OnceSink(name)


class OnceSink:
    def __init__(self, name: str) -> None:
        self.name, self._rows = name, 0

    def write(self, batch: Any) -> None:
        self._rows += batch.num_rows

    def finish(self) -> None:
        print(self._rows)

    def close(self) -> None: ...


CONNECTOR = Connector("once", sink=Once)
'''
QUERY = """CREATE TABLE ticks WITH (connector = 'ticks', count = '3');
CREATE TABLE out WITH (connector = 'single_file', path = 'out.csv');
INSERT INTO out SELECT number * 2 AS n FROM ticks;
"""
DESCRIPTION = """name = "p"
source = { type = "ticks", count = 3 }
sinks = [{ type = "file", path = "out.csv" }]
"""


class World:
    """A folder, and programs in it that find the packages of `site`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def installs(self, name: str, points: dict[str, str], text: str) -> None:
        install(self.folder / "site", name, {GROUP: points}, {f"{name}.py": text})

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environment(self.folder / "site"),
            capture_output=True,
            text=True,
        )

    def runs(self, file: str, text: str, *options: str) -> subprocess.CompletedProcess[str]:
        (self.folder / file).write_text(text)
        return self.python("-m", "arroyo_udf_plugin.cli", "run", file, *options)

    def refuses(self, file: str, text: str) -> str:
        done = self.runs(file, text)
        assert done.returncode == 1, done.stdout
        return done.stderr


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_query_reads_from_it(world: World) -> None:
    world.installs("ticking", {"ticks": "ticking:CONNECTOR"}, TICKS)
    done = world.runs("query.sql", QUERY)
    assert done.returncode == 0, done.stderr
    assert (world.folder / "out.csv").read_text() == "n\n0\n2\n4\n"


def test_a_description_reads_from_it(world: World) -> None:
    world.installs("ticking", {"ticks": "ticking:CONNECTOR"}, TICKS)
    done = world.runs("pipeline.toml", DESCRIPTION)
    assert done.returncode == 0, done.stderr
    assert (world.folder / "out.csv").read_text() == "tick\n0\n1\n2\n"


def test_its_keys_and_options_are_checked(world: World) -> None:
    world.installs("ticking", {"ticks": "ticking:CONNECTOR"}, TICKS)
    assert "source.count: " in world.refuses("pipeline.toml", DESCRIPTION.replace("3", "-3"))
    assert "there is no such key: write 'count'" in world.refuses("pipeline.toml", DESCRIPTION.replace("count", "cont"))
    assert "count = 'many': write a whole number" in world.refuses("query.sql", QUERY.replace("'3'", "'many'"))
    told = world.refuses("query.sql", QUERY.replace("count = '3'", "count = '3', size = '3'"))
    assert "there is no option size here: there are connector, type, idle_micros, count" in told


def test_a_sink_that_it_has_not_is_refused(world: World) -> None:
    world.installs("ticking", {"ticks": "ticking:CONNECTOR"}, TICKS)
    told = world.refuses("query.sql", QUERY.replace("connector = 'ticks'", "connector = 'ticks', type = 'sink'"))
    assert "the connector ticks has no sinks" in told


def test_the_catalogue_and_the_planner_of_a_cluster_have_it(world: World) -> None:
    world.installs("ticking", {"ticks": "ticking:CONNECTOR"}, TICKS)
    program = """
import json
from arroyo_udf_plugin.cluster.api.connectors import catalogue, form_of
from arroyo_udf_plugin.cluster.functions.messages import PlanRequest
from arroyo_udf_plugin.cluster.functions.planning import planned
entry = catalogue()["ticks"]
query = open("query.sql").read()
found = planned(PlanRequest(name="p", query=query, plugins=[]))
options = form_of(entry.table, {"count": 3}).options()
print(json.dumps([entry.title, options, list(map(str, found.errors)), found.graph]))
"""
    (world.folder / "query.sql").write_text(QUERY)
    done = world.python("-c", program)
    assert done.returncode == 0, done.stderr
    title, options, errors, graph = json.loads(done.stdout)
    assert (title, options, errors) == ("Ticks", {"count": "3"}, [])
    assert graph["nodes"][0]["operator"] == "ticks"


def test_a_job_with_a_sink_that_cannot_go_on_runs_without_checkpoints(world: World) -> None:
    world.installs("once", {"once": "once:CONNECTOR"}, ONCE)
    program = """
from arroyo_udf_plugin.cluster.functions.messages import PlanRequest
from arroyo_udf_plugin.cluster.functions.planning import planned
from arroyo_udf_plugin.cluster.generation import run
from arroyo_udf_plugin.cluster.job_program import JobProgram
from arroyo_udf_plugin.cluster.task import Task
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
found = planned(PlanRequest(name="p", query=open("query.sql").read(), plugins=[]))
assert not found.errors, found.errors
reports = []
run(Task("job_1", 1, JobProgram(found.description, {}), 1, 10.0, "state/0"), StopRequest(), reports.append)
print(reports[-1].event.value, reports[-1].message)
"""
    (world.folder / "query.sql").write_text(
        "CREATE TABLE t WITH (connector = 'impulse', event_rate = '1000', message_count = '3');"
        "CREATE TABLE out WITH (connector = 'once'); INSERT INTO out SELECT counter FROM t;"
    )
    done = world.python("-c", program)
    assert done.stdout.split() == ["3", "finished"], done.stderr + done.stdout


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("ticks", "ticking:NOTHING", "AttributeError"),
        ("ticks", "ticking:Ticks", "TypeError: name a Connector in the entry point"),
        ("ticks", "ticking:OTHER_NAME", "ValueError: its name is 'tocks': give its entry point the same name"),
        ("ticks", "tickin:CONNECTOR", "ModuleNotFoundError"),
        ("loose", "ticking:LOOSE", 'ValueError: the type of Loose: write type: Literal["loose"] = "loose"'),
        ("unfinished", "ticking:UNFINISHED", "TypeError: Unfinished does not define source"),
        ("unresolved", "ticking:UNRESOLVED", "PydanticUndefinedAnnotation"),
        ("unschemed", "ticking:UNSCHEMED", "PydanticInvalidForJsonSchema"),
        ("shown", "ticking:SHOWN", "ValueError: the secret 'auth.password' is no field of its profile"),
        ("formless", "ticking:FORMLESS", "TypeError: <class 'dict'> is no Form"),
    ],
)
def test_one_that_cannot_be_used_is_told_by_its_package(world: World, name: str, value: str, why: str) -> None:
    world.installs("ticking", {name: value}, TICKS)
    told = world.refuses("query.sql", QUERY.replace("'ticks'", f"'{name}'"))
    assert f"the connector {name} of the package ticking 1.0 ({value}): {why}" in told


def test_the_name_of_tables_without_a_connector_is_refused(world: World) -> None:
    world.installs("ticking", {"memory": "ticking:MEMORY"}, TICKS)
    program = "from arroyo_udf_plugin.engine.connectors.registry import broken; print(broken()['memory'])"
    assert "'memory' names tables without a connector: rename it" in world.python("-c", program).stdout


def test_a_package_does_not_take_the_place_of_our_connectors(world: World) -> None:
    """Whether its own can be loaded or not."""
    world.installs("ticking", {"single_file": "ticking:IMPULSE"}, TICKS)
    world.installs("tocking", {"impulse": "tocking:IMPULSE"}, TICKS)
    query = QUERY.replace("'ticks', count = '3'", "'impulse', event_rate = '1000', message_count = '3'")
    done = world.runs("query.sql", query.replace("number", "counter"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("only_described", "ticking:ONLY_DESCRIBED", "rows can only be looked up there"),
        ("failing", "ticking:FAILING", "the connector failed: RuntimeError: never"),
    ],
)
def test_one_that_fails_in_sql_is_told_with_its_place(world: World, name: str, value: str, why: str) -> None:
    world.installs("ticking", {name: value}, TICKS)
    assert why in world.refuses("query.sql", QUERY.replace("'ticks'", f"'{name}'"))


def test_one_that_cannot_be_used_disturbs_no_other(world: World) -> None:
    world.installs("broken", {"cracks": "broken:CONNECTOR"}, "raise SystemExit('never')")
    world.installs("ticking", {"ticks": "ticking:CONNECTOR"}, TICKS)
    done = world.runs("query.sql", QUERY)
    assert done.returncode == 0, done.stderr
    told = world.refuses("pipeline.toml", DESCRIPTION.replace("ticks", "cracks"))
    assert "there is no type 'cracks'" in told
    assert "the connector cracks of the package broken 1.0 (broken:CONNECTOR): SystemExit: never" in told


def test_two_packages_with_the_same_type_are_told(world: World) -> None:
    """The first one is there, and who asks for the other is told."""
    world.installs("ticking", {"ticks": "ticking:CONNECTOR"}, TICKS)
    world.installs("tocking", {"tocks": "tocking:OTHER_NAME"}, TICKS)
    done = world.runs("query.sql", QUERY)
    assert done.returncode == 0, done.stderr
    told = world.refuses("query.sql", QUERY.replace("'ticks'", "'tocks'"))
    assert "ValueError: the type 'ticks' is that of another connector: rename it" in told
