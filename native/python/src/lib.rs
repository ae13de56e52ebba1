//! `arroyo_udf_plugin._native`: Python functions behind the C table. Raw CPython API, multi-phase initialisation, one
//! build per Python version.
//!
//! | module        | what it does                                                              |
//! |---------------|---------------------------------------------------------------------------|
//! | [`registry`]  | the functions that plugins have registered                                |
//! | [`gil`]       | entering Python from any thread, until the interpreter ends               |
//! | [`sync`]      | `run`: a batch row by row, or whole                                       |
//! | [`calls`]     | a row of a batch -> a call of the function                                |
//! | [`types`]     | one value between Arrow and Python, [`writer`] a column of results        |
//! | [`call_info`] | what a call can ask about itself                                          |
//! | [`foreign`]   | what goes through pyarrow                                                 |
//! | [`executor`]  | the asyncio driver: Runtime, Slot and [`parker`]                          |
//! | [`group`]     | the rows of a micro-batch <-> one call                                    |
//! | [`blocking`]  | a row in a thread of the pool                                             |
//! | [`watch`]     | sees that the event loop is blocked                                       |
//! | [`host`]      | helpers for the Python host                                               |
//! | [`object`]    | references and exceptions, [`heap`] types with a Rust body                |
//!
//! A Python plugin takes the table from the capsule `TABLE`, or, for the Arroyo engine, from `ARROYO`, and forwards its
//! calls to it, with its function numbers moved by the base that `register` answered.

mod blocking;
mod call_info;
mod calls;
mod executor;
mod foreign;
mod gil;
mod group;
mod heap;
mod host;
mod imported;
mod object;
mod parker;
mod registry;
mod sync;
mod types;
mod watch;
mod writer;

use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::arrow::Batch;
use arroyo_udf_plugin::arroyo;
use arroyo_udf_plugin::exports::{self, Plugin, Ran};
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::machine::Stop;
use arroyo_udf_plugin::pool;
use arroyo_udf_plugin::runtime::Runtime;
use arroyo_udf_plugin::signature::Signature;
use arroyo_udf_plugin::timer;
use object::{none, Owned};
use pyo3_ffi::*;
use std::ffi::{c_int, c_void, CStr};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Once};
use std::time::Duration;

/// All Python plugins of the process, behind one table.
struct Core;

impl Plugin for Core {
    /// Each plugin describes itself; the core has nothing to say.
    fn describe() -> *const abi::Descriptor {
        null()
    }

    fn signature(function: u32) -> Result<&'static Signature, Failure> {
        registry::get(function).map(|function| function.signature)
    }

    fn run(function: u32, batch: &Arc<Batch>) -> Result<Ran, Failure> {
        let function = registry::get(function)?;
        // SAFETY: the GIL is held inside; the batch was checked against this function's signature.
        gil::enter(|| unsafe { sync::run(function, batch) })
    }

    fn start(function: u32, runtime: &Arc<Runtime>) -> Result<(), Failure> {
        let function = registry::get(function)?;
        if function.blocking {
            return pool::start(runtime, blocking::Calls::new(function));
        }
        // SAFETY: the GIL is held inside.
        gil::enter(|| unsafe {
            let started = executor::new_runtime(function, Arc::clone(runtime))
                .and_then(|object| object::call(c"arroyo_udf_plugin.plugin.executor", c"start", &[object.ptr()]));
            if started.is_some() {
                return Ok(());
            }
            let text = format!("{}: start failed: {}", function.signature.name, calls::raised_text());
            runtime.stop_soon(Stop::Cancel); // should it open after all, it closes at once
            Err(Failure::new(abi::USER_CODE, text))
        })?
    }
}

static TABLE: abi::Table = exports::table::<Core>();
const TABLE_NAME: &CStr = c"arroyo_udf_plugin._native.TABLE";
/// The same functions behind Arroyo's interface.
static ARROYO: arroyo::Symbols = arroyo::symbols::<Core>();
const ARROYO_NAME: &CStr = c"arroyo_udf_plugin._native.ARROYO";

/// stop_all(): stops every runtime and lets no thread into Python any more (R18). To be called before the interpreter
/// ends; once is enough.
unsafe extern "C" fn stop_all(_module: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    static STOPPED: Once = Once::new();
    // SAFETY: called by Python with the GIL, which is given back while others finish.
    unsafe {
        let mut first = false;
        STOPPED.call_once(|| first = true);
        if first {
            gil::without(|| exports::stop_all(Duration::from_secs(1)));
            if object::call(c"arroyo_udf_plugin.plugin.executor", c"stop_loop", &[]).is_none() {
                PyErr_Clear(); // nobody has started anything
            }
            gil::without(|| gil::close(Duration::from_secs(1)));
        }
        none()
    }
}

