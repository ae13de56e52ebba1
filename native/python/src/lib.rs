//! `arroyo_udf_plugin._native`: Python functions behind the C table. Raw CPython API, multi-phase initialisation, one
//! build per Python version.
//!
//! | module          | what it does                                                                |
//! |-----------------|-----------------------------------------------------------------------------|
//! | [`gil`]         | takes the GIL where CPython may end the thread instead                      |
//! | [`interpreter`] | the interpreters, and entering them from any thread, until they end         |
//! | [`interrupt`]   | Ctrl-C on its way from a plugin to the host                                 |
//! | [`object`]      | references and exceptions; [`heap`]: types with a Rust body                 |
//! | [`modules`]     | names the Python halves; [`traceback`]: exceptions of user code as text     |
//! | [`eventfd`]     | wakes an event loop from any thread                                         |
//! | [`values`]      | values between Arrow and Python                                             |
//! | [`state`]       | what the module keeps for each interpreter                                  |
//! | [`described`]   | a plugin's descriptor, for Python code                                      |
//! | [`function`]    | a user's function; [`registry`]: the functions that plugins have registered |
//! | [`pyarrow`]     | values that go through pyarrow                                              |
//! | [`calls`]       | a row -> a call; [`outcome`]: what the call returned -> the row's outcome   |
//! | [`micro_batch`] | the rows of an attempt <-> one call                                         |
//! | [`call_info`]   | what a call can ask about itself                                            |
//! | [`sync`]        | `run`: a batch row by row, or whole                                         |
//! | [`blocking`]    | runs a row in a thread of the pool                                          |
//! | [`asyncio`]     | runs rows on the event loop                                                 |
//! | [`starting`]    | `start`: gives a runtime its executor                                       |
//! | [`imported`]    | functions of libraries built for Arroyo                                     |
//! | [`handlers`]    | the host's handlers of signals, while a call waits for workers              |
//! | [`subinterpreter`] | plugins in subinterpreters: opened by a host                             |
//! | [`process`]     | worker processes: opened by a host, and their life                          |
//! | [`opener`]      | the same for hosts that are not Python                                       |
//! | [`host`]        | helpers for the Python host                                                 |
//! | [`waiters`]     | who waits for a runtime                                                     |
//! | [`columns`]     | the columns of a call from the Python host                                  |
//! | [`ledger`]      | the ids that a runtime was sent and has not answered                        |
//! | [`results`]     | the results of a plugin, checked before pyarrow reads them                  |
//! | [`signals`]     | ends a process that was asked to end and cannot                             |
//! | [`crashes`]     | names the function during whose run the process has crashed                 |
//! | [`sql`]         | functions of SQL over columns                                               |
//!
//! Modules use only those above them.
//!
//! A Python plugin takes the table from the capsule `TABLE` (or `ARROYO`, for the Arroyo engine) and forwards its calls to
//! it. It adds the base that `register` answered to its function numbers.

mod asyncio;
mod blocking;
mod call_info;
mod calls;
mod columns;
mod crashes;
mod described;
mod eventfd;
mod forked;
mod function;
mod gil;
mod handlers;
mod heap;
mod host;
mod imported;
mod interpreter;
mod interrupt;
mod ledger;
mod micro_batch;
mod modules;
mod object;
mod opener;
mod outcome;
mod process;
mod pyarrow;
mod registry;
mod results;
mod signals;
mod sql;
mod starting;
mod state;
mod subinterpreter;
mod sync;
mod traceback;
mod values;
mod waiters;

use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::arrow::Batch;
use arroyo_udf_plugin::arroyo;
use arroyo_udf_plugin::exports::{self, Plugin, Ran};
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::isolation;
use arroyo_udf_plugin::limits;
use arroyo_udf_plugin::runtime::Runtime;
use arroyo_udf_plugin::signature::Signature;
use arroyo_udf_plugin::threads;
use arroyo_udf_plugin::timer;
use interpreter::Interpreter;
use object::{none, Owned};
use pyo3_ffi::*;
use std::ffi::{c_int, c_void, CStr};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Once};
use std::time::Duration;

/// All Python plugins of the process, behind one table.
struct Core;

impl Plugin for Core {
    /// Each plugin describes itself.
    fn describe() -> *const abi::Descriptor {
        null()
    }

    fn signature(function: u32) -> Result<&'static Signature, Failure> {
        registry::get(function).map(|function| function.signature)
    }

    fn run(function: u32, batch: &Arc<Batch>) -> Result<Ran, Failure> {
        let function = registry::get(function)?;
        sync::check_timeout(function.signature)?;
        // SAFETY: the GIL is held inside; the batch was checked against this function's signature.
        function.state.interpreter.enter(|| unsafe { sync::run(&function, batch) })?
    }

    fn start(function: u32, runtime: &Arc<Runtime>) -> Result<(), Failure> {
        starting::start(Interpreter::main(), &Arc::downgrade(&registry::get(function)?), runtime)
    }

    fn extension(id: &CStr) -> *const c_void {
        opener::extension(id)
    }
}

