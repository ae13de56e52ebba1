"""Each file in queries/ is a query with its result or its refusal.

A result is the engine's, whatever the parallelism, and whether it was killed or not; and DataFusion's over the same
rows, with the functions as plain Python. `write.py` fills in the results of new queries.
"""

from __future__ import annotations

from pathlib import Path

import datafusion
import pytest
from sql_world import PRELUDE, Query, reference, run, run_killed

from arroyo_udf_plugin import load
from arroyo_udf_plugin.engine.pipeline.plan import plan
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.engine.planner.text import InvalidQuery

QUERIES = {path.stem: Query.read(path) for path in sorted((Path(__file__).parent / "queries").glob("*.sql"))}
ANSWERED = {name: query for name, query in QUERIES.items() if query.refused is None}
REFUSED = {name: query for name, query in QUERIES.items() if query.refused is not None}
UDFS = ["functions.so"]
MISTAKEN = {"53": ("union_of_windows", "whole_before_calls")}
"""What this DataFusion alone answers wrongly: a column that may be null is declared as one that is not, and a filter is
applied before a LIMIT. The engine does not."""

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.once]


@pytest.mark.parametrize("name", ANSWERED)
def test_the_result(name: str) -> None:
    query = ANSWERED[name]
    assert query.results, "python tests/engine/sql/write.py fills in the results"
    assert run(query.text, UDFS) == query.results


@pytest.mark.parametrize(
    "name", [name for name in ANSWERED if name not in MISTAKEN.get(datafusion.__version__.partition(".")[0], ())]
)
def test_datafusion_has_the_same_result(name: str) -> None:
    query = ANSWERED[name]
    with load("functions.so") as plugin:
        found = reference(query.reference, dict(plugin.functions))
    assert found == {name.split(" ", 1)[0]: rows for name, rows in query.results.items()}


@pytest.mark.parametrize("name", ANSWERED)
def test_the_result_of_two_slices(name: str) -> None:
    query = ANSWERED[name]
    assert run(query.text, UDFS, parallelism=2) == query.results


@pytest.mark.parametrize("name", [name for name in ANSWERED if name.startswith(("join", "union"))])
def test_the_result_of_four_slices(name: str) -> None:
    """Of several inputs, which end one after the other, while others still have rows."""
    query = ANSWERED[name]
    assert run(query.text, UDFS, parallelism=4) == query.results


@pytest.mark.parametrize("name", ANSWERED)
def test_the_result_of_an_engine_that_is_killed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query = ANSWERED[name]
    assert run_killed(query.text, UDFS, monkeypatch) == query.results


@pytest.mark.parametrize("name", [name for name in ANSWERED if name.startswith(("tumble", "session", "hop", "join_"))])
def test_the_result_if_datafusion_takes_batches_in_documented_ways_only(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("datafusion.feed", "datafusion.query", "windows.grouping"):
        monkeypatch.setattr(f"arroyo_udf_plugin.engine.{module}.works", lambda: False)
    assert run(ANSWERED[name].text, UDFS) == ANSWERED[name].results


@pytest.mark.parametrize("name", REFUSED)
def test_the_refusal(name: str) -> None:
    assert refusal(REFUSED[name].text) == REFUSED[name].refused


def refusal(text: str) -> str:
    """The error over sources that do not end, with lines counted without the prelude's."""
    prelude = PRELUDE.replace("type = 'source'", "type = 'source', 'source.watch' = '1 hour'")

    def planned() -> None:
        script = Script("query.sql", prelude + text, UDFS)
        with script.located():
            plan(script.pipeline).close()

    with pytest.raises(InvalidQuery) as error:
        planned()
    lines = []
    for line in str(error.value).splitlines():
        file, number, rest = line.split(":", 2)
        assert file == "query.sql"
        lines.append(f"{int(number) - 1}:{rest}")
    return "\n".join(lines)
