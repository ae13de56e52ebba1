//! Helpers for the Python host beside the contract: struct arrays, which pyarrow makes at a higher cost, and the function
//! for `set_log` (`setup.py` declares it for cffi).

use crate::gil;
use crate::object::{none, raise, Owned};
use arroyo_udf_plugin::abi::{ArrowArray, ArrowSchema, Error, RunFn, Status, OK};
use arroyo_udf_plugin::sync::Unpoisoned;
use pyo3_ffi::*;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;

struct Parts {
    pointers: Vec<*mut ArrowArray>,
    children: Vec<ArrowArray>,
    no_validity: *const c_void,
}

/// A struct array with `count` empty children, contiguous in memory; and the first of them.
pub fn new_batch(length: i64, count: usize) -> (*mut ArrowArray, *mut ArrowArray) {
    let mut parts = Box::new(Parts {
        pointers: Vec::with_capacity(count),
        children: (0..count).map(|_| ArrowArray::empty()).collect(),
        no_validity: std::ptr::null(),
    });
    let first = parts.children.as_mut_ptr();
    parts.pointers.extend((0..count).map(|i| first.wrapping_add(i)));
    let batch = ArrowArray {
        length,
        null_count: 0,
        offset: 0,
        n_buffers: 1,
        n_children: count as i64,
        buffers: &raw mut parts.no_validity,
        children: parts.pointers.as_mut_ptr(),
        dictionary: null_mut(),
        release: Some(release_batch),
        private_data: Box::into_raw(parts).cast(),
    };
    (Box::into_raw(Box::new(batch)), first)
}

/// Frees what `new_batch` has made, and releases what has not moved out of it.
///
/// # Safety
/// `batch` is such an array; this happens once.
pub unsafe fn free(batch: *mut ArrowArray) {
    // SAFETY: passed on.
    unsafe {
        let mut batch = Box::from_raw(batch);
        if let Some(release) = batch.release {
            release(&mut *batch);
        }
    }
}

unsafe extern "C" fn release_batch(array: *mut ArrowArray) {
    // SAFETY: `private_data` is the box made above; `release` is reset, so this happens once. Children that were never
    // filled, or were moved out, have a null release.
    unsafe {
        let mut parts = Box::from_raw((*array).private_data.cast::<Parts>());
        for child in &mut parts.children {
            if let Some(release) = child.release {
                release(child);
            }
        }
        (*array).release = None;
    }
}

/// batch(length: int, children: int) -> tuple[int, int]: addresses of a new struct ArrowArray and of its first child. The
/// children are empty and contiguous, so that pyarrow exports columns right into them.
pub unsafe extern "C" fn batch(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and `count` arguments.
    unsafe {
        if count != 2 {
            return raise(PyExc_TypeError, "batch() takes a length and a number of children");
        }
        let (length, children) = (PyLong_AsLongLong(*arguments), PyLong_AsLongLong(*arguments.add(1)));
        if !PyErr_Occurred().is_null() {
            return null_mut();
        }
        let Some(children) = usize::try_from(children).ok().filter(|_| length >= 0) else {
            return raise(PyExc_ValueError, "batch() takes numbers from 0 on");
        };
        let (batch, child) = new_batch(length, children);
        let addresses = Py_BuildValue(c"(nn)".as_ptr(), batch as Py_ssize_t, child as Py_ssize_t);
        if addresses.is_null() {
            free(batch);
        }
        addresses
    }
}

/// free_batch(address: int): frees what `batch` made, and releases what has not moved out of it.
pub unsafe extern "C" fn free_batch(_module: *mut PyObject, address: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL; the host passes an address from `batch`, once.
    unsafe {
        let batch = PyLong_AsVoidPtr(address).cast::<ArrowArray>();
        if batch.is_null() {
            return raise(PyExc_ValueError, "free_batch() takes what batch() answered");
        }
        free(batch);
        none()
    }
}

/// taken(address: int) -> bool: whether a plugin has taken what `batch` made; then only its shell is left, and freed. False,
/// with nothing done: the plugin has not.
pub unsafe extern "C" fn taken(_module: *mut PyObject, address: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL; the host passes an address from `batch`, once after the answer true.
    unsafe {
        let batch = PyLong_AsVoidPtr(address).cast::<ArrowArray>();
        if batch.is_null() {
            return raise(PyExc_ValueError, "taken() takes what batch() answered");
        }
        let taken = (*batch).release.is_none();
        if taken {
            drop(Box::from_raw(batch));
        }
        PyBool_FromLong(taken.into())
    }
}