static TABLE: abi::Table = exports::table::<Core>();
const TABLE_NAME: &CStr = c"arroyo_udf_plugin._native.TABLE";
/// The same functions behind Arroyo's interface.
static ARROYO: arroyo::Symbols = arroyo::symbols::<Core>();
const ARROYO_NAME: &CStr = c"arroyo_udf_plugin._native.ARROYO";

/// How long runtimes, and then threads inside Python, may take to end before the interpreter does (R18).
const EXIT_TIME: Duration = Duration::from_secs(1);

/// stop_all(): stops every runtime, then lets no thread into Python any more (R18). Call it before the main interpreter
/// ends; further calls do nothing, and neither do those in subinterpreters.
unsafe extern "C" fn stop_all(module: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    static STOPPED: Once = Once::new();
    // SAFETY: called by Python with the GIL, which is given back while other threads finish.
    unsafe {
        let mut first = false;
        let interpreter = &state::of(module).interpreter;
        if interpreter.is_main() {
            STOPPED.call_once(|| first = true);
        }
        if first {
            gil::without(|| {
                exports::stop_all(EXIT_TIME);
                subinterpreter::begin_exit(EXIT_TIME);
                isolation::close_all();
                subinterpreter::end_all();
            });
            if object::call(modules::EXECUTOR, c"stop_loop", &[]).is_none() {
                PyErr_Clear(); // the module cannot be imported: no loop has started
            }
            gil::without(|| interpreter.close(EXIT_TIME));
        }
        none()
    }
}

/// know_thread(): this thread, which Python has made, is one of the toolkit's, and its stack may be asked for.
unsafe extern "C" fn know_thread(module: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    threads::adopt();
    // SAFETY: called by Python with the GIL and the module.
    unsafe {
        state::of(module).interpreter.know(PyThreadState_Get());
        none()
    }
}

/// as_host(function, arguments: tuple, keywords: dict): calls what starts a program, which gets the host's mask of signals.
unsafe extern "C" fn as_host(_module: *mut PyObject, arguments: *mut PyObject) -> *mut PyObject {
    let (mut function, mut positional, mut keywords) = (null_mut(), null_mut(), null_mut());
    // SAFETY: called by Python with the GIL; the format names the types of the variables, which are borrowed.
    unsafe {
        let format = c"OO!O!:as_host".as_ptr();
        let (tuple, dict) = (&raw mut PyTuple_Type, &raw mut PyDict_Type);
        if PyArg_ParseTuple(arguments, format, &mut function, tuple, &mut positional, dict, &mut keywords) == 0 {
            return null_mut();
        }
        threads::as_host(|| PyObject_Call(function, positional, keywords))
    }
}

/// forget_thread(): the thread ends.
unsafe extern "C" fn forget_thread(module: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and the module.
    unsafe {
        state::of(module).interpreter.forget(PyThreadState_Get());
        none()
    }
}

