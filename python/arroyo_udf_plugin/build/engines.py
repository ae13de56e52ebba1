"""The entry points by which DuckDB, Polars, Daft and SQLite load a library: see engines/engines.c.

    c_entry_points("udf", ["mph"])       C, to be compiled with `sources()`
    rust_entry_points("udf", ["mph"])    Rust, for the root of a crate to which `object_file` is linked
    footer()                             the end of a file that DuckDB loads

Guarantees: a library with these symbols works as before for hosts of the table, which do not look for them.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
from collections.abc import Sequence
from pathlib import Path

from ..errors import BuildError
from . import tools

FOLDER = Path(__file__).resolve().parent.parent / "_sdk" / "engines"
INCLUDE = FOLDER.parent.parent / "include"
EXPORTED = "_polars_plugin_*; daft_module_magic; sqlite3_extension_init; *_init_c_api;"
"""The symbols, as a version script lists them."""
_API = "v1.2.0"
"""DuckDB's C extension API, of DuckDB 1.2 and newer."""
_PLATFORMS = {"x86_64": "linux_amd64", "aarch64": "linux_arm64"}

_C = """\
#include "engines.h"
ARROYO_UDF_EXPORT uint32_t _polars_plugin_get_version(void) {{ return 1; }}
ARROYO_UDF_EXPORT const char *_polars_plugin_get_last_error_message(void) {{ return arroyo_udf_polars_error(); }}
ARROYO_UDF_EXPORT daft_module daft_module_magic(void) {{ return arroyo_udf_daft_module(); }}
ARROYO_UDF_EXPORT int sqlite3_extension_init(sqlite_connection *connection, char **error, const sqlite_slot *api) {{
  return arroyo_udf_sqlite_load(connection, error, api);
}}
"""
_C_FILE = """\
ARROYO_UDF_EXPORT bool {stem}_init_c_api(duckdb_object info, const duckdb_access *access) {{
  return arroyo_udf_duckdb_load(info, access);
}}
"""
_C_FUNCTION = """\
ARROYO_UDF_EXPORT void _polars_plugin_field_{name}(const struct ArrowSchema *fields, size_t n, struct ArrowSchema *out,
                                                   const uint8_t *options, size_t n_options) {{
  (void)options;
  arroyo_udf_polars_field("{name}", fields, n, out, n_options);
}}
ARROYO_UDF_EXPORT void _polars_plugin_{name}(polars_series *in, size_t n, const uint8_t *options, size_t n_options,
                                             polars_series *out, const void *context) {{
  (void)options, (void)context;
  arroyo_udf_polars_call("{name}", in, n, n_options, out);
}}
"""

_RUST = """\
mod engines {{
    use std::ffi::{{c_char, c_void}};
    #[repr(C)]
    pub struct DaftModule {{
        version: u32,
        name: *const c_char,
        init: *const c_void,
        free_string: *const c_void,
    }}
    extern "C" {{
        fn arroyo_udf_polars_error() -> *const c_char;
        fn arroyo_udf_polars_field(f: *const c_char, fields: *const c_void, n: usize, out: *mut c_void, options: usize);
        fn arroyo_udf_polars_call(f: *const c_char, given: *mut c_void, n: usize, options: usize, out: *mut c_void);
        fn arroyo_udf_duckdb_load(info: *mut c_void, access: *const c_void) -> bool;
        fn arroyo_udf_daft_module() -> DaftModule;
        fn arroyo_udf_sqlite_load(connection: *mut c_void, error: *mut *mut c_char, api: *const c_void) -> i32;
    }}
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
    unsafe extern "C" fn sqlite3_extension_init(
        connection: *mut c_void,
        error: *mut *mut c_char,
        api: *const c_void,
    ) -> i32 {{
        arroyo_udf_sqlite_load(connection, error, api)
    }}
{items}}}
"""
_RUST_FILE = """\
    #[no_mangle]
    unsafe extern "C" fn {stem}_init_c_api(info: *mut c_void, access: *const c_void) -> bool {{
        arroyo_udf_duckdb_load(info, access)
    }}
"""
_RUST_FUNCTION = """\
    #[no_mangle]
    unsafe extern "C" fn _polars_plugin_field_{name}(
        fields: *const c_void,
        n: usize,
        out: *mut c_void,
        _options: *const u8,
        n_options: usize,
    ) {{
        arroyo_udf_polars_field(c"{name}".as_ptr(), fields, n, out, n_options)
    }}
    #[no_mangle]
    unsafe extern "C" fn _polars_plugin_{name}(
        given: *mut c_void,
        n: usize,
        _options: *const u8,
        n_options: usize,
        out: *mut c_void,
        _context: *const c_void,
    ) {{
        arroyo_udf_polars_call(c"{name}".as_ptr(), given, n, n_options, out)
    }}
"""


def sources() -> list[Path]:
    return sorted(FOLDER.iterdir())


def sources_hash() -> str:
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources()))
    return f"engines {digest.hexdigest()}"


def c_entry_points(plugin: str, functions: Sequence[str]) -> str:
    """The text of a C file. plugin, functions: their names."""
    files = "".join(_C_FILE.format(stem=stem) for stem in _stems(plugin))
    return _C.format() + files + "".join(_C_FUNCTION.format(name=name) for name in _for_polars(functions))


def rust_entry_points(plugin: str, functions: Sequence[str]) -> str:
    """A module of Rust."""
    files = "".join(_RUST_FILE.format(stem=stem) for stem in _stems(plugin))
    return _RUST.format(items=files + "".join(_RUST_FUNCTION.format(name=name) for name in _for_polars(functions)))


def object_file(source: Path, folder: Path, more: Sequence[str]) -> Path:
    """The compiled `sources`, for a linker. source: of the plugin, for error texts. more: flags. Raises BuildError."""
    compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
    output = folder / "engines.o"
    flags = ["-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", f"-I{INCLUDE}", *more]
    try:
        done = tools.call([*compiler, *flags, "-c", str(FOLDER / "engines.c"), "-o", str(output)])
    except OSError as error:
        raise BuildError(
            f"the C compiler {compiler[0]} cannot be run ({error.strerror}): install gcc or clang, or set CC",
            str(source),
        ) from None
    if done.returncode:
        raise BuildError(f"the C compiler refused the entry points of engines:\n{done.stderr}", str(source))
    return output


def footer() -> bytes:
    """What DuckDB reads: eight fields, the last one first, then room for a signature.

    Empty where DuckDB has no name for the machine.
    """
    machine = _PLATFORMS.get(platform.machine())
    if machine is None:
        return b""
    fields = ("", "", "", "C_STRUCT", "1", _API, machine, "4")
    return b"".join(field.encode().ljust(32, b"\0") for field in fields) + bytes(256)


def link_of(library: Path, plugin: str) -> Path:
    """The name by which DuckDB finds the entry point: that of the plugin, whatever the library's file is called."""
    return library.with_name(f"lib{plugin}.duckdb_extension")


def _stems(plugin: str) -> tuple[str, str]:
    return f"lib{plugin}", plugin


def _for_polars(functions: Sequence[str]) -> list[str]:
    """Those whose names a symbol may contain."""
    return [name for name in functions if name.isascii() and name.isidentifier()]
