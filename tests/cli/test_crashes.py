"""Functions that end the process: `run` names them before it is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from arroyo_udf_plugin.cli.crashes import INSTEAD

BuildPlugin = Callable[..., Path]

PYTHON = """
import ctypes
import os

from arroyo_udf_plugin import udf

@udf
def reads_nowhere(x: int) -> int:
    return ctypes.string_at(0)

@udf
async def reads_nowhere_later(x: int) -> int:
    return ctypes.string_at(0)

@udf
def leaves(x: int) -> int:
    os._exit(3)

@udf
def leaves_in_a_child(x: int) -> int:
    child = os.fork()
    if child == 0:
        os._exit(3)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""

C = """
#include <stdlib.h>
#include "arroyo_udf_plugin.h"

static const char *aborts(int64_t x, int64_t *out) {
  if (x) abort();
  *out = x;
  return NULL;
}
static const char *exits(int64_t x, int64_t *out) {
  if (x) exit(4);
  *out = x;
  return NULL;
}
ARROYO_UDF_FUNCTION(aborts, int64, (int64, x));
ARROYO_UDF_FUNCTION(exits, int64, (int64, x));
ARROYO_UDF_PLUGIN(aborts, exits);
"""


def run(folder: Path, function: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "in.csv").write_text("x\n1\n")
    words = ["run", function, "in.csv", "--args", "x", "--out", "out.csv"]
    command = [sys.executable, "-m", "arroyo_udf_plugin.cli", *words]
    variables = os.environ | environment
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("function", "environment"),
    [("reads_nowhere", {}), ("reads_nowhere", {"PYTHONFAULTHANDLER": "1"}), ("reads_nowhere_later", {})],
)
def test_a_segmentation_fault_names_the_function(
    build_plugin: BuildPlugin, tmp_path: Path, function: str, environment: dict[str, str]
) -> None:
    done = run(tmp_path, f"{build_plugin(PYTHON, '.py', 'crashes')}:{function}", **environment)
    assert done.returncode == -signal.SIGSEGV
    assert f"in {function}\n" in done.stderr, "the stack"
    line = f"arroyo-udf: the run of crashes.{function} ended by a segmentation fault (SIGSEGV)\n"
    assert done.stderr.endswith(f"{line}{INSTEAD}\n")


def test_programs_of_a_cluster_leave_the_stack_of_a_crash() -> None:
    lines = (
        "import ctypes",
        "from arroyo_udf_plugin.cli import cluster",
        "from arroyo_udf_plugin.cluster.configuration import Settings",
        "cluster._ready(Settings())",
        "def reads_nowhere():",
        "    ctypes.string_at(0)",
        "reads_nowhere()",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGSEGV
    assert "in reads_nowhere\n" in done.stderr


def test_an_abort_in_native_code_names_the_function(build_plugin: BuildPlugin, tmp_path: Path) -> None:
    done = run(tmp_path, f"{build_plugin(C, '.c', 'crashes')}:aborts")
    assert done.returncode == -signal.SIGABRT
    assert done.stderr.endswith(f"arroyo-udf: the run of crashes.aborts ended by abort (SIGABRT)\n{INSTEAD}\n")


def test_exits_name_the_function(build_plugin: BuildPlugin, tmp_path: Path) -> None:
    done = run(tmp_path, f"{build_plugin(PYTHON, '.py', 'crashes')}:leaves")
    assert (done.returncode, done.stderr.splitlines()) == (
        3,
        ["arroyo-udf: the run of crashes.leaves ended by os._exit(3)", INSTEAD],
    )
    done = run(tmp_path, f"{build_plugin(C, '.c', 'crashes')}:exits")
    assert (done.returncode, done.stderr.splitlines()) == (
        4,
        ["arroyo-udf: the run of crashes.exits ended by exit, in native code", INSTEAD],
    )


def test_a_child_that_exits_is_no_crash(build_plugin: BuildPlugin, tmp_path: Path) -> None:
    done = run(tmp_path, f"{build_plugin(PYTHON, '.py', 'crashes')}:leaves_in_a_child")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out.csv").read_text().splitlines()[1] == "1,3"
