"""Functions and queries of users run in children: whatever they do, the API lives and says what was wrong."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from asgi_client import Client
from waiting import until

from arroyo_udf_plugin.cluster.functions.artifacts import verified
from arroyo_udf_plugin.cluster.functions.builder import Builder, BuiltFunction, InvalidFunction
from arroyo_udf_plugin.cluster.functions.children import ChildLimits
from arroyo_udf_plugin.cluster.functions.fair_queue import calling
from arroyo_udf_plugin.cluster.functions.messages import PlanResult, SavedTable
from arroyo_udf_plugin.errors import LoadError

pytestmark = pytest.mark.cluster

CACHE = Path(__file__).resolve().parents[3] / "build" / "cache"
Result = TypeVar("Result")
HEAD = "from arroyo_udf_plugin import udf\n"
TAIL = "\n@udf\ndef one(n: int) -> int:\n    return 1\n"


def work(folder: Path, *jobs: Any, limits: ChildLimits | None = None) -> list[Any]:
    """The answers of a builder, which is closed then: jobs are functions of it. An InvalidFunction is an answer."""

    async def run() -> list[Any]:
        builder = Builder(folder / "work", limits, cache=CACHE)
        try:
            return await asyncio.gather(*(job(builder) for job in jobs), return_exceptions=True)
        finally:
            await builder.close()

    return asyncio.run(run())


def building(body: str, language: Any = "python") -> Any:
    return lambda builder: builder.function(body, language)


def test_a_definition_becomes_a_library_that_is_known_by_its_hash(tmp_path: Path) -> None:
    (built,) = work(tmp_path, building(HEAD + TAIL))
    assert isinstance(built, BuiltFunction)
    assert (built.name, built.signature) == ("one", "one(n: int64) -> int64")
    library = Path(built.library)
    assert library.name == "libone.so"
    assert verified(library, built.sha256) == library
    assert (tmp_path / "work").stat().st_mode & 0o777 == 0o700
    library.write_bytes(library.read_bytes() + b" ")
    with pytest.raises(LoadError, match="not the library that was built"):
        verified(library, built.sha256)
    library.unlink()
    with pytest.raises(LoadError):
        verified(library, built.sha256)


def test_the_same_text_is_built_once_and_a_damaged_library_again(tmp_path: Path) -> None:
    first, second = work(tmp_path, building(HEAD + TAIL), building(HEAD + TAIL))
    assert first == second
    written = Path(first.library).stat().st_mtime_ns
    assert work(tmp_path, building(HEAD + TAIL)) == [first]
    assert Path(first.library).stat().st_mtime_ns == written
    Path(first.library).write_bytes(b"broken")
    (again,) = work(tmp_path, building(HEAD + TAIL))
    assert verified(Path(again.library), again.sha256)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("import os\nos.abort()" + TAIL, "SIGABRT"),
        ("import os\nos.kill(os.getpid(), 9)" + TAIL, "SIGKILL"),
        ("import os\nos._exit(3)" + TAIL, "status 3"),
        ("raise ValueError('at import')" + TAIL, "at import"),
        ("x = bytearray(1 << 40)" + TAIL, "MemoryError"),
        ("def f(:", "1: is not Python"),
        ("", "@udf"),
        ("@udf\ndef f(n): return n", "annotate"),
        (TAIL + TAIL.replace("one", "two"), "one in each definition"),
        ("import nothing_of_that_name" + TAIL, "nothing_of_that_name"),
    ],
)
def test_what_is_wrong_with_a_definition_is_told_and_the_api_lives(shared: Client, body: str, told: str) -> None:
    asked = {"definition": HEAD + body if body else body, "language": "python"}
    answer = shared.post("/api/v1/udfs/validate", json=asked)
    assert answer.status_code == 200
    assert answer.json()["udf_name"] is None
    assert told in "\n".join(answer.json()["errors"]).replace("udf.py:2:", "1:")
    assert "/child-" not in answer.text
    assert shared.get("/api/v1/ping").text == '"Pong"'


def test_rust_and_c_are_built_too(shared: Client) -> None:
    rust = "use arroyo_udf_plugin::udf;\n\n#[udf]\nfn twice(n: i64) -> i64 { 2 * n }\n"
    answer = shared.post("/api/v1/udfs/validate", json={"definition": rust})
    assert answer.json() == {"udf_name": "twice", "errors": []}
    wrong = shared.post("/api/v1/udfs/validate", json={"definition": rust.replace("2 * n", 'n + ""')}).json()
    assert wrong["udf_name"] is None
    assert "error" in wrong["errors"][0]
    c = """#include "arroyo_udf_plugin.h"
