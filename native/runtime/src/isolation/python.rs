//! What a plugin in Python tells the toolkit of itself: the mirror of `arroyo_udf_c_python.h`.

use arroyo_udf_abi as abi;
use std::ffi::{c_char, CStr};

const ID: &CStr = c"python/1";

#[repr(C)]
struct Raw {
    size: u64,
    format: u32,
    reserved: u32,
    parcel: *const c_char,
    library: *const c_char,
    python: *const c_char,
}

/// A plugin in Python.
#[derive(Debug, Clone, Copy)]
pub struct PythonPlugin {
    /// `PLUGIN_FORMAT` of the toolkit that built it.
    pub format: u32,
    /// JSON: the source, and the modules of its folder that it imports.
    pub parcel: &'static CStr,
    /// The path of the library; empty if it is unknown.
    pub library: &'static CStr,
    /// The path of the interpreter that built it.
    pub python: &'static CStr,
}

impl PythonPlugin {
    /// None: the plugin is not written in Python, or is older than this extension.
    ///
    /// # Safety
    /// The table is that of a library that is never unloaded.
    pub unsafe fn of(table: &abi::Table) -> Option<PythonPlugin> {
        // SAFETY: the library answers null or a constant of at least the size that it states, with C strings.
        unsafe {
            let raw = (table.extension)(ID.as_ptr()).cast::<Raw>().as_ref()?;
            (raw.size >= size_of::<Raw>() as u64).then(|| PythonPlugin {
                format: raw.format,
                parcel: CStr::from_ptr(raw.parcel),
                library: CStr::from_ptr(raw.library),
                python: CStr::from_ptr(raw.python),
            })
        }
    }
}
