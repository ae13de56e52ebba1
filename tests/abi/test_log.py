"""`set_log`: what belongs to no row goes to the host, from plugins of three languages; nothing is written to stderr."""

import subprocess
import sys
from pathlib import Path

import pytest

from arroyo_udf_plugin import build

HERE = Path(__file__).resolve().parent
SOURCES = {
    ".py": """
import asyncio
from arroyo_udf_plugin import udf
@udf
async def deaf(x: int) -> int:
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass
""",
    "_blocking.py": """
import threading
from arroyo_udf_plugin import udf
@udf(blocking=True)
def deaf(x: int) -> int:
    threading.Event().wait()
    return x
""",
    ".rs": """
use arroyo_udf_plugin::udf;
#[udf(blocking)]
fn deaf(x: i64) -> i64 {
    loop {
        std::thread::park();
    }
}
""",
    ".c": """
#include "arroyo_udf_async.h"
static void deaf(const arroyo_udf_call* call, int64_t x) {}
ARROYO_UDF_ASYNC_FUNCTION(deaf, (), int64, (int64, x));
ARROYO_UDF_PLUGIN(deaf);
""",
}
STUCK = "one.deaf, row 0: a call ignores its cancellation"
STOPPED = (
    "one.deaf: stopped while calls ignore their cancellation: what they use stays allocated, and its Context, if it "
    "has one, is not closed"
)


@pytest.fixture(scope="module", params=SOURCES)
def deaf(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    source: Path = tmp_path_factory.mktemp("log") / f"one.{request.param.rpartition('.')[2]}"
    source.write_text(SOURCES[request.param])
    return build(source)


def test_stuck_calls_are_reported_to_the_host_s_log_and_not_to_stderr(deaf, plain_cc, bare) -> None:
    """R8, R13: each once; the former log gets nothing."""
    done = bare(plain_cc(HERE / "log_host.c", "-Wall", "-Werror", "-ldl", "-lpthread"), deaf)
    assert (done.returncode, done.stderr) == (0, "")
    stuck, stopped, *rest = done.stdout.splitlines()
    assert stuck.startswith(f"log 1: {STUCK}")
    assert (stopped, rest) == (f"log 1: {STOPPED}", ["stop: 4", "again: 4", "release: 4", "more: 0"])


IN_PYTHON = """
import logging, os, sys, threading
import pyarrow as pa
from arroyo_udf_plugin import load

class Handler(logging.Handler):
    def emit(self, record):
        where = threading.current_thread() is threading.main_thread()
        print(where, record.levelname, record.getMessage().splitlines()[0], flush=True)
        self.count = getattr(self, "count", 0) + 1

handler = Handler()
logging.getLogger("arroyo_udf_plugin").addHandler(handler)
runtime = load(sys.argv[1]).functions["deaf"].start(timeout=0.001, max_stuck=9)
runtime.send(0, pa.array([1]))
while not hasattr(handler, "count"):
    runtime.statistics()
assert runtime.stop("cancel", deadline=0) is False
runtime.release()
os._exit(0)
"""


def test_the_python_host_logs_reports_in_the_thread_of_its_next_call(deaf) -> None:
    done = subprocess.run([sys.executable, "-c", IN_PYTHON, str(deaf)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    stuck, stopped = done.stdout.splitlines()
    assert stuck.startswith(f"True WARNING {STUCK}")
    assert stopped == f"True WARNING {STOPPED}"