/// The out-parameters of a call, as the host lays them out in memory; and its status.
#[repr(C)]
pub struct Outputs {
    array: ArrowArray,
    schema: *const ArrowSchema,
    pub error: Error,
    status: Status,
}

/// run(slot: int, function: int, batch: int, outputs: int) -> int | None: calls the slot `run` of a plugin without the GIL, as
/// cffi does at a higher cost. Answers the address of the results' schema, and frees the shell of the batch. None: the plugin
/// has not taken the batch, or has not answered OK; the outputs have the status.
pub unsafe extern "C" fn run(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and `count` arguments: the address of the slot, one from `export`, and that of
    // outputs, which no other call uses.
    unsafe {
        if count != 4 {
            return raise(PyExc_TypeError, "run() takes a slot, a function, a batch and outputs");
        }
        let slot = PyLong_AsVoidPtr(*arguments);
        let function = PyLong_AsUnsignedLong(*arguments.add(1)) as u32;
        let batch = PyLong_AsVoidPtr(*arguments.add(2)).cast::<ArrowArray>();
        let outputs = PyLong_AsVoidPtr(*arguments.add(3)).cast::<Outputs>();
        if !PyErr_Occurred().is_null() {
            return null_mut();
        }
        if slot.is_null() || batch.is_null() || outputs.is_null() {
            return raise(PyExc_ValueError, "run() takes addresses");
        }
        let slot = std::mem::transmute::<*mut c_void, RunFn>(slot);
        let (array, schema, error) = (&raw mut (*outputs).array, &raw mut (*outputs).schema, &raw mut (*outputs).error);
        let status = gil::without(|| slot(function, batch, std::ptr::null(), array, schema, error));
        (*outputs).status = status;
        if status != OK || (*batch).release.is_some() {
            return none();
        }
        drop(Box::from_raw(batch)); // only its shell is left
        PyLong_FromVoidPtr((*outputs).schema.cast_mut().cast())
    }
}

/// Reports that the Python host has not handed on yet; later ones are dropped while there are this many.
const MOST_REPORTS: usize = 1000;
/// Bytes of a report that are read.
const LONGEST_REPORT: usize = 1 << 16;
static REPORTS: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Saves `take_log` the lock when there is nothing.
static ANY_REPORTS: AtomicBool = AtomicBool::new(false);

/// The function for `set_log`. Called from any thread; takes no GIL, because the caller may hold locks that a thread with
/// the GIL waits for.
///
/// # Safety
/// `text` is null, or ends with a zero, or is longer than [`LONGEST_REPORT`].
#[no_mangle]
pub unsafe extern "C" fn arroyo_udf_host_log(_data: *mut c_void, _level: u32, text: *const c_char) {
    if text.is_null() {
        return;
    }
    let mut reports = REPORTS.lock().unpoisoned();
    if reports.len() < MOST_REPORTS {
        // SAFETY: the caller promises so many bytes, unless a zero comes before.
        let text = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), libc::strnlen(text, LONGEST_REPORT)) };
        reports.push(String::from_utf8_lossy(text).into_owned());
        ANY_REPORTS.store(true, Ordering::Release);
    }
}

/// take_log() -> list[str] | None: the reports since the last call; None: there are none.
pub unsafe extern "C" fn take_log(_module: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL.
    unsafe {
        if !ANY_REPORTS.load(Ordering::Relaxed) || !ANY_REPORTS.swap(false, Ordering::Acquire) {
            return none();
        }
        let reports = std::mem::take(&mut *REPORTS.lock().unpoisoned());
        let Some(list) = Owned::new(PyList_New(0)) else { return null_mut() };
        for report in reports {
            let text = Owned::new(PyUnicode_FromStringAndSize(report.as_ptr().cast(), report.len() as Py_ssize_t));
            if text.is_none_or(|text| PyList_Append(list.ptr(), text.ptr()) < 0) {
                return null_mut();
            }
        }
        list.into_ptr()
    }
}