static const char* half(int64_t n, double* out) {
  *out = (double)n / 2.0;
  return NULL;
}
ARROYO_UDF_FUNCTION(half, float64, (int64, n));
ARROYO_UDF_PLUGIN(half);
"""
    assert shared.post("/api/v1/udfs/validate", json={"definition": c, "language": "c"}).json()["udf_name"] == "half"


def test_a_child_that_takes_too_long_ends_with_all_that_it_has_started(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    body = f"""{HEAD}import os, subprocess, sys, time, pathlib
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path({str(mark)!r}).write_text(f"{{os.getpid()}} {{other.pid}}")
time.sleep(600)
{TAIL}"""
    (answer,) = work(tmp_path, building(body), limits=ChildLimits(seconds=6))
    assert isinstance(answer, InvalidFunction)
    assert "more than 6 s" in str(answer)
    own, other = map(int, mark.read_text().split())
    until(lambda: not alive(own) and not alive(other), "the end of both")
    assert not list((tmp_path / "work").glob("child-*"))


def alive(pid: int) -> bool:
    """A process that has ended and waits for whoever asks is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_child_sees_no_secrets_of_the_api_and_works_in_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARROYO_UDF__API__TOKEN", "a secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    told = tmp_path / "told"
    body = f"""{HEAD}import json, os, resource, stat
with open({str(told)!r}, "w") as file:
    json.dump({{"names": sorted(os.environ), "folder": os.getcwd(), "home": os.environ["HOME"],
               "mode": stat.S_IMODE(os.stat(".").st_mode), "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
               "memory": resource.getrlimit(resource.RLIMIT_AS)[0]}}, file)
{TAIL}"""
    (built,) = work(tmp_path, building(body), limits=ChildLimits(memory=3 << 30))
    assert isinstance(built, BuiltFunction), built
    import json

    found = json.loads(told.read_text())
    assert not {"ARROYO_UDF__API__TOKEN", "AWS_SECRET_ACCESS_KEY"} & set(found["names"])
    assert found["folder"] == found["home"]
    assert Path(found["folder"]).parent == tmp_path / "work"
    assert (found["mode"], found["core"], found["memory"]) == (0o700, 0, 3 << 30)
    assert not Path(found["folder"]).exists()


def test_what_user_code_prints_does_not_mix_with_the_answer(tmp_path: Path) -> None:
    body = HEAD + 'import sys\nprint("{}", flush=True)\nsys.stdout.write("garbage")\n' + TAIL
    (built,) = work(tmp_path, building(body))
    assert isinstance(built, BuiltFunction), built


def test_at_most_two_work_at_once(tmp_path: Path) -> None:
    """Each notes how many others it sees, and waits until a second one has come."""
    folder = tmp_path / "seen"
    folder.mkdir()
    body = f"""{HEAD}import os, pathlib, time
here = pathlib.Path({str(folder)!r})
own = here / f"{{os.getpid()}}.now"
own.write_text("")
start = time.monotonic()
while len(list(here.glob("*.now"))) + len(list(here.glob("*.past"))) < 2 and time.monotonic() < start + 20:
    time.sleep(0.01)
most = len(list(here.glob("*.now")))
(here / f"{{os.getpid()}}.most").write_text(str(most))
own.rename(own.with_suffix(".past"))
# """
    built = work(tmp_path, *(building(f"{body}{n}{TAIL}") for n in range(4)))
    assert [one.name for one in built] == ["one"] * 4
    assert max(int(file.read_text()) for file in folder.glob("*.most")) == 2


def test_nothing_is_left_when_the_builder_closes(tmp_path: Path) -> None:
    async def run() -> list[int]:
        builder = Builder(tmp_path / "work", cache=CACHE)
        builder.prepare()
        await asyncio.sleep(0)
        until_folder = tmp_path / "work"
        while not list(until_folder.glob("child-*")):
            await asyncio.sleep(0.01)
        await builder.close()
        return [len(list(until_folder.glob("child-*")))]

    assert asyncio.run(run()) == [0]


