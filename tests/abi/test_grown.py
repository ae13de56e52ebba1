"""EVOLUTION: a side whose header has grown works with a side that has version 1, through every struct, both ways.

The grown header is made of today's: a field more in every struct that begins with its size, a slot more in the table,
a kind more. Each reader must copy what both know, and compare no size with its own.
"""

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path

import cffi
import pyarrow as pa
import pytest

from arroyo_udf_plugin import build, load
from arroyo_udf_plugin._cdef import ffi
from arroyo_udf_plugin.build import inner

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INCLUDE = ROOT / "native" / "include"
SOURCES = {
    ".py": """
from arroyo_udf_plugin import udf
@udf(native=False)
def same(x: int) -> int:
    return x
@udf
async def later(x: int) -> int:
    return x
""",
    ".rs": """
use arroyo_udf_plugin::udf;
#[udf]
fn same(x: i64) -> i64 { x }
#[udf]
async fn later(x: i64) -> i64 { x }
""",
    ".c": """
#include "arroyo_udf_async.h"
static const char* same(int64_t x, int64_t* out) {
  *out = x;
  return NULL;
}
ARROYO_UDF_FUNCTION(same, int64, (int64, x));
static void later(const arroyo_udf_call* call, int64_t x) { arroyo_udf_complete_int64(call->token, x); }
ARROYO_UDF_ASYNC_FUNCTION(later, (), int64, (int64, x));
ARROYO_UDF_PLUGIN(same, later);
""",
}
SYNC_IN_C = SOURCES[".c"].split("static void later")[0].replace("_async.h", "_plugin.h") + "ARROYO_UDF_PLUGIN(same);\n"
SIZED = {"error", "options", "function", "descriptor", "batch_context", "statistics", "log"}
SIZED |= {"isolation", "isolation_options", "instance", "native"}


