"""A query in processes that are killed with SIGKILL: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sql_world import pipeline_of, results_of, run

from arroyo_udf_plugin.engine.pipeline import Checkpoints
from arroyo_udf_plugin.engine.pipeline.description import described

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.once]

CHILD = Path(__file__).parents[1] / "execution" / "kill" / "child.py"
CALLS = """
CREATE VIEW v AS
SELECT id, alt, tail, CASE WHEN alt >= 0 THEN label(tail, positive(alt)) ELSE 'low' END AS l
FROM flights WHERE NOT is_big(alt);
INSERT INTO out SELECT id, plane(l) AS p, twice(id) AS t, maker
FROM v LEFT JOIN planes ON v.tail = planes.tail AND NOT starts_with(l, maker);
INSERT INTO out2 SELECT id, unnest(tags_of(l)) AS tag FROM v WHERE is_plane(l);
"""


WINDOWS = """
CREATE VIEW days AS
SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(positive(abs(alt))) AS s
FROM timed WHERE is_plane(tail) GROUP BY 1, 2;
INSERT INTO out SELECT label(CAST(small AS TEXT), n) AS l, window.start AS start, s FROM days;
INSERT INTO out2 SELECT hop(interval '12 hours', interval '36 hours') AS w, median(speed) AS m FROM timed GROUP BY w;
"""

AGGREGATES = """
CREATE VIEW days AS
SELECT small, tumble(interval '1 day') AS window, total(positive(abs(alt))) AS t, nulls(tail) AS n
FROM timed WHERE id <> 5 GROUP BY 1, 2;
INSERT INTO out SELECT small, window.start AS start, t, n, parts FROM days, parts(CAST(t AS TEXT));
INSERT INTO out2 SELECT session(interval '8 hours') AS w, total(alt) AS t, median(speed) AS m FROM timed GROUP BY w;
"""

INTERVALS = """
CREATE VIEW pairs AS
SELECT a.id, b.id AS other, a.day, b.tail FROM timed a FULL JOIN timed b
ON a.small = b.small AND b.day > a.day AND b.day <= a.day + INTERVAL '1 day' AND a.ok;
INSERT INTO out SELECT id, other, plane(tail) AS p FROM pairs;
INSERT INTO out2 SELECT tumble(interval '1 day') AS w, count(*) AS n, count(id) AS lefts FROM pairs GROUP BY w;
"""

STATES = """
SET state_ttl = '3 days';
CREATE VIEW firsts AS
SELECT id, small, day, tail FROM timed QUALIFY row_number() OVER (PARTITION BY small ORDER BY day) = 1;
CREATE VIEW hours AS SELECT small, tumble(interval '12 hours') AS window, count(*) AS n FROM timed GROUP BY 1, 2;
INSERT INTO out SELECT id, plane(tail) AS p FROM firsts;
INSERT INTO out2 SELECT small, n, lag(n) OVER (PARTITION BY small ORDER BY window) AS before,
                        sum(n) OVER (ORDER BY window, small ROWS 3 PRECEDING) AS four FROM hours;
"""


def engine(text: str, moment: str, parallelism: int) -> int:
    """Its exit status. It goes on where the one before was killed."""
    resume = ["--resume"] if Path("state").exists() else []
    checkpoints = Checkpoints(place="state", every_rows=3)
    pipeline = pipeline_of(text, ["functions.so"], checkpoints=checkpoints, parallelism=parallelism)
    Path("pipeline.json").write_text(json.dumps(described(pipeline)))
    command = [sys.executable, str(CHILD), "pipeline.json", moment, "0", *resume]
    return subprocess.run(command, stdout=subprocess.DEVNULL).returncode


@pytest.mark.parametrize(
    "text",
    [CALLS, WINDOWS, AGGREGATES, INTERVALS, STATES],
    ids=["calls", "windows", "aggregates", "intervals", "states"],
)
def test_a_query_whose_engines_are_killed(text: str) -> None:
    wanted = run(text, ["functions.so"])
    for folder in ("out", "out2"):
        Path(folder).rename(f"wanted-{folder}")
    for parallelism, moment in ((1, "staged"), (2, "committed"), (1, "renamed")):  # each leaves the next one an epoch
        assert engine(text, moment, parallelism) == -signal.SIGKILL
    assert engine(text, "never", 2) == 0
    assert results_of(pipeline_of(text, ["functions.so"])) == wanted
