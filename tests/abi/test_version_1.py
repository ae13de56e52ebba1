"""Version 1 of the contract is frozen: `version_1/arroyo_udf.h` is the header as published, and never changes. Hosts
and plugins compiled with it work with plugins and hosts of today."""

from pathlib import Path
from typing import Any

import cffi
import pyarrow as pa
import pytest

from arroyo_udf_plugin import AbiError, build, load

HERE = Path(__file__).resolve().parent
FROZEN = HERE / "version_1"
ROOT = HERE.parents[1]
SIZED = {"arroyo_udf_options", "arroyo_udf_descriptor", "arroyo_udf_statistics", "arroyo_udf_table"}

TOO_LARGE = """
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "arroyo_udf.h"

/* A host of a later version: its structs go on where ours end. */
struct later_options { arroyo_udf_options known; uint64_t more[4]; };
struct later_statistics { arroyo_udf_statistics known; uint64_t more[4]; };

static int failed(const char* what, int status, arroyo_udf_error* error) {
  printf("%s: %d %s\\n", what, status, error->text == NULL ? "" : error->text);
  if (error->release != NULL) error->release(error);
  memset(error, 0, sizeof *error);
  return 0;
}

int main(int argc, char** argv) {
  void* library = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const arroyo_udf_table* table = dlsym(library, "arroyo_udf_plugin");
  arroyo_udf_handle handle = 0;
  arroyo_udf_error error = {0};
  struct later_options options = {.known.size = sizeof options};
  int status = table->start(0, &options.known, &handle, &error);
  failed("nothing set beyond", status, &error);
  struct later_statistics statistics = {.known.size = sizeof statistics, .more = {1, 2, 3, 4}};
  status = table->statistics(handle, &statistics.known, &error);
  failed("larger statistics", status, &error);
  printf("filled in: %d, beyond: %d\\n", (int)(statistics.known.size == sizeof(arroyo_udf_statistics)),
         (int)(statistics.more[0] + statistics.more[3]));
  options.more[3] = 1;
  arroyo_udf_handle other = 0;
  failed("something set beyond", table->start(0, &options.known, &other, &error), &error);
  options.known.size = 8;
  failed("smaller options", table->start(0, &options.known, &other, &error), &error);
  statistics.known.size = 8;
  failed("smaller statistics", table->statistics(handle, &statistics.known, &error), &error);
  return table->release(handle, &error);
}
"""


def declared(header: Path) -> cffi.FFI:
    """The declarations of a header, as cffi reads them."""
    text = header.read_text()
    arrow = text.split("struct ArrowSchema {", 1)[1].split("#endif", 1)[0]
    ffi = cffi.FFI()
    ffi.cdef("struct ArrowSchema {" + arrow + text.split("/* cffi: begin */")[1].split("/* cffi: end */")[0])
    return ffi


def test_the_contract_still_begins_as_version_1_did() -> None:
    then, now = declared(FROZEN / "arroyo_udf.h"), declared(ROOT / "native" / "include" / "arroyo_udf.h")
    names, structs, _ = then.list_types()
    assert set(SIZED) <= set(names)
    for name in [*(f"struct {struct}" for struct in structs), *names]:
        old, new = then.typeof(name), now.typeof(name)
        assert str(old) == str(new), name
        if old.kind != "struct":
            continue
        fields: list[tuple[str, Any]] = old.fields
        for (field, was), (_, is_now) in zip(fields, new.fields, strict=False):
            assert (field, was.offset, str(was.type)) == (_, is_now.offset, str(is_now.type)), name
        if name in SIZED:
            assert then.sizeof(name) <= now.sizeof(name), name
        else:
            assert then.sizeof(name) == now.sizeof(name), f"{name} does not begin with its size"


@pytest.mark.parametrize("suffix", [".py", ".rs", ".c"])
def test_a_host_of_version_1_runs_plugins_of_today(plain_cc, bare, examples, tmp_path, suffix) -> None:
    host = plain_cc(examples / "host" / "c" / "host.c", f"-I{FROZEN}", "-ldl")
    plugin = build(examples / "flights" / f"udf{suffix}", tmp_path / "flights.so")
    done = bare(host, plugin, "mph")
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_a_plugin_of_version_1_runs_in_the_host_of_today(plain_cc, examples) -> None:
    plugin = load(plain_cc(examples / "by_hand" / "udf.c", f"-I{FROZEN}", "-shared", "-fPIC"))
    (function,) = plugin.functions.values()
    column = pa.array([1, None], function.arguments[0].type)
    assert len(function(column)) == 2


def test_a_later_host_may_set_only_options_that_the_plugin_knows(c_plugin, plain_cc, bare, tmp_path) -> None:
    source = tmp_path / "one.rs"
    source.write_text("use arroyo_udf_plugin::udf;\n#[udf]\nasync fn one(x: i64) -> i64 { x }\n")
    done = bare(plain_cc(TOO_LARGE, "-ldl"), build(source, tmp_path / "one.so"))
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert lines["nothing set beyond"].strip() == "0"
    assert lines["larger statistics"].strip() == "0"
    assert lines["filled in"] == "1, beyond: 5"
    assert "an option of a later version is chosen" in lines["something set beyond"]
    assert "options of size 8, where version 1 has" in lines["smaller options"]
    assert "statistics of size 8, where version 1 has" in lines["smaller statistics"]


def test_a_larger_table_is_taken_and_another_version_is_not(plain_cc, examples) -> None:
    source = (examples / "by_hand" / "udf.c").read_text()
    larger = source.replace("= sizeof(arroyo_udf_table)", "= sizeof(arroyo_udf_table) + 64")
    assert larger != source
    assert load(plain_cc(larger, "-shared", "-fPIC")).functions
    other = source.replace("= ARROYO_UDF_ABI_VERSION", "= 2")
    with pytest.raises(AbiError, match="has ABI version 2, and this host speaks version 1"):
        load(plain_cc(other, "-shared", "-fPIC"))
