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
//! A plugin exports only its table: the linker hides all symbols defined here.

mod calls;
mod complete;
mod declared;
mod executor;
mod started;

use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::arrow::Batch;
use arroyo_udf_plugin::exports::{self, Ran};
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::runtime::Runtime;
use arroyo_udf_plugin::signature::Signature;
use std::ffi::c_void;
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
        // Sync functions in C do not come here: the header runs them.
        Err(Failure::new(abi::NOT_IMPLEMENTED, format!("{}: not for this kind of function", Self::signature(function)?.name)))
    }

    fn start(function: u32, runtime: &Arc<Runtime>) -> Result<(), Failure> {
        executor::start(declared::function(function)?, runtime)
    }
}

const TABLE: abi::Table = exports::table::<ThisPlugin>();

/// Starts function number `function` of `plugin`, which is one constant of the author's library.
///
/// # Safety
/// As `start` in arroyo_udf.h.
#[no_mangle]
pub unsafe extern "C" fn arroyo_udf_c_runtime_start(
    plugin: &'static declared::Plugin,
    function: u32,
    options: *const abi::Options,
    handle: *mut abi::Handle,
    error: *mut abi::Error,
) -> abi::Status {
    declared::remember(plugin);
    // SAFETY: passed on.
    unsafe { (TABLE.start)(function, options, handle, error) }
}

/// The other slots, under the names that the header's table has for them.
macro_rules! slots {
    ($($name:ident = $slot:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            #[doc = concat!("# Safety\nAs `", stringify!($slot), "` in arroyo_udf.h.")]
            #[no_mangle]
            pub unsafe extern "C" fn $name($($argument: $type,)* error: *mut abi::Error) -> abi::Status {
                // SAFETY: passed on.
                unsafe { (TABLE.$slot)($($argument,)* error) }
            }
        )*
    };
}

slots! {
    arroyo_udf_c_runtime_send = send(handle: abi::Handle, first_id: u64, arguments: *mut abi::ArrowArray);
    arroyo_udf_c_runtime_drain_results = drain_results(
        handle: abi::Handle, max_rows: u64, results: *mut abi::ArrowArray, schema: *mut *const abi::ArrowSchema
    );
    arroyo_udf_c_runtime_wait = wait(handle: abi::Handle, condition: u32, timeout_ns: u64);
    arroyo_udf_c_runtime_arm = arm(handle: abi::Handle, condition: u32, function: Option<abi::Armed>, data: *mut c_void);
    arroyo_udf_c_runtime_disarm = disarm(handle: abi::Handle);
    arroyo_udf_c_runtime_cancel = cancel(handle: abi::Handle, first_id: u64, rows: u64);
    arroyo_udf_c_runtime_statistics = statistics(handle: abi::Handle, statistics: *mut abi::Statistics);
    arroyo_udf_c_runtime_stop_runtime = stop_runtime(handle: abi::Handle, mode: u32, deadline_ns: u64);
    arroyo_udf_c_runtime_release = release(handle: abi::Handle);
}
