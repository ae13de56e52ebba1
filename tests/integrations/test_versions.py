"""The oldest versions of the engines that are said to work; `make test-integrations` names their folder in OLDEST."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import LANGUAGES, Library

PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import duckdb, polars
from arroyo_udf_plugin.integrations import duckdb as in_duckdb
from arroyo_udf_plugin.integrations import polars as in_polars
assert (duckdb.__version__, polars.__version__) == (sys.argv[3], sys.argv[4]), (duckdb.__version__, polars.__version__)
library = sys.argv[2]
opened = duckdb.connect(config={"allow_unsigned_extensions": True})
in_duckdb.register(opened, library)
values = "(VALUES (1, 'a'), (NULL, 'more than twelve bytes'), (20, NULL)) t(x, s)"
found = opened.execute("SELECT mph(x, 2), shout(s), or_zero(x), same_bool(x > 5) FROM " + values).fetchall()
assert found == [(30.0, "a!", 1, False), (None, "more than twelve bytes!", 0, None), (600.0, None, 20, True)], found
try:
    opened.execute("SELECT mph(1, 0)").fetchall()
except duckdb.Error as error:
    assert "no time" in str(error)
else:
    raise AssertionError
udf = in_polars.functions(library)
frame = polars.DataFrame({"x": [1, None, 20], "s": ["a", "more than twelve bytes", None]})
found = frame.select(m=udf.mph("x", 2), s=udf.shout("s"), z=udf.or_zero("x")).to_dict(as_series=False)
assert found == {"m": [30.0, None, 600.0], "s": ["a!", "more than twelve bytes!", None], "z": [1, 0, 20]}, found
try:
    frame.select(udf.mph("x", 0))
except Exception as error:
    assert "no time" in str(error)
else:
    raise AssertionError
"""


TWO_COPIES = """
import sys
first, second, library = sys.argv[1:]
def loaded(folder):
    sys.path.insert(0, folder)
    for name in [name for name in sys.modules if name.split(".")[0] in ("duckdb", "_duckdb")]:
        del sys.modules[name]
    import duckdb
    assert duckdb.__file__.startswith(folder), duckdb.__file__
    sys.path.remove(folder)
    opened = duckdb.connect(config={"allow_unsigned_extensions": True})
    try:
        opened.execute(f"LOAD '{library}'")
    except duckdb.Error as error:
        return str(error)
    return opened
one = loaded(first)
refused = loaded(second)
assert "another copy of DuckDB has loaded one in this process" in refused, refused
assert one.execute("SELECT mph(1, 2)").fetchall() == [(30.0,)]
"""


def run(program: str, *arguments: str) -> None:
    """With no engine on the path but those that the program puts there."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_oldest_versions(library: Library, language: str) -> None:
    folder, duckdb, polars = (os.environ[name] for name in ("OLDEST", "OLDEST_DUCKDB", "OLDEST_POLARS"))
    assert Path(folder).is_dir()
    run(PROGRAM, folder, str(library(language)), duckdb, polars)


def test_a_second_copy_of_duckdb_is_refused(library: Library) -> None:
    newest = os.environ["PYTHONPATH"].split(os.pathsep)[0]
    run(TWO_COPIES, os.environ["OLDEST"], newest, str(library("c").with_suffix(".duckdb_extension")))
