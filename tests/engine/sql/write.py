"""Fills in the results of queries that have none: those of DataFusion, and refusals as the planner words them.

    python tests/engine/sql/write.py [NAME ...]      NAME: also those of these queries, which have changed

Read what it has written: it is what the tests demand from then on.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from sql_world import FUNCTIONS, PRELUDE, Query, pipeline_of, reference, results_of, write_flights

from arroyo_udf_plugin import build, load
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.engine.planner.text import InvalidQuery

QUERIES = (Path(__file__).parent / "queries").resolve()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_flights(Path(folder))
        Path("story.py").write_text(FUNCTIONS)
        with load(build("story.py")) as plugin:
            for path in sorted(QUERIES.glob("*.sql")):
                query = Query.read(path)
                if path.stem in sys.argv[1:] or (not query.results and query.refused is None):
                    others = [line for line in path.read_text().splitlines() if line.startswith("-- reference ")]
                    written = "\n".join([query.text.strip(), *others])
                    path.write_text(f"{written}\n{told(query, dict(plugin.functions))}")
                    print(path.stem)


def told(query: Query, functions: dict[str, object]) -> str:
    try:
        script = Script("query.sql", PRELUDE + query.text, ["story.py"])
        with script.located():
            pipeline = pipeline_of(query.text, ["story.py"])
            columns = results_of(pipeline)
    except InvalidQuery as error:
        places = [line.split(":", 2) for line in str(error).splitlines()]
        return "-- refused " + "\n-- ".join(f"{int(line) - 1}:{rest}" for _, line, rest in places) + "\n"
    results = reference(query.reference, functions)
    written = ""
    for name in columns:
        rows = results[name.split(" ", 1)[0]]
        written += f"-- result {name}\n" + "".join(f"-- {row}\n" for row in rows)
    return written


if __name__ == "__main__":
    main()
