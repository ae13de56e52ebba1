"""`load` refuses plugins that break the contract, and says where."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import AbiError, InvalidArgument, InvalidState, LoadError, UnsupportedCall, load
from arroyo_udf_plugin.abi import ffi, new_error
from arroyo_udf_plugin.build import build
from arroyo_udf_plugin.host.batches import failure

ROOT = Path(__file__).resolve().parents[2]
BuildPlugin = Callable[..., Path]
Broken = Callable[..., Path]

TABLE = """
#include "arroyo_udf.h"
static struct ArrowSchema column = {{.format = {format}, .name = "x", .flags = 2 {column}}};
static struct ArrowSchema *columns[] = {{&column}};
static struct ArrowSchema arguments = {{.format = "+s", .name = "", .n_children = 1, .children = columns {arguments}}};
static const arroyo_udf_function function = {{.size = sizeof function,
  .name = {name}, .kind = ARROYO_UDF_SYNC, .arguments = &arguments, .returns = &column {function}}};
static const arroyo_udf_function *functions[] = {{&function, &function}};
static const arroyo_udf_descriptor descriptor = {{.size = sizeof descriptor, .name = "broken", .language = "c",
  .toolkit_version = "1", .hash = "0", .n_functions = 1, .functions = functions {descriptor}}};
static const arroyo_udf_descriptor *describe(void) {{ return {describe}; }}
static arroyo_udf_status not_here(void) {{ return ARROYO_UDF_NOT_IMPLEMENTED; }}
#define NOT (void *)not_here
ARROYO_UDF_EXPORT const arroyo_udf_table arroyo_udf_plugin = {{ARROYO_UDF_MAGIC, ARROYO_UDF_ABI_VERSION, sizeof
  arroyo_udf_plugin, describe, NOT, NOT, NOT, NOT, NOT, NOT, NOT, NOT, NOT, NOT, NOT,
  .set_log = NOT, .extension = NOT {table}}};