@pytest.mark.parametrize("how", ["killed", "not started"])
def test_a_spare_child_that_has_ended_is_replaced(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the kernel, for want of memory, or because there were too many processes: no request is the reason."""

    async def run() -> BuiltFunction:
        builder = Builder(tmp_path / "work", cache=CACHE)
        children = builder._children
        if how == "killed":
            builder.prepare()
            assert children._spare is not None
            spare = (await asyncio.shield(children._spare)).process
            os.kill(spare.pid, signal.SIGKILL)
            await spare.wait()
        else:
            monkeypatch.setattr("tempfile.mkdtemp", fails)
            builder.prepare()
            assert children._spare is not None
            await asyncio.wait([children._spare])
            monkeypatch.undo()
        try:
            return await builder.function(HEAD + TAIL, "python")
        finally:
            await builder.close()

    def fails(*arguments: Any, **more: Any) -> None:
        raise BlockingIOError("too many processes")

    assert asyncio.run(run()).name == "one"
    assert list((tmp_path / "work").glob("child-*")) == []


def planning(query: str, *tables: SavedTable, **more: Any) -> Coroutine[Any, Any, PlanResult] | Any:
    return lambda builder: builder.plan("q", query, {}, tables=tables, **more)


def test_lines_are_those_of_the_query_whatever_saved_tables_it_uses(tmp_path: Path) -> None:
    table = SavedTable(name="ticks", statement="CREATE TABLE ticks WITH (connector = 'impulse');")
    broken = SavedTable(name="bad", statement="CREATE TABLE bad WITH (connector = 'nothing');")
    right, wrong, hidden, other = work(
        tmp_path,
        planning("SELECT counter FROM ticks;", table, broken),
        planning("\nSELECT contr FROM TICKS;", table, broken),
        planning("CREATE TABLE ticks WITH (connector = 'impulse'); SELECT counter FROM ticks;", table),
        planning("SELECT a FROM bad;", table, broken),
    )
    assert (right.errors, right.tables) == ([], ["ticks"])
    assert (wrong.errors[0].start, wrong.errors[0].end) == ((2, 8), (2, 13))
    assert (hidden.errors, hidden.tables) == ([], [])
    assert other.errors[0].start is None
    assert other.errors[0].message.startswith("saved table bad: there is no connector 'nothing'")


def test_files_outside_of_the_folders_of_pipelines_are_refused_before_they_are_opened(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "in.csv").write_text("a\n1\n")
    (tmp_path / "out.csv").write_text("a\n1\n")

    async def run() -> list[PlanResult]:
        builder = Builder(tmp_path / "work", cache=CACHE, roots=[str(root)])
        options = "connector = 'filesystem', path = '{}', format = 'csv', type = 'source'"
        query = f"CREATE TABLE t WITH ({options}); SELECT a FROM t;"
        inside, outside = query.format(root / "in.csv"), query.format(tmp_path / "out.csv")
        return [
            await builder.plan("q", inside, {}),
            await builder.plan("q", outside, {}),
            await builder.plan("q", inside, {}, state_url=str(tmp_path)),
        ]

    inside, outside, state = asyncio.run(run())
    assert inside.errors == []
    assert "outside of the folders" in outside.errors[0].message
    assert outside.errors[0].start is not None
    assert state.errors[0].message.startswith("state_url:")


def test_a_library_that_was_changed_is_not_loaded_to_plan(tmp_path: Path) -> None:
    (built,) = work(tmp_path, building(HEAD + TAIL))
    library = Path(built.library)
    os.chmod(library, 0o755)
    library.write_bytes(library.read_bytes() + b" ")
    query = "CREATE TABLE t WITH (connector = 'impulse'); SELECT one(1) AS n FROM t;"
    (planned,) = work(tmp_path, lambda builder: builder.plan("q", query, {"one": built}))
    assert "not the library that was built" in planned.errors[0].message


def test_slow_definitions_hold_up_no_plan_and_no_other_caller(tmp_path: Path) -> None:
    """Two of them kept all others waiting until they had been built, or given up."""
    query = "CREATE TABLE n WITH (connector = 'impulse', event_rate = '1'); SELECT counter FROM n;"

    async def run() -> None:
        builder = Builder(tmp_path / "work", cache=CACHE)
        slow = [f"import time\ntime.sleep({1000 + number})\n" for number in range(3)]
        building = [asyncio.ensure_future(builder.function(HEAD + one + TAIL, "python")) for one in slow]
        builds, _ = builder.turns
        while builds.running < 2 or builds.waiting < 1:
            await asyncio.sleep(0.01)
        assert (await builder.plan("q", query, {})).description is not None
        calling.set("another")
        assert (await builder.function(HEAD + TAIL, "python")).name == "one"
        assert not any(one.done() for one in building)
        for one in building:
            one.cancel()
        await asyncio.gather(*building, return_exceptions=True)
        assert (builds.running, builds.waiting) == (0, 0)
        await builder.close()

    asyncio.run(run())
