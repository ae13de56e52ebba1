"""`arroyo-udf run mine.py`: a source is built by itself. What functions print is not in the output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CLI = [sys.executable, "-m", "arroyo_udf_plugin.cli"]
SOURCES = {
    "py": "from arroyo_udf_plugin import udf\n@udf\ndef twice(x: int) -> int:\n print('seen', x)\n return 2 * x\n",
    "rs": 'use arroyo_udf_plugin::udf;\n#[udf]\nfn twice(x: i64) -> i64 { println!("seen {x}"); 2 * x }\n',
    "c": """\
#include <stdio.h>
#include "arroyo_udf_plugin.h"
static const char* twice(int64_t x, int64_t* out) {
  printf("seen %d\\n", (int)x);
  fflush(stdout);
  *out = 2 * x;
  return NULL;
}
ARROYO_UDF_FUNCTION(twice, int64, (int64, x));
ARROYO_UDF_PLUGIN(twice);
""",
}


def run(folder: Path, source: str, *more: str) -> subprocess.CompletedProcess[str]:
    (folder / "in.csv").write_text("x\n1\n20\n")
    done = subprocess.run([*CLI, "run", source, "in.csv", *more], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("suffix", SOURCES)
def test_run_of_a_source_builds_it_and_its_prints_do_not_spoil_the_output(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"mine.{suffix}").write_text(SOURCES[suffix])
    done = run(tmp_path, f"mine.{suffix}", "--out", "-")
    assert done.stdout == "x,twice\n1,2\n20,40\n"
    assert [line for line in done.stderr.splitlines() if line.startswith("seen")] == ["seen 1", "seen 20"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", f"mine.{suffix}"], (
        "the plugin is in the cache"
    )


def test_prints_do_not_spoil_the_summary(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SOURCES["py"])
    done = run(tmp_path, "mine.py:twice", "--out", "out.csv", "--json")
    assert json.loads(done.stdout)["rows"] == 2
    assert "seen 20" in done.stderr


def test_run_of_a_source_that_changed_runs_the_new_one(tmp_path: Path) -> None:
    source = tmp_path / "mine.py"
    source.write_text(SOURCES["py"])
    run(tmp_path, "mine.py", "--out", "out.csv")
    source.write_text(SOURCES["py"].replace("2 * x", "3 * x"))
    assert run(tmp_path, "mine.py", "--out", "-").stdout == "x,twice\n1,3\n20,60\n"


def test_run_of_a_wrong_source_shows_the_mistake(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SOURCES["py"].replace("x: int", "x"))
    (tmp_path / "in.csv").write_text("x\n1\n")
    command = [*CLI, "run", "mine.py", "in.csv", "--out", "out.csv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "mine.py:2: function 'twice' does not say the type of argument 'x'" in done.stderr
    assert not (tmp_path / "out.csv").exists()
