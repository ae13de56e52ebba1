//! A plugin's declarations of its functions: constants of the author's library, as the macros of arroyo_udf_async.h lay
//! them out.
//!
//! Assumes that the library was compiled with that header of the same toolkit version: the layout is not checked.

use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::batch_context::Key;
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::signature::Signature;
use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

/// `arroyo_udf_call`.
#[repr(C)]
pub struct Call {
    pub token: u64,
    pub row: u64,
    pub deadline_ns: u64,
    pub context: *mut c_void,
    pub attempt: u32,
    pub reserved: u32,
    pub lineage: [u8; 16],
    pub trace_parent: *const c_char,
    pub idempotency_key: Key,
}

/// `arroyo_udf_c_argument`: one argument of a call.
#[repr(C)]
pub struct Argument {
    /// The value of a number or a bool, little-endian.
    pub bits: u64,
    /// The bytes of a text.
    pub data: *const c_char,
    pub length: usize,
    pub is_null: bool,
}

/// `arroyo_udf_async`: what accompanies an author's function. init and close return NULL, or the text of a failure.
#[repr(C)]
pub struct Settings {
    pub init: Option<unsafe extern "C" fn(context: *mut *mut c_void) -> *const c_char>,
    pub cancel: Option<unsafe extern "C" fn(context: *mut c_void, token: u64)>,
    pub close: Option<unsafe extern "C" fn(context: *mut c_void) -> *const c_char>,
    pub options: abi::Options,
}

/// `arroyo_udf_c_async`: an async function of a plugin; `call` unpacks the arguments and calls the author's function.
#[repr(C)]
pub struct Async {
    pub call: unsafe extern "C" fn(call: *const Call, arguments: *const Argument),
    pub settings: &'static Settings,
}

/// The beginning of `arroyo_udf_c_function`; only the header uses the rest.
#[repr(C)]
struct Declared {
    function: abi::Function,
    body: Option<&'static Async>,
}

/// `arroyo_udf_c_plugin`: one pointer for each function of the descriptor.
#[repr(C)]
pub struct Plugin {
    descriptor: &'static abi::Descriptor,
    functions: *const &'static Declared,
}

// SAFETY: constants; nothing writes to them.
unsafe impl Sync for Plugin {}

/// A function, read once.
pub struct Function {
    pub signature: Signature,
    pub body: Option<&'static Async>,
}

extern "C" {
    /// In the author's library: ARROYO_UDF_PLUGIN makes it.
    static arroyo_udf_c_this_plugin: Plugin;
}

fn this_plugin() -> &'static Plugin {
    // SAFETY: a constant of this library, laid out by the header that belongs to this crate.
    unsafe { &arroyo_udf_c_this_plugin }
}

pub fn descriptor() -> &'static abi::Descriptor {
    this_plugin().descriptor
}

/// The functions of the plugin, by number; read at the first use.
fn functions() -> &'static [Result<Function, String>] {
    static FUNCTIONS: OnceLock<Vec<Result<Function, String>>> = OnceLock::new();
    FUNCTIONS.get_or_init(|| {
        let Plugin { descriptor, functions } = this_plugin();
        // SAFETY: the macro that makes the plugin names it with a NUL at the end.
        let name = unsafe { arroyo_udf_plugin::signature::text(descriptor.name) };
        let read = |i| {
            // SAFETY: there are n_functions of them.
            let declared = unsafe { *functions.add(i) };
            // SAFETY: a function of the descriptor.
            unsafe { Signature::read(&name, &declared.function) }.map(|signature| Function { signature, body: declared.body })
        };
        (0..descriptor.n_functions as usize).map(read).collect()
    })
}

pub fn function(number: u32) -> Result<&'static Function, Failure> {
    let functions = functions();
    match functions.get(number as usize) {
        Some(Ok(function)) => Ok(function),
        Some(Err(text)) => Err(Failure::new(abi::INTERNAL, text)),
        None => Err(Failure::argument(format!("there is no function number {number}, the plugin has {}", functions.len()))),
    }
}
