//! How plugins in Python open instances of themselves for hosts that are not Python: the core's extension "opener/1".

use crate::interpreter::Interpreter;
use crate::subinterpreter;
use arroyo_udf_plugin::abi::{self, Table};
use arroyo_udf_plugin::failure::{guard, Failure};
use arroyo_udf_plugin::isolation::contract::{self, Opener};
use arroyo_udf_plugin::isolation::python::PythonPlugin;
use std::ffi::{c_void, CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::ptr::null;

const ID: &CStr = c"opener/1";
static OPENER: Opener = Opener { size: size_of::<Opener>() as u64, open, close };

/// The answer of the core.
pub fn extension(id: &CStr) -> *const c_void {
    if id == ID {
        (&raw const OPENER).cast()
    } else {
        null()
    }
}

unsafe extern "C" fn open(
    plugin: *const Table,
    options: *const abi::IsolationOptions,
    instance: *mut abi::Instance,
    error: *mut abi::Error,
) -> abi::Status {
    // SAFETY: a plugin passes its own table, a constant; the host passes structs of the sizes that they state, or null.
    let body = || unsafe {
        let (plugin, options) = (&*plugin, contract::read(options)?);
        let workers = options.workers as usize;
        contract::tell(instance, || match options.mode {
            abi::SUBINTERPRETER => Interpreter::main().enter(|| subinterpreter::open(plugin, workers))?,
            _ => {
                let unknown = || Failure::new(abi::ENVIRONMENT, "this plugin does not say where it is: build it again");
                let about = PythonPlugin::of(plugin).filter(|about| !about.library.is_empty()).ok_or_else(unknown)?;
                let own = || OsStr::from_bytes(about.python.to_bytes()).to_owned();
                let python = contract::chosen_python().unwrap_or_else(own);
                contract::open_processes((plugin.describe)(), about.library.to_bytes().to_vec(), python, &options)
            }
        })
    };
    // SAFETY: the host passes a writable error struct, or null.
    unsafe { guard(error, |_| {}, body) }
}

unsafe extern "C" fn close(plugin: *const Table, instance: *const abi::Instance, error: *mut abi::Error) -> abi::Status {
    // SAFETY: as in `open`; a plugin's descriptor is a constant of at least the size of version 1.
    let body = || unsafe { contract::close_told(instance, (*((*plugin).describe)()).n_functions) };
    // SAFETY: the host passes a writable error struct, or null.
    unsafe { guard(error, |_| {}, body) }
}
