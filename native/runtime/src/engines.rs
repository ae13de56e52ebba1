//! What the entry points of foreign engines call: Polars, DuckDB, Daft and SQLite. It is written in C (engines/engines.c in
//! the SDK), once for all languages, and `arroyo-udf build` links it to the library.
//!
//! `#[udf]` writes the entry points of its function, and `build` those of the library, if the crate is compiled with
//! `--cfg arroyo_udf_engines`. Without it nothing refers to these symbols.

use std::ffi::{c_char, c_int, c_void};

/// What `daft_module_magic` returns.
#[repr(C)]
pub struct DaftModule {
    version: u32,
    name: *const c_char,
    init: *const c_void,
    free_string: *const c_void,
}

// The signatures are those of engines.h, whose structs are opaque here: their addresses are passed on.
extern "C" {
    pub fn arroyo_udf_polars_error() -> *const c_char;
    pub fn arroyo_udf_polars_field(
        function: *const c_char,
        fields: *const c_void,
        n: usize,
        out: *mut c_void,
        options: *const u8,
        n_options: usize,
    );
    pub fn arroyo_udf_polars_call(
        function: *const c_char,
        given: *mut c_void,
        n: usize,
        options: *const u8,
        n_options: usize,
        out: *mut c_void,
    );
    pub fn arroyo_udf_duckdb_load(info: *mut c_void, access: *const c_void) -> bool;
    pub fn arroyo_udf_daft_module() -> DaftModule;
    pub fn arroyo_udf_sqlite_load(connection: *mut c_void, error: *mut *mut c_char, api: *const c_void) -> c_int;
}
