"""The entry points by which DuckDB, Polars, Daft and SQLite load a library: see engines/engines.c.

    c_entry_points("udf", ["mph"], "fail")   C, to be compiled with `sources()`
    rust_entry_points("udf", "fail")         Rust, for the root of a crate to which `object_file` is linked; RUST_FLAGS

Guarantees: a library with these symbols works as before for hosts of the table, which do not look for them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from ..errors import BuildError
from . import cache, tools

OWN_SYMBOLS = "-Bsymbolic"
"""For the linker. All plugins export the same names, and some engines load libraries with RTLD_GLOBAL: without it, a
library that is loaded later would find the table of the first one."""
FOLDER = Path(__file__).resolve().parent.parent / "_sdk" / "engines"
INCLUDE = FOLDER.parent.parent / "include"
NULLS_FAILED_ROWS = "arroyo_udf_on_error_null"
"""The symbol of a library that was built with `--on-error null`, for engines that call it through a host."""
EXPORTED = f"_polars_plugin_*; daft_module_magic; sqlite3_extension_init; *_init_c_api; {NULLS_FAILED_ROWS}*;"
"""The symbols, as a version script lists them: the last one with a *, because some linkers refuse a missing name."""

_C = """\
#include "engines.h"
ARROYO_UDF_EXPORT uint32_t _polars_plugin_get_version(void) {{ return 1; }}
ARROYO_UDF_EXPORT const char *_polars_plugin_get_last_error_message(void) {{ return arroyo_udf_polars_error(); }}
ARROYO_UDF_EXPORT daft_module daft_module_magic(void) {{ return arroyo_udf_daft_module(); }}
ARROYO_UDF_EXPORT int sqlite3_extension_init(sqlite_connection *connection, char **error, const sqlite_slot *api) {{
  return arroyo_udf_sqlite_load(connection, error, api);
}}
"""
_C_NULLS = f"ARROYO_UDF_EXPORT const char {NULLS_FAILED_ROWS} = 1;\n"
_C_FILE = """\
ARROYO_UDF_EXPORT bool {stem}_init_c_api(duckdb_object info, const duckdb_access *access) {{
  return arroyo_udf_duckdb_load(info, access);
}}
"""
_C_FUNCTION = """\
ARROYO_UDF_EXPORT void _polars_plugin_field_{name}(const struct ArrowSchema *fields, size_t n, struct ArrowSchema *out,
                                                   const uint8_t *options, size_t n_options) {{
  arroyo_udf_polars_field("{name}", fields, n, out, options, n_options);
}}
ARROYO_UDF_EXPORT void _polars_plugin_{name}(polars_series *in, size_t n, const uint8_t *options, size_t n_options,
                                             polars_series *out, const void *context) {{
  (void)context;
  arroyo_udf_polars_call("{name}", in, n, options, n_options, out);
}}
"""

_RUST = """\
mod engines {{
    use arroyo_udf_plugin::engines::*;
    use std::ffi::{{c_char, c_int, c_void}};
    #[no_mangle]
    extern "C" fn _polars_plugin_get_version() -> u32 {{
        1
    }}
    #[no_mangle]
    unsafe extern "C" fn _polars_plugin_get_last_error_message() -> *const c_char {{
        arroyo_udf_polars_error()
    }}
    #[no_mangle]
    unsafe extern "C" fn daft_module_magic() -> DaftModule {{
        arroyo_udf_daft_module()
    }}
    #[no_mangle]
    unsafe extern "C" fn sqlite3_extension_init(a: *mut c_void, b: *mut *mut c_char, c: *const c_void) -> c_int {{
        arroyo_udf_sqlite_load(a, b, c)
    }}
{files}}}
"""
_RUST_NULLS = f"""\
    #[no_mangle]
    #[allow(non_upper_case_globals)]
    static {NULLS_FAILED_ROWS}: u8 = 1;
"""
_RUST_FILE = """\
    #[no_mangle]
    unsafe extern "C" fn {stem}_init_c_api(info: *mut c_void, access: *const c_void) -> bool {{
        arroyo_udf_duckdb_load(info, access)
    }}
"""
RUST_FLAGS = ["--cfg=arroyo_udf_engines", "--check-cfg=cfg(arroyo_udf_engines)"]
"""With them `#[udf]` writes the entry points of its function."""


def sources() -> list[Path]:
    return sorted(FOLDER.iterdir())


def sources_hash() -> str:
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources()))
    return f"engines {digest.hexdigest()}"


def c_entry_points(plugin: str, functions: Sequence[str], on_error: str) -> str:
    """The text of a C file. plugin, functions: their names."""
    files = "".join(_C_FILE.format(stem=stem) for stem in _stems(plugin))
    nulls = _C_NULLS if on_error == "null" else ""
    return _C.format() + nulls + files + "".join(_C_FUNCTION.format(name=name) for name in _for_polars(functions))


def rust_entry_points(plugin: str, on_error: str) -> str:
    """A module of Rust, with the entry points of the library."""
    files = "".join(_RUST_FILE.format(stem=stem) for stem in _stems(plugin))
    return _RUST.format(files=(_RUST_NULLS if on_error == "null" else "") + files)


def object_file(source: Path, more: Sequence[str]) -> Path:
    """The compiled `sources`, for a linker: from the cache, if they were compiled before.

    source: of the plugin, for error texts. more: flags. Raises BuildError.
    """
    compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
    flags = ["-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", f"-I{INCLUDE}", *more]

    def make(output: Path) -> None:
        done = tools.call([*compiler, *flags, "-c", str(FOLDER / "engines.c"), "-o", str(output)])
        if done.returncode:
            raise BuildError(f"the C compiler refused the entry points of engines:\n{done.stderr}", str(source))

    try:
        version = tools.version_of(compiler).stdout
    except OSError as error:
        raise BuildError(
            f"the C compiler {compiler[0]} cannot be run ({error.strerror}): install gcc or clang, or set CC",
            str(source),
        ) from None
    key = hashlib.sha256(json.dumps([compiler, version, flags, sources_hash()]).encode()).hexdigest()
    return cache.kept(key, "engines.o", make)


def _stems(plugin: str) -> tuple[str, str]:
    return f"lib{plugin}", plugin


def _for_polars(functions: Sequence[str]) -> list[str]:
    """Those whose names a symbol may contain."""
    return [name for name in functions if name.isascii() and name.isidentifier()]