/// advance_clock(nanoseconds: int): moves the clock that rows time out by; for tests. See [`timer::advance`].
unsafe extern "C" fn advance_clock(_module: *mut PyObject, nanoseconds: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and one argument.
    unsafe {
        let nanoseconds = PyLong_AsUnsignedLongLong(nanoseconds);
        if !PyErr_Occurred().is_null() {
            return null_mut();
        }
        timer::advance(nanoseconds);
        none()
    }
}

unsafe extern "C" fn exec(module: *mut PyObject) -> c_int {
    // SAFETY: called by the import system with the GIL and the new module.
    unsafe {
        PyDateTime_IMPORT();
        if PyDateTimeAPI().is_null() {
            return -1;
        }
        let tables = [
            (c"TABLE", TABLE_NAME, (&raw const TABLE).cast_mut().cast::<c_void>()),
            (c"ARROYO", ARROYO_NAME, (&raw const ARROYO).cast_mut().cast()),
        ];
        for (attribute, name, table) in tables {
            let Some(capsule) = Owned::new(PyCapsule_New(table, name.as_ptr(), None)) else { return -1 };
            if PyModule_AddObjectRef(module, attribute.as_ptr(), capsule.ptr()) < 0 {
                return -1;
            }
        }
        if executor::add_types(module) && parker::add_type(module) && call_info::add_type(module) {
            0
        } else {
            -1
        }
    }
}

const fn method(name: &'static CStr, function: PyCFunction, flags: c_int) -> PyMethodDef {
    PyMethodDef { ml_name: name.as_ptr(), ml_meth: PyMethodDefPointer { PyCFunction: function }, ml_flags: flags, ml_doc: null() }
}

const fn fast(name: &'static CStr, function: PyCFunctionFast) -> PyMethodDef {
    PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: PyMethodDefPointer { PyCFunctionFast: function },
        ml_flags: METH_FASTCALL,
        ml_doc: null(),
    }
}

static mut METHODS: [PyMethodDef; 14] = [
    method(c"register", registry::register, METH_VARARGS),
    method(c"open_arroyo", imported::open_arroyo, METH_O),
    method(c"import_arroyo", imported::import_arroyo, METH_VARARGS),
    method(c"schema", foreign::schema, METH_O),
    method(c"parker", parker::parker, METH_O),
    method(c"watch", watch::watch, METH_NOARGS),
    method(c"answer", watch::answer, METH_NOARGS),
    method(c"stop_all", stop_all, METH_NOARGS),
    method(c"advance_clock", advance_clock, METH_O),
    method(c"tell_calls", call_info::tell_calls, METH_O),
    fast(c"batch", host::new_batch),
    method(c"free_batch", host::free_batch, METH_O),
    fast(c"take_child", host::take_child),
    PyMethodDef::zeroed(),
];
const END: PyModuleDef_Slot = PyModuleDef_Slot { slot: 0, value: null_mut() };
static mut SLOTS: [PyModuleDef_Slot; 3] = [END; 3];
static mut MODULE: PyModuleDef = PyModuleDef {
    m_base: PyModuleDef_HEAD_INIT,
    m_name: c"_native".as_ptr(),
    m_doc: null(),
    m_size: 0,
    m_methods: (&raw mut METHODS).cast(),
    m_slots: (&raw mut SLOTS).cast(),
    m_traverse: None,
    m_clear: None,
    m_free: None,
};

/// The slots are filled in when the module loads, not when it is compiled: 3.11 refuses numbers that it does not know, and
/// a crate without a build script cannot tell the versions apart.
///
/// # Safety
/// Called by Python's import system.
#[no_mangle]
pub unsafe extern "C" fn PyInit__native() -> *mut PyObject {
    static ONCE: Once = Once::new();
    // SAFETY: once, before anybody reads them; afterwards only Python does.
    unsafe {
        ONCE.call_once(|| {
            let slots = &raw mut SLOTS;
            (*slots)[0] = PyModuleDef_Slot { slot: Py_mod_exec, value: exec as *mut c_void };
            if Py_Version >= 0x030C_0000 {
                // Py_mod_multiple_interpreters: Py_MOD_PER_INTERPRETER_GIL_SUPPORTED
                (*slots)[1] = PyModuleDef_Slot { slot: 3, value: 2 as *mut c_void };
            }
        });
        PyModuleDef_Init(&raw mut MODULE)
    }
}
