//! Owned references to Python objects, and exceptions as text. Everything here needs the GIL.

use pyo3_ffi::*;
use std::ffi::{CStr, CString};
use std::ptr::{null_mut, NonNull};

/// One reference. Its owner makes and drops it with the GIL held.
#[derive(Debug)]
pub struct Owned(NonNull<PyObject>);

impl Owned {
    /// Takes over a new reference. None: the call that should have made it has set an exception.
    ///
    /// # Safety
    /// `object` is null or a reference that the caller owns; the GIL is held.
    pub unsafe fn new(object: *mut PyObject) -> Option<Owned> {
        NonNull::new(object).map(Owned)
    }

    /// A further reference to a borrowed object.
    ///
    /// # Safety
    /// `object` is a valid object; the GIL is held.
    pub unsafe fn borrowed(object: *mut PyObject) -> Owned {
        // SAFETY: passed on.
        unsafe {
            Py_INCREF(object);
            Owned(NonNull::new_unchecked(object))
        }
    }

    pub fn ptr(&self) -> *mut PyObject {
        self.0.as_ptr()
    }

    /// Gives the reference away.
    pub fn into_ptr(self) -> *mut PyObject {
        let object = self.0.as_ptr();
        std::mem::forget(self);
        object
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: this is our reference; the GIL is held, see above.
        unsafe { Py_DECREF(self.0.as_ptr()) }
    }
}

// SAFETY: a reference may move between threads; it is only used with the GIL held.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

/// The current exception, which is cleared. None: no exception is set. Ctrl-C is noted for the host ([`crate::interrupt`]).
///
/// # Safety
/// The GIL is held.
pub unsafe fn take_exception() -> Option<Owned> {
    let (mut kind, mut value, mut traceback) = (null_mut(), null_mut(), null_mut());
    // SAFETY: the GIL is held; the three references are ours afterwards. (PyErr_GetRaisedException is not in 3.11.)
    unsafe {
        #[allow(deprecated)]
        PyErr_Fetch(&mut kind, &mut value, &mut traceback);
        if kind.is_null() {
            return None;
        }
        #[allow(deprecated)]
        PyErr_NormalizeException(&mut kind, &mut value, &mut traceback);
        if !traceback.is_null() && !value.is_null() {
            PyException_SetTraceback(value, traceback);
        }
        Py_XDECREF(kind);
        Py_XDECREF(traceback);
        let exception = Owned::new(value)?;
        crate::interrupt::note(exception.ptr());
        Some(exception)
    }
}

/// `str(object)` as Rust text.
///
/// # Safety
/// `object` is valid; the GIL is held.
pub unsafe fn text(object: *mut PyObject) -> String {
    // SAFETY: passed on; the text is copied before its object is dropped.
    unsafe {
        let Some(string) = Owned::new(PyObject_Str(object)) else {
            PyErr_Clear();
            return "an object whose str() fails".into();
        };
        let mut length = 0;
        let data = PyUnicode_AsUTF8AndSize(string.ptr(), &mut length);
        if !data.is_null() {
            return String::from_utf8_lossy(std::slice::from_raw_parts(data.cast(), length as usize)).into_owned();
        }
        PyErr_Clear();
        // It has surrogates, such as those of bytes that os.fsdecode could not read: they are written as in Python's source.
        match Owned::new(PyUnicode_AsEncodedString(string.ptr(), c"utf-8".as_ptr(), c"backslashreplace".as_ptr())) {
            Some(escaped) => {
                let bytes = std::slice::from_raw_parts(PyBytes_AsString(escaped.ptr()).cast(), PyBytes_Size(escaped.ptr()) as usize);
                String::from_utf8_lossy(bytes).into_owned()
            }
            None => {
                PyErr_Clear();
                "a text for which there is no memory".into()
            }
        }
    }
}

/// "Type: message" of an exception.
///
/// # Safety
/// `exception` is an exception; the GIL is held.
pub unsafe fn summary(exception: *mut PyObject) -> String {
    // SAFETY: passed on. A type has a name.
    let name = unsafe { type_name(exception) };
    // SAFETY: passed on.
    match unsafe { text(exception) } {
        message if message.is_empty() => name,
        message => format!("{name}: {message}"),
    }
}

/// The name of an object's type.
///
/// # Safety
/// `object` is valid; the GIL is held.
pub unsafe fn type_name(object: *mut PyObject) -> String {
    // SAFETY: a type has a NUL-terminated name.
    unsafe { CStr::from_ptr((*Py_TYPE(object)).tp_name) }.to_string_lossy().into_owned()
}

/// The current exception as "Type: message"; it is cleared.
///
/// # Safety
/// The GIL is held.
pub unsafe fn exception_text() -> String {
    // SAFETY: passed on.
    unsafe { take_exception().map_or_else(|| "an error without an exception".into(), |e| summary(e.ptr())) }
}

/// Calls a function of a Python module. None: an exception is set.
///
/// # Safety
/// The GIL is held; `arguments` are valid.
pub unsafe fn call(module: &CStr, function: &CStr, arguments: &[*mut PyObject]) -> Option<Owned> {
    // SAFETY: passed on; null results become None with the exception set.
    unsafe {
        // As `from module import function`, which finds a module that is there without a call of Python's `__import__`.
        let name = Owned::new(PyUnicode_InternFromString(function.as_ptr()))?;
        let wanted = Owned::new(PyTuple_Pack(1, name.ptr()))?;
        let module = Owned::new(PyImport_ImportModuleLevel(module.as_ptr(), null_mut(), null_mut(), wanted.ptr(), 0))?;
        let function = Owned::new(PyObject_GetAttr(module.ptr(), name.ptr()))?;
        Owned::new(crate::gil::vectorcall(function.ptr(), arguments.as_ptr(), arguments.len(), null_mut()))
    }
}

/// Calls a method with one argument. None: an exception is set.
///
/// # Safety
/// The GIL is held; both objects are valid.
pub unsafe fn call_method(object: *mut PyObject, method: &CStr, argument: *mut PyObject) -> Option<Owned> {
    // SAFETY: passed on; null results become None with the exception set.
    unsafe {
        let name = Owned::new(PyUnicode_FromString(method.as_ptr()))?;
        Owned::new(PyObject_CallMethodOneArg(object, name.ptr(), argument))
    }
}

/// An address as a Python int.
///
/// # Safety
/// The GIL is held.
pub unsafe fn address<T>(pointer: *const T) -> Option<Owned> {
    // SAFETY: passed on.
    unsafe { Owned::new(PyLong_FromSize_t(pointer as usize)) }
}

/// Sets an exception and answers null, for functions that Python calls.
///
/// # Safety
/// The GIL is held; `kind` is an exception type.
pub unsafe fn raise(kind: *mut PyObject, text: &str) -> *mut PyObject {
    let text = CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
    // SAFETY: passed on.
    unsafe { PyErr_SetString(kind, text.as_ptr()) };
    null_mut()
}

/// A new reference to None.
///
/// # Safety
/// The GIL is held.
pub unsafe fn none() -> *mut PyObject {
    // SAFETY: None always exists.
    unsafe {
        let none = Py_None();
        Py_INCREF(none);
        none
    }
}
