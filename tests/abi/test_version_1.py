"""Version 1 of the contract is frozen: `version_1/arroyo_udf.h` is the header as published. It never changes, and gains
only what declares a new extension. Hosts and plugins compiled with it work with plugins and hosts of today. Drafts of
version 1 had another magic number."""

import ctypes
import re
from pathlib import Path
from typing import Any

import cffi
import pyarrow as pa
import pytest

from arroyo_udf_plugin import AbiError, build, load

HERE = Path(__file__).resolve().parent
FROZEN = HERE / "version_1"
ROOT = HERE.parents[1]
SIZED = {"error", "options", "function", "descriptor", "batch_context", "statistics", "log", "table"}
SIZED |= {"isolation", "isolation_options", "instance"}


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
    sized = {f"arroyo_udf_{name}" for name in SIZED}
    assert sized <= set(names)
    for name in [*(f"struct {struct}" for struct in structs), *names]:
        old, new = then.typeof(name), now.typeof(name)
        assert str(old) == str(new), name
        if old.kind != "struct":
            continue
        fields: list[tuple[str, Any]] = old.fields
        for (field, was), (_, is_now) in zip(fields, new.fields, strict=False):
            assert (field, was.offset, str(was.type)) == (_, is_now.offset, str(is_now.type)), name
        if name.removeprefix("struct ") in sized:
            assert then.sizeof(name) <= now.sizeof(name), name
        else:
            assert then.sizeof(name) == now.sizeof(name), f"{name} does not begin with its size"


def test_the_sizes_of_version_1_are_those_of_its_structs() -> None:
    text = (ROOT / "native" / "include" / "arroyo_udf.h").read_text()
    sizes = dict(re.findall(r"  ARROYO_UDF_(\w+)_SIZE_1 = (\d+)", text))
    then, now = declared(FROZEN / "arroyo_udf.h"), declared(ROOT / "native" / "include" / "arroyo_udf.h")
    # An extension that came later, as it began.
    assert int(sizes.pop("NATIVE")) == now.offsetof("arroyo_udf_native", "run_fused")
    assert sizes == {name.upper(): str(then.sizeof(f"arroyo_udf_{name}")) for name in SIZED}


def test_hosts_and_plugins_of_drafts_are_refused_by_the_magic_number(flights, host, bare, plain_cc, examples) -> None:
    """A host of a draft compares the first eight bytes, before it reads anything else, and says that they differ."""
    draft = b"ARYO_UDF"
    _, library = flights
    table = ctypes.c_char.in_dll(ctypes.CDLL(str(library)), "arroyo_udf_plugin")
    assert ctypes.string_at(ctypes.addressof(table), 8) == b"ARROYUDF" != draft
    source = (examples / "by_hand" / "udf.c").read_text()
    old = source.replace("= ARROYO_UDF_MAGIC", f"= UINT64_C({int.from_bytes(draft, 'little')})")
    assert old != source
    path = plain_cc(old, "-shared", "-fPIC")
    with pytest.raises(AbiError, match="was built before ABI version 1 was final: build the plugin again"):
        load(path)
    done = bare(host, path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "built before ABI version 1 was final (build it again)" in done.stderr


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


def test_a_larger_table_is_taken_and_another_version_is_not(plain_cc, examples) -> None:
    source = (examples / "by_hand" / "udf.c").read_text()
    larger = source.replace("= sizeof(arroyo_udf_table)", "= sizeof(arroyo_udf_table) + 64")
    assert larger != source
    assert load(plain_cc(larger, "-shared", "-fPIC")).functions
    other = source.replace("= ARROYO_UDF_ABI_VERSION", "= 2")
    with pytest.raises(AbiError, match="has ABI version 2, and this host speaks version 1"):
        load(plain_cc(other, "-shared", "-fPIC"))
