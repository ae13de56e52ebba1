"""Hosts that have no memory for another thread: a status with a text, batches kept, and work as usual afterwards."""

from pathlib import Path

import pytest

from arroyo_udf_plugin import build

HERE = Path(__file__).parent

FUNCTIONS = {
    ".rs": """
use arroyo_udf_plugin::udf;

#[udf]
async fn plus(x: i64) -> i64 {
    x + 1
}
""",
    # Python cannot import asyncio again after a first import that failed halfway: it is loaded before memory is short.
    ".py": """
import asyncio

from arroyo_udf_plugin import udf

@udf
def nothing(x: int) -> int:
    return x

@udf
async def plus(x: int) -> int:
    return x + 1
""",
    ".c": """
#include "arroyo_udf_async.h"

static void plus(const arroyo_udf_call* call, int64_t x) { arroyo_udf_complete_int64(call->token, x + 1); }
ARROYO_UDF_ASYNC_FUNCTION(plus, (), int64, (int64, x));
ARROYO_UDF_PLUGIN(plus);
""",
}
BLOCKING = {
    ".rs": "use arroyo_udf_plugin::udf;\n#[udf(blocking)]\nfn plus(x: i64) -> i64 {\n    x + 1\n}\n",
    ".py": "from arroyo_udf_plugin import udf\n@udf\ndef nothing(x: int) -> int:\n    return x\n"
    "@udf(blocking=True)\ndef plus(x: int) -> int:\n    return x + 1\n",
}


def plugin(folder, suffix, source):
    (folder / f"plus{suffix}").write_text(source)
    return build(folder / f"plus{suffix}")


@pytest.mark.parametrize("suffix", FUNCTIONS)
def test_a_start_without_memory_for_threads_spoils_nothing(plain_cc, bare, tmp_path, suffix):
    host = plain_cc(HERE / "starved.c", "-g", "-Wall", "-Wextra", "-Werror")
    library = plugin(tmp_path, suffix, FUNCTIONS[suffix])
    seen = {}
    for mib in [1, 3, 5, 9, 18, 22, 40]:
        done = bare(host, library, mib)
        assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["works"]), f"{mib} MiB: {done.stderr}"
        seen[mib] = done.stdout
    assert "start returned 18" in seen[1], "no thread at all"
    assert seen[40] == "works\n", "enough for all"


@pytest.mark.parametrize("suffix", BLOCKING)
def test_blocking_functions_without_memory_for_threads(plain_cc, bare, tmp_path, suffix):
    host = plain_cc(HERE / "starved.c", "-g", "-Wall", "-Wextra", "-Werror")
    library = plugin(tmp_path, suffix, BLOCKING[suffix])
    for mib in [1, 3, 5, 18, 22]:
        done = bare(host, library, mib)
        assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["works"]), f"{mib} MiB: {done.stderr}"
