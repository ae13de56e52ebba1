//! Helpers for the Python host beside the contract: struct arrays, which pyarrow makes at a higher cost, and the functions
//! for `arm` and `set_log` (`setup.py` declares those for cffi).

use crate::object::{none, raise, Owned};
use arroyo_udf_plugin::abi::ArrowArray;
use arroyo_udf_plugin::sync::Unpoisoned;
use pyo3_ffi::*;
use std::ffi::{c_char, c_void, CStr};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;

struct Parts {
    pointers: Vec<*mut ArrowArray>,
    children: Vec<ArrowArray>,
    no_validity: *const c_void,
}

/// A struct array with `count` empty children, contiguous in memory.
fn batch(length: i64, count: usize) -> *mut ArrowArray {
    let mut parts = Box::new(Parts {
        pointers: Vec::with_capacity(count),
        children: (0..count).map(|_| ArrowArray::empty()).collect(),
        no_validity: std::ptr::null(),
    });
    let first = parts.children.as_mut_ptr();
    parts.pointers.extend((0..count).map(|i| first.wrapping_add(i)));
    Box::into_raw(Box::new(ArrowArray {
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
    }))
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
pub unsafe extern "C" fn new_batch(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
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
        let batch = batch(length, children);
        let first = (*batch).private_data.cast::<Parts>();
        let addresses = PyTuple_New(2);
        if !addresses.is_null() {
            PyTuple_SetItem(addresses, 0, PyLong_FromVoidPtr(batch.cast()));
            let children = &mut (*first).children;
            PyTuple_SetItem(addresses, 1, PyLong_FromVoidPtr(children.as_mut_ptr().cast()));
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
        let mut batch = Box::from_raw(batch);
        if let Some(release) = batch.release {
            release(&mut *batch);
        }
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

/// Reports that the Python host has not handed on yet; later ones are dropped while there are this many.
const MOST_REPORTS: usize = 1000;
static REPORTS: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Saves `take_log` the lock when there is nothing.
static ANY_REPORTS: AtomicBool = AtomicBool::new(false);

/// The function for `set_log`. Called from any thread; takes no GIL, because the caller may hold locks that a thread with
/// the GIL waits for.
///
/// # Safety
/// `text` ends with a zero.
#[no_mangle]
pub unsafe extern "C" fn arroyo_udf_host_log(_data: *mut c_void, _level: u32, text: *const c_char) {
    let mut reports = REPORTS.lock().unpoisoned();
    if reports.len() < MOST_REPORTS {
        // SAFETY: the caller promises the zero.
        reports.push(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned());
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

/// The function for `arm`: `data` is the descriptor of an eventfd.
#[no_mangle]
pub extern "C" fn arroyo_udf_host_wake(data: *mut c_void) {
    crate::eventfd::wake(data as usize as i32);
}
