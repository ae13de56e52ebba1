//! The table that a library exports.

use std::path::Path;

use arroyo_udf_abi as abi;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

// Not in libloading. A plugin is never unloaded: its threads and release callbacks may outlive every handle.
const RTLD_NODELETE: i32 = 0x1000;

/// A checked table. A pointer, because a table may be larger than the mirror, and the mirror than the table.
#[derive(Clone, Copy)]
pub(crate) struct Table(pub(crate) *const abi::Table);

// SAFETY: the table is a constant of a library that is never unloaded, and any thread may call any slot.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Table {
    /// Also returns whether the library was built to give null for failed rows.
    pub(crate) fn load(path: &Path) -> std::result::Result<(Table, bool), String> {
        // A name without a slash would be looked for in the system's folders of libraries.
        let path = if path.components().count() == 1 { &Path::new(".").join(path) } else { path };
        // SAFETY: loading runs the library's constructors, which are harmless in a plugin.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) };
        let library = library.map_err(|error| format!("it cannot be loaded: {error}"))?;
        // SAFETY: the symbol is a constant; its fields are checked one by one below.
        let table = unsafe { library.get::<*const abi::Table>(b"arroyo_udf_plugin\0") };
        let table: *const abi::Table = *table.map_err(|_| "not a plugin: it has no symbol arroyo_udf_plugin")?;
        // SAFETY: the first 16 bytes of the table are the same in all versions. No reference to the whole table yet.
        let (magic, version, size) = unsafe { ((*table).magic, (*table).abi_version, u64::from((*table).table_size)) };
        if magic != abi::MAGIC {
            return Err("not a plugin, or built before ABI version 1 was final (build it again): its table does not begin with the \
                magic number"
                .into());
        }
        if version != abi::ABI_VERSION {
            return Err(format!("it has ABI version {version}, this host has {}: build it again", abi::ABI_VERSION));
        }
        if size < abi::TABLE_SIZE_1 {
            return Err(format!("its table is truncated: it has {size} bytes, this host needs {}", abi::TABLE_SIZE_1));
        }
        // SAFETY: only the presence of the symbol counts.
        let nulls = unsafe { library.get::<*const u8>(b"arroyo_udf_on_error_null\0") }.is_ok();
        Ok((Table(table), nulls))
    }
}