/// frame(ident: int) -> frame | None: what a thread executes that the toolkit knows. See [`Interpreter::frame`].
unsafe extern "C" fn frame(module: *mut PyObject, ident: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL, the module and one argument.
    unsafe {
        let ident = PyLong_AsUnsignedLongLong(ident);
        if !PyErr_Occurred().is_null() {
            return null_mut();
        }
        let frame = state::of(module).interpreter.frame(ident).cast::<PyObject>();
        if frame.is_null() {
            none()
        } else {
            frame
        }
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

/// The time limits of a Context, for the Python half of the asyncio executor; statuses, for code without cffi. False: an
/// exception is set.
unsafe fn add_constants(module: *mut PyObject) -> bool {
    let texts = [
        (c"INIT_TOOK_TOO_LONG", limits::init_took_too_long(limits::INIT_TIME)),
        (c"CLOSE_TOOK_TOO_LONG", limits::close_took_too_long(limits::CLOSE_TIME)),
    ];
    let statuses = [(c"ENVIRONMENT", abi::ENVIRONMENT), (c"USER_CODE", abi::USER_CODE), (c"OUT_OF_MEMORY", abi::OUT_OF_MEMORY)];
    // SAFETY: the GIL is held, in the module's exec; the module gets its own references.
    unsafe {
        let add =
            |name: &CStr, value| Owned::new(value).is_some_and(|value| PyModule_AddObjectRef(module, name.as_ptr(), value.ptr()) == 0);
        add(c"INIT_SECONDS", PyFloat_FromDouble(limits::INIT_TIME.as_secs_f64()))
            && add(c"CLOSE_SECONDS", PyFloat_FromDouble(limits::CLOSE_TIME.as_secs_f64()))
            && add(c"GRACE_SECONDS", PyFloat_FromDouble(limits::GRACE.as_secs_f64()))
            && statuses.iter().all(|(name, status)| add(name, PyLong_FromLong((*status).into())))
            && texts.iter().all(|(name, text)| add(name, PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as Py_ssize_t)))
    }
}

unsafe extern "C" fn exec(module: *mut PyObject) -> c_int {
    // SAFETY: called by the import system with the GIL and the new module.
    unsafe {
        state::fill(module);
        // One for all interpreters: its types are static, and its UTC is immortal. Checked, because that is CPython's choice.
        PyDateTime_IMPORT();
        let own = PyCapsule_Import(c"datetime.datetime_CAPI".as_ptr(), 0).cast::<PyDateTime_CAPI>();
        if own.is_null() || PyDateTimeAPI().is_null() {
            return -1;
        }
        if (*own).DateType != (*PyDateTimeAPI()).DateType || (*own).TimeZone_UTC != (*PyDateTimeAPI()).TimeZone_UTC {
            object::raise(PyExc_ImportError, "datetime has other types in this interpreter than in the main one");
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
        if add_constants(module) && asyncio::add_types(module) && call_info::add_type(module) {
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

static mut METHODS: [PyMethodDef; 55] = [
    method(c"described", described::described, METH_O),
    method(c"register", registry::register, METH_VARARGS),
    method(c"open_arroyo", imported::open_arroyo, METH_O),
    method(c"import_arroyo", imported::import_arroyo, METH_VARARGS),
    method(c"open_processes", process::open_processes, METH_VARARGS),
    method(c"open_subinterpreters", subinterpreter::open_subinterpreters, METH_VARARGS),
    method(c"close_instance", process::close_instance, METH_VARARGS),
    method(c"work", process::work, METH_NOARGS),
    method(c"schema", pyarrow::schema, METH_O),
    fast(c"settle", pyarrow::settle),
    method(c"watch", asyncio::watch, METH_NOARGS),
    method(c"know_thread", know_thread, METH_NOARGS),
    method(c"forget_thread", forget_thread, METH_NOARGS),
    method(c"as_host", as_host, METH_VARARGS),
    method(c"frame", frame, METH_O),
    method(c"answer", asyncio::answer, METH_NOARGS),
    method(c"stop_all", stop_all, METH_NOARGS),
    method(c"advance_clock", advance_clock, METH_O),
    method(c"set_call_variable", call_info::set_call_variable, METH_O),
    fast(c"batch", host::batch),
    method(c"free_batch", host::free_batch, METH_O),
    fast(c"columns", columns::columns),
    fast(c"fit", columns::fit),
    fast(c"export", columns::export),
    fast(c"run", host::run),
    method(c"take_log", host::take_log, METH_NOARGS),
    method(c"raise_interrupts", interrupt::raise_interrupts, METH_O),
    method(c"note_interrupt", pyarrow::note_interrupt, METH_O),
    method(c"take_interrupt", interrupt::take_interrupt, METH_NOARGS),
    method(c"watch_signals", signals::watch_signals, METH_VARARGS),
    method(c"say_stopped", signals::say_stopped, METH_O),
    method(c"name_in_crash", crashes::name_in_crash, METH_O),
    method(c"remove_at_exit", signals::remove_at_exit, METH_O),
    method(c"keep_at_exit", signals::keep_at_exit, METH_O),
    method(c"taken", host::taken, METH_O),
    method(c"ledger", ledger::ledger, METH_O),
    fast(c"begin_send", ledger::begin_send),
    fast(c"end_send", ledger::end_send),
    method(c"missing", ledger::missing, METH_O),
    method(c"named_missing", ledger::named_missing, METH_O),
    method(c"sends", ledger::sends, METH_O),
    method(c"layout", results::layout, METH_O),
    fast(c"check_run", results::check_run),
    fast(c"check_drained", results::check_drained),
    fast(c"waiters", waiters::waiters),
    fast(c"sleep", waiters::sleep),
    fast(c"arm", waiters::arm),
    fast(c"leave", waiters::leave),
    method(c"close_waiters", waiters::close_waiters, METH_O),
    fast(c"json_function", sql::json_function),
    fast(c"json_answers", sql::json_answers),
    fast(c"json_reader", sql::json_reader),
    fast(c"json_rows", sql::json_rows),
    fast(c"multi_hash", sql::multi_hash),
    PyMethodDef::zeroed(),
];
const END: PyModuleDef_Slot = PyModuleDef_Slot { slot: 0, value: null_mut() };
static mut SLOTS: [PyModuleDef_Slot; 3] = [END; 3];
static mut MODULE: PyModuleDef = PyModuleDef {
    m_base: PyModuleDef_HEAD_INIT,
    m_name: c"_native".as_ptr(),
    m_doc: null(),
    m_size: state::SIZE,
    m_methods: (&raw mut METHODS).cast(),
    m_slots: (&raw mut SLOTS).cast(),
    m_traverse: Some(state::traverse),
    m_clear: Some(state::clear),
    m_free: Some(state::free),
};

/// Fills the module's slots when it is loaded, not when it is compiled: 3.11 refuses slot numbers that it does not know, and
/// a crate without a build script cannot tell the versions apart.
///
/// # Safety
/// Called by Python's import system.
#[no_mangle]
pub unsafe extern "C" fn PyInit__native() -> *mut PyObject {
    static ONCE: Once = Once::new();
    // SAFETY: written once, before Python reads them; never written again.
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