def grown(folder: Path, slots: bool = False) -> Path:
    """Writes all headers into a folder, the contract grown; with `slots`, the list of slots too."""
    for header in INCLUDE.iterdir():
        (folder / header.name).write_text(header.read_text())
    text = (INCLUDE / "arroyo_udf.h").read_text()
    sized = re.findall(r"typedef struct arroyo_udf_(\w+) \{\n  uint64_t size;", text)
    assert set(sized) == SIZED
    for name in sized:
        end = f"}} arroyo_udf_{name};"
        assert text.count(end) == 1
        text = text.replace(end, f"  uint64_t later;\n{end}")
    end = "} arroyo_udf_table;"
    text = text.replace(end, f"  arroyo_udf_status (*later)(arroyo_udf_handle handle, arroyo_udf_error* error);\n{end}")
    text = text.replace("  ARROYO_UDF_TABLE = 4\n", "  ARROYO_UDF_TABLE = 4,\n  ARROYO_UDF_LATER = 5\n")
    (folder / "arroyo_udf.h").write_text(text)
    if slots:
        text = (folder / "arroyo_udf_c_slots.h").read_text()
        last = "(handle, log, error))\n"
        assert text.count(last) == 1
        text = text.replace(
            last, last[:-1] + " each(later, (arroyo_udf_handle handle, arroyo_udf_error* error), (handle, error))\n"
        )
        text = re.sub(r"static_assert\(.*?\);\n", "", text, flags=re.DOTALL)
        (folder / "arroyo_udf_c_slots.h").write_text(text)
    return folder


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the grown headers."""
    return grown(tmp_path_factory.mktemp("grown"))


@pytest.mark.parametrize("suffix", SOURCES)
def test_a_later_host_uses_every_struct_with_a_plugin_of_version_1(later, plain_cc, bare, tmp_path, suffix) -> None:
    source = tmp_path / f"one{suffix}"
    source.write_text(SOURCES[suffix])
    host = plain_cc(HERE / "grown_host.c", f"-I{later}", "-Wall", "-Werror", "-ldl")
    done = bare(host, build(source), ARROYO_UDF_PYTHON=sys.executable)
    assert (done.returncode, done.stderr) == (0, "")
    assert "wrote to" not in done.stdout
    said = [line.partition(": ")[::2] for line in done.stdout.splitlines()]
    lines = {what: text.strip() for what, text in said}
    fine = ["run", "start", "send", "wait", "drain", "statistics", "log", "no log", "release"]
    fine += ["open", "isolated run", "close"]
    assert {what: lines[what] for what in fine} == dict.fromkeys(fine, "0")
    assert (lines["sizes"], lines["extension"]) == ("1 1 1", "0")
    assert (lines["run value"], lines["drained value"], lines["isolated value"]) == ("42", "42", "42")
    assert (lines["isolation"], lines["instance"]) == ("1", "1 7")
    assert lines["filled in"] == "1 7, accepted: 1"
    assert lines["untouched"] == "1"
    assert [text for what, text in said if what == "still ours"] == ["1", "1"]
    for what, size, known in (
        ("run, small context", 8, 24),
        ("send, small context", 8, 24),
        ("start, small options", 127, 128),
        ("small statistics", 1175, 1176),
        ("small log", 8, 24),
        ("open, small options", 31, 32),
        ("open, small instance", 23, 24),
    ):
        assert lines[what].startswith("16 "), what
        assert f"of size {size}, where version 1 has {known}; set `size`" in lines[what]
    for what in ("start, later option", "open, later option"):
        assert "an option of a later version is chosen" in lines[what]
    assert lines["log without a function"] == "16 set_log: write is null"
    assert (lines["error"], lines["error of version 1"], lines["small error"]) == ("16 1 0", "16 1", "16 0")
    assert lines["no error"] == "16"
    assert lines["statistics after release"].startswith("17 ")
    assert lines["released"] == "3"


@pytest.fixture(scope="module")
def later_plugins(later, plain_cc, tmp_path_factory) -> dict[str, Path]:
    """Plugins that were compiled with the grown header."""
    folder = tmp_path_factory.mktemp("plugins")
    (folder / "in_python.py").write_text(SOURCES[".py"] + "# compiled with a grown header\n")
    headers = grown(tmp_path_factory.mktemp("grown"), slots=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inner, "include", lambda: headers)
        python = build(folder / "in_python.py", folder / "in_python.so")
    by_hand = (ROOT / "examples" / "by_hand" / "udf.c").read_text().replace('"kilometres"', '"same"')
    flags = [f"-I{later}", "-shared", "-fPIC"]
    return {"by hand": plain_cc(by_hand, *flags), "c": plain_cc(SYNC_IN_C, *flags), "python": python}


@pytest.mark.parametrize("how", ["by hand", "c", "python"])
def test_the_python_host_of_version_1_uses_a_later_plugin(later_plugins, how) -> None:
    plugin = load(later_plugins[how])
    assert plugin._table.table_size > ffi.sizeof("arroyo_udf_table")
    value = plugin.functions["same"](pa.array([10], pa.int64()))
    assert value.to_pylist() in ([10], [16.09344])
    if how == "python":
        with plugin.functions["later"].start(allowed_in_flight=2) as runtime:
            runtime.send(0, pa.array([3]))
            assert runtime.wait()
            assert runtime.drain_results()["value"].to_pylist() == [3]
            assert runtime.statistics().accepted == 1
            assert runtime.stop()


@pytest.mark.parametrize("how", ["by hand", "c", "python"])
def test_c_and_rust_hosts_of_version_1_use_a_later_plugin(later_plugins, host, bare, how) -> None:
    done = bare(host, later_plugins[how], "same")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 5
    assert "sync same(" in bare(host, later_plugins[how]).stdout


def test_a_later_plugin_in_python_misses_a_slot_in_an_older_core_and_says_so(later_plugins, later, tmp_path) -> None:
    plugin = shutil.copy(later_plugins["python"], tmp_path / "not_started_by_another_test.so")
    ours = cffi.FFI()
    ours.cdef("".join(declarations(later)))
    symbol = ctypes.c_char.in_dll(ctypes.CDLL(str(plugin)), "arroyo_udf_plugin")
    table = ours.cast("arroyo_udf_table *", ctypes.addressof(symbol))
    error = ours.new("arroyo_udf_error *", {"size": ours.sizeof("arroyo_udf_error")})
    assert table.later(1, error) == 17, "nothing was started"
    load(plugin).functions["same"](pa.array([1]))
    assert table.later(1, error) == 21
    assert b"the installed arroyo_udf_plugin has no later: install a newer one" in ours.string(error.text)


@pytest.mark.parametrize("kind", [3, 5])
def test_a_function_of_a_later_kind_is_listed_and_refused_by_name(plain_cc, host, bare, examples, kind) -> None:
    source = (examples / "by_hand" / "udf.c").read_text()
    changed = source.replace("= ARROYO_UDF_SYNC", f"= {kind}")
    assert changed != source
    path = plain_cc(changed, "-shared", "-fPIC")
    assert "unknown kilometres" in bare(host, path).stdout
    done = bare(host, path, "kilometres")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"function kilometres has kind {kind}, which this host cannot call" in done.stderr


def declarations(folder: Path) -> list[str]:
    """What setup.py gives to cffi."""
    text = (folder / "arroyo_udf.h").read_text()
    arrow = text.split("struct ArrowSchema {", 1)[1].split("#endif", 1)[0]
    return ["struct ArrowSchema {", arrow, text.split("/* cffi: begin */")[1].split("/* cffi: end */")[0]]


LATER_PYTHON_HOST = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("arroyo_udf_plugin._cdef", sys.argv[1])
sys.modules["arroyo_udf_plugin._cdef"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
import pyarrow as pa
from arroyo_udf_plugin import load
from arroyo_udf_plugin.abi import TABLE_SIZE_1, ffi
assert ffi.sizeof("arroyo_udf_table") > TABLE_SIZE_1
plugin = load(sys.argv[2])
assert plugin._table.later == ffi.NULL
print(plugin.functions["same"](pa.array([4])).to_pylist())
with plugin.functions["later"].start(allowed_in_flight=2) as runtime:
    runtime.send(0, pa.array([5]))
    assert runtime.wait()
    print(runtime.drain_results()["value"].to_pylist())
    print(runtime.statistics().accepted)
    assert runtime.stop()
try:
    plugin.functions["same"].start()
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("suffix", SOURCES)
def test_a_later_python_host_uses_a_plugin_of_version_1(later, tmp_path, suffix) -> None:
    helpers = re.search(r'HOST_HELPERS = """(.*?)"""', (ROOT / "setup.py").read_text(), re.DOTALL)
    assert helpers is not None
    ours = cffi.FFI()
    ours.cdef("".join(declarations(later)) + helpers[1])
    ours.set_source("arroyo_udf_plugin._cdef", None)
    ours.emit_python_code(str(tmp_path / "_cdef.py"))
    (tmp_path / f"one{suffix}").write_text(SOURCES[suffix])
    command = [
        sys.executable,
        "-c",
        LATER_PYTHON_HOST,
        str(tmp_path / "_cdef.py"),
        str(build(tmp_path / f"one{suffix}")),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    same, async_value, accepted, refused = done.stdout.splitlines()
    assert (same, async_value, accepted) == ("[4]", "[5]", "1")
    assert refused.startswith("UnsupportedCall one.same: start is not for this kind of function")