"""
PARTS = {"format": '"l"', "name": '"f"', "describe": "&descriptor"}


@pytest.fixture
def broken(tmp_path: Path) -> Broken:
    def compile(**parts: str) -> Path:
        from subprocess import run

        blank = dict.fromkeys(("column", "arguments", "function", "descriptor", "table"), "")
        (tmp_path / "broken.c").write_text(TABLE.format(**blank | PARTS | parts))
        flags = ["-shared", "-fPIC", "-w", f"-I{ROOT / 'native' / 'include'}"]
        run(["cc", *flags, str(tmp_path / "broken.c"), "-o", str(tmp_path / "broken.so")], check=True)
        return tmp_path / "broken.so"

    return compile


BROKEN = {
    "magic": ({"table": ", .magic = 7"}, "the table begins with 0x7, and a plugin's begins with 0x464455594f525241"),
    "draft": (
        {"table": ", .magic = UINT64_C(0x4644555F4F595241)"},
        "was built before ABI version 1 was final: build the plugin again",
    ),
    "version": ({"table": ", .abi_version = 99"}, "has ABI version 99, and this host speaks version 1"),
    "truncated": ({"table": ", .table_size = 16"}, "the table has 16 bytes, and ABI version 1 has"),
    "slot": ({"table": ", .wait = 0"}, "slot 'wait' of the table is NULL"),
    "describe": ({"describe": "0"}, "describe answers NULL"),
    "descriptor size": ({"descriptor": ", .size = 3"}, "the descriptor: size is 3"),
    "function size": ({"function": ", .size = 63"}, "function number 0: size is 63, and arroyo_udf_function has 64"),
    "many functions": ({"descriptor": ", .n_functions = -1"}, "the descriptor has 18446744073709551615 functions"),
    "no functions": ({"descriptor": ", .functions = 0"}, "the descriptor's functions are NULL"),
    "one function twice": ({"descriptor": ", .n_functions = 2"}, "two functions have the name 'f'"),
    "no hash": ({"descriptor": ", .hash = 0"}, "the plugin's hash is NULL"),
    "bad name": ({"name": r'"\xff"'}, "the name of function number 0 is not UTF-8"),
    "no options": ({"function": ", .kind = 2"}, "function 'f': options belong to async functions"),
    "no arguments": ({"function": ", .arguments = 0"}, "broken.f: arguments: its schema is NULL"),
    "format": ({"format": '"?!"'}, "arguments, child 0: this host does not know the Arrow format '?!'"),
    "no format": ({"format": "0"}, "arguments, child 0: its format is NULL"),
    "children": ({"arguments": ", .n_children = -3"}, "arguments: its schema has -3 children"),
    "no children": ({"arguments": ", .children = 0"}, "arguments: the children of its schema are NULL"),
    "endless": ({"format": '"+l"', "column": ", .n_children = 1, .children = columns_"}, "nested more than 64 deep"),
    "not a struct": ({"arguments": ', .format = "+l"'}, "arguments are list<x: int64>, not a struct"),
    "dictionary": ({"column": ", .dictionary = &arguments"}, "it is dictionary-encoded"),
}


@pytest.mark.parametrize("part", BROKEN)
def test_broken_contract(broken: Broken, part: str) -> None:
    parts, said = BROKEN[part]
    if part == "endless":
        parts = parts | {"column": ", .n_children = 1, .children = (struct ArrowSchema *[]){&column}"}
    if part == "dictionary":
        parts = parts | {"column": ", .dictionary = (struct ArrowSchema *)1"}
    path = broken(**parts)
    with pytest.raises(AbiError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)


def test_whole_contract(broken: Broken) -> None:
    """The unbroken plugin loads."""
    function = load(broken()).functions["f"]
    with pytest.raises(UnsupportedCall, match="no text"):
        function(pa.array([1]))


def test_a_function_of_an_unknown_kind_is_listed_and_refused_by_name(broken: Broken) -> None:
    function = load(broken(function=", .kind = 6")).functions["f"]
    assert str(function.kind) == "kind 6"
    for call in (function, function.outcomes, function.start):
        with pytest.raises(UnsupportedCall, match=r"broken\.f: is of the kind 'kind 6', which this host cannot call"):
            call()


STEPS = {
    "out of range": ", .kind = 3, .first_step = 7",
    "itself": ", .kind = 3, .first_step = 0",
    "largest": ", .kind = 3, .first_step = UINT32_MAX",
}


@pytest.mark.parametrize("steps", STEPS)
def test_an_aggregate_without_its_steps_breaks_the_contract(broken: Callable[..., Path], steps: str) -> None:
    with pytest.raises(AbiError, match=r"broken\.f: an aggregate, whose `first_step` is not the number of its three"):
        load(broken(function=STEPS[steps]))


def test_not_a_library(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("not a library")
    with pytest.raises(LoadError, match=r"text\.so: cannot be opened as a shared library: .*(too short|invalid ELF)"):
        load(tmp_path / "text.so")
    with pytest.raises(LoadError, match=r"absent\.so: there is no such file"):
        load(tmp_path / "absent.so")
    (tmp_path / "mine.py").write_text("not a library")
    with pytest.raises(LoadError, match=r"mine\.py: is a source, not a plugin: .*`arroyo-udf build mine\.py`"):
        load(tmp_path / "mine.py")


def test_no_symbol() -> None:
    with pytest.raises(LoadError, match="exports no symbol 'arroyo_udf_plugin', so it is not a plugin"):
        load(pa.__path__[0] + "/lib" + _ending())


def _ending() -> str:
    from importlib.machinery import EXTENSION_SUFFIXES

    return EXTENSION_SUFFIXES[0]


def test_same_path_twice(build_plugin: BuildPlugin) -> None:
    path = build_plugin("from arroyo_udf_plugin import udf\n@udf(native=False)\ndef f(x: int) -> int: return x + 1\n")
    assert load(path).functions["f"](pa.array([1])) == load(path).functions["f"](pa.array([1])) == pa.array([2])


def test_slots_before_a_start(tmp_path: Path) -> None:
    """Before a start, each handle is wrong."""
    source = tmp_path / "unstarted.py"
    source.write_text("from arroyo_udf_plugin import udf\n@udf\nasync def f(x: int) -> int: return x\n")
    library = ffi.dlopen(str(build(source)))
    table = library.arroyo_udf_plugin
    error = new_error()
    status = table.release(1, error)
    assert isinstance(failure(status, error), InvalidState)
    assert status == 17
    status = table.run(9, ffi.NULL, ffi.NULL, ffi.NULL, ffi.NULL, error)
    assert isinstance(failure(status, error), InvalidArgument)
