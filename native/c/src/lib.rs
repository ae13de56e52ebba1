//! The runtime below asynchronous functions in C. `native/include/arroyo_udf_async.h` is its other half: authors call the
//! functions that the header documents, and the header's macros call the others exported here.
//!
//! | module       | what it does                                                                          |
//! |--------------|---------------------------------------------------------------------------------------|
//! | [`declared`] | a plugin's declarations of its functions, as the header's macros lay them out          |
//! | [`calls`]    | the open calls of a runtime, and their tokens                                          |
//! | [`started`]  | started functions, by the number in those tokens                                       |
//! | [`executor`] | the thread of a started function: init, calls, cancellations, close                    |
//! | [`complete`] | the functions with which an author completes a call, from any thread                   |
//!
//! The plugin's table is defined here. The author's library provides the functions, and `run` for the sync ones. A plugin
//! exports only the table: the linker hides all other symbols.

mod calls;
mod complete;
mod declared;
mod executor;
mod started;

use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::arrow::Batch;
use arroyo_udf_plugin::exports::{self, Ran};
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::isolation::contract;
use arroyo_udf_plugin::runtime::Runtime;
use arroyo_udf_plugin::signature::Signature;
use std::ffi::{c_void, CStr};
use std::sync::Arc;

/// This library's plugin.
struct ThisPlugin;

impl exports::Plugin for ThisPlugin {
    fn describe() -> *const abi::Descriptor {
        declared::descriptor()
    }

    fn signature(function: u32) -> Result<&'static Signature, Failure> {
        declared::function(function).map(|function| &function.signature)
    }

    fn run(function: u32, _: &Arc<Batch>) -> Result<Ran, Failure> {
        let text = format!("{}: the author's library runs sync functions", Self::signature(function)?.name);
        Err(Failure::new(abi::NOT_IMPLEMENTED, text))
    }

    fn start(function: u32, runtime: &Arc<Runtime>) -> Result<(), Failure> {
        executor::start(declared::function(function)?, runtime)
    }

    fn extension(id: &CStr) -> *const c_void {
        contract::extension::<Self>(id)
    }
}

extern "C" {
    /// `run` in the author's library: the header's code for sync functions.
    fn arroyo_udf_c_run(
        function: u32,
        arguments: *mut abi::ArrowArray,
        context: *const abi::BatchContext,
        results: *mut abi::ArrowArray,
        schema: *mut *const abi::ArrowSchema,
        error: *mut abi::Error,
    ) -> abi::Status;
}

/// The one symbol that a plugin exports.
#[export_name = "arroyo_udf_plugin"]
pub static TABLE: abi::Table = abi::Table { run: arroyo_udf_c_run, ..exports::table::<ThisPlugin>() };
