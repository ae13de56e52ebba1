//! The extension "isolation/1": how a host that is not Python opens instances.
//!
//! A plugin in Rust, or one in C with async functions, has this runtime in itself and answers the extension here; its workers
//! are processes. For a plugin in Python the native core opens instances, in both modes ([`Opener`]).

use super::process::child::Program;
use super::process::{Limits, Processes, Spec};
use super::{close, open, Instance};
use crate::exports::Plugin;
use crate::failure::{guard, Failure};
use crate::sized;
use arroyo_udf_abi as abi;
use std::ffi::{c_void, CStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

const ID: &CStr = c"isolation/1";
const MOST_WORKERS: u32 = 1024;
/// The Python module that is a worker.
const WORKER: &str = "arroyo_udf_plugin.worker";

/// What the native core offers to plugins in Python, by its own extension: the mirror of `arroyo_udf_c_python.h`.
#[repr(C)]
pub struct Opener {
    pub size: u64,
    pub open: unsafe extern "C" fn(*const abi::Table, *const abi::IsolationOptions, *mut abi::Instance, *mut abi::Error) -> abi::Status,
    pub close: unsafe extern "C" fn(*const abi::Table, *const abi::Instance, *mut abi::Error) -> abi::Status,
}

/// The options of a host, read and checked.
///
/// # Safety
/// `options` is null or points to options of the size that they state.
pub unsafe fn read(options: *const abi::IsolationOptions) -> Result<abi::IsolationOptions, Failure> {
    if options.is_null() {
        return Err(Failure::argument("open: options is null"));
    }
    // SAFETY: passed on.
    let mut options = unsafe { sized::read_options(options) }.map_err(Failure::argument)?;
    if ![abi::SUBINTERPRETER, abi::PROCESS].contains(&options.mode) {
        let text = format!("isolation mode {}: it is ARROYO_UDF_SUBINTERPRETER or ARROYO_UDF_PROCESS", options.mode);
        return Err(Failure::argument(text));
    }
    if options.workers > MOST_WORKERS {
        return Err(Failure::argument(format!("{} workers: at most {MOST_WORKERS}", options.workers)));
    }
    if options.mode == abi::SUBINTERPRETER && (options.memory_limit, options.cpu_limit) != (0, 0) {
        return Err(Failure::argument("memory_limit and cpu_limit are for processes: the system limits those alone"));
    }
    options.workers = options.workers.max(1);
    Ok(options)
}

/// Opens a plugin in processes. `python`: that of an environment with this toolkit.
///
/// # Safety
/// The descriptor is a constant of the library.
pub unsafe fn open_processes(
    descriptor: *const abi::Descriptor,
    library: Vec<u8>,
    python: OsString,
    options: &abi::IsolationOptions,
) -> Result<u32, Failure> {
    let program = Program { path: python, arguments: vec!["-m".into(), WORKER.into()] };
    let limits = Limits { memory: options.memory_limit, cpu: options.cpu_limit };
    // SAFETY: passed on.
    let spec = unsafe { Spec::new(program, limits, library, descriptor, || false) };
    let spec = spec.map_err(|text| Failure::new(abi::ENVIRONMENT, text))?;
    let instance: Arc<dyn Instance> = Arc::new(Processes::new(spec, options.workers as usize));
    // SAFETY: passed on.
    unsafe { open(descriptor, &instance) }.map_err(Failure::argument)
}

/// The python that $ARROYO_UDF_PYTHON names.
pub fn chosen_python() -> Option<OsString> {
    std::env::var_os("ARROYO_UDF_PYTHON").filter(|path| !path.is_empty())
}

/// Opens an instance, `opening` answers the number of its first function, and tells the host of it.
///
/// # Safety
/// `instance` is null or points to a struct of the size that it states.
pub unsafe fn tell(instance: *mut abi::Instance, opening: impl FnOnce() -> Result<u32, Failure>) -> Result<abi::Status, Failure> {
    if instance.is_null() {
        return Err(Failure::argument("open: instance is null"));
    }
    // SAFETY: passed on. Its size is checked first, so that nothing is opened in vain.
    unsafe {
        sized::size(instance).map_err(Failure::argument)?;
        let filled = abi::Instance { size: 0, table: &raw const super::TABLE, first: opening()?, reserved: 0 };
        sized::write(&filled, instance).map_err(Failure::argument)?;
    }
    Ok(abi::OK)
}

/// Closes the instance of a host, which has so many functions.
///
/// # Safety
/// `instance` is null or points to a struct of the size that it states.
pub unsafe fn close_told(instance: *const abi::Instance, functions: u64) -> Result<abi::Status, Failure> {
    if instance.is_null() {
        return Err(Failure::argument("close: instance is null"));
    }
    // SAFETY: passed on.
    let told = unsafe { sized::read(instance) }.map_err(Failure::argument)?;
    close(told.first, functions as u32);
    Ok(abi::OK)
}

struct Of<P>(std::marker::PhantomData<P>);

impl<P: Plugin> Of<P> {
    const ISOLATION: abi::Isolation =
        abi::Isolation { size: size_of::<abi::Isolation>() as u64, open: open_here::<P>, close: close_here::<P> };
}

/// The answer of a plugin that has this runtime in itself.
pub fn extension<P: Plugin>(id: &CStr) -> *const c_void {
    if id == ID {
        (&raw const *const { &Of::<P>::ISOLATION }).cast()
    } else {
        std::ptr::null()
    }
}

unsafe extern "C" fn open_here<P: Plugin>(
    options: *const abi::IsolationOptions,
    instance: *mut abi::Instance,
    error: *mut abi::Error,
) -> abi::Status {
    let body = || {
        // SAFETY: the host passes options and an instance of the sizes that they state, or null.
        let options = unsafe { read(options) }?;
        if options.mode == abi::SUBINTERPRETER {
            let text = "subinterpreters are for plugins in Python: choose ARROYO_UDF_PROCESS";
            return Err(Failure::new(abi::NOT_IMPLEMENTED, text));
        }
        let Some(python) = chosen_python() else {
            let text = "a worker process is a python: name that of an environment with arroyo_udf_plugin in ARROYO_UDF_PYTHON";
            return Err(Failure::new(abi::ENVIRONMENT, text));
        };
        // SAFETY: the descriptor is a constant of this library; as above.
        unsafe { tell(instance, || open_processes(P::describe(), library(open_here::<P> as *const c_void)?, python, &options)) }
    };
    // SAFETY: the host passes a writable error struct, or null.
    unsafe { guard(error, |_| {}, body) }
}

unsafe extern "C" fn close_here<P: Plugin>(instance: *const abi::Instance, error: *mut abi::Error) -> abi::Status {
    // SAFETY: the host passes an instance of the size that it states, or null; a descriptor has the size of version 1.
    let body = || unsafe { close_told(instance, (*P::describe()).n_functions) };
    // SAFETY: the host passes a writable error struct, or null.
    unsafe { guard(error, |_| {}, body) }
}

/// The path of the library that contains an address.
fn library(address: *const c_void) -> Result<Vec<u8>, Failure> {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the struct is filled in on success; its name is a text of the loader.
    let path = unsafe {
        (libc::dladdr(address, found.as_mut_ptr()) != 0)
            .then(|| found.assume_init().dli_fname)
            .filter(|name| !name.is_null())
            .and_then(|name| std::fs::canonicalize(OsString::from_vec(CStr::from_ptr(name).to_bytes().to_vec())).ok())
    };
    path.map(|path| path.into_os_string().into_vec())
        .ok_or_else(|| Failure::new(abi::ENVIRONMENT, "the file of this plugin is not known, so no worker can open it"))
}
