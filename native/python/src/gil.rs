//! Taking the GIL where CPython may end the thread instead: up to 3.13, it unwinds a thread that asks for the GIL of an
//! interpreter which ends, and the process would abort at our frames.
//!
//! Guarantees (R18): such a thread is held for ever ([`held`]), as later versions of CPython do themselves.

use pyo3_ffi::*;

mod unwinding {
    use pyo3_ffi::{PyGILState_STATE, PyObject, PySendResult, PyThreadState};

    pub type Vectorcall = unsafe extern "C-unwind" fn(*mut PyObject, *const *mut PyObject, usize, *mut PyObject) -> *mut PyObject;

    // As in pyo3_ffi, but declared to unwind; otherwise no frame of ours could stop it.
    extern "C-unwind" {
        pub fn PyObject_Vectorcall(
            callable: *mut PyObject,
            arguments: *const *mut PyObject,
            count: usize,
            names: *mut PyObject,
        ) -> *mut PyObject;
        pub fn PyObject_Call(callable: *mut PyObject, arguments: *mut PyObject, named: *mut PyObject) -> *mut PyObject;
        pub fn PyIter_Send(iterator: *mut PyObject, value: *mut PyObject, result: *mut *mut PyObject) -> PySendResult;
        pub fn PyGILState_Ensure() -> PyGILState_STATE;
        pub fn PyEval_RestoreThread(state: *mut PyThreadState);
    }
}

/// Runs `body`, which takes the GIL. If CPython unwinds the thread, it stays here for ever.
fn held<R>(body: impl FnOnce() -> R) -> R {
    struct Rest;
    impl Drop for Rest {
        fn drop(&mut self) {
            loop {
                // SAFETY: it only waits. This thread holds no lock of ours where it takes the GIL.
                unsafe { libc::pause() };
            }
        }
    }
    let rest = Rest;
    let result = body();
    std::mem::forget(rest);
    result
}

/// PyObject_Vectorcall: enters user code, which may give the GIL back and take it again.
///
/// # Safety
/// As for PyObject_Vectorcall.
pub unsafe fn vectorcall(callable: *mut PyObject, arguments: *const *mut PyObject, count: usize, names: *mut PyObject) -> *mut PyObject {
    // SAFETY: passed on.
    held(|| unsafe { unwinding::PyObject_Vectorcall(callable, arguments, count, names) })
}

/// PyObject_Call with a tuple of arguments: enters user code, as [`vectorcall`].
///
/// # Safety
/// As for PyObject_Call.
pub unsafe fn call(callable: *mut PyObject, arguments: *mut PyObject) -> *mut PyObject {
    // SAFETY: passed on.
    held(|| unsafe { unwinding::PyObject_Call(callable, arguments, std::ptr::null_mut()) })
}

/// PyIter_Send: resumes a coroutine, and so enters user code, as [`vectorcall`].
///
/// # Safety
/// As for PyIter_Send.
pub unsafe fn iter_send(iterator: *mut PyObject, value: *mut PyObject, result: &mut *mut PyObject) -> PySendResult {
    // SAFETY: passed on.
    held(|| unsafe { unwinding::PyIter_Send(iterator, value, result) })
}

/// How a callable is called again and again.
#[derive(Clone, Copy)]
pub struct Entry(unwinding::Vectorcall);

impl Entry {
    /// That of a Python function is its own: PyObject_Vectorcall looks for it, and checks what it answers, at each call.
    ///
    /// # Safety
    /// The GIL is held; `callable` is valid.
    pub unsafe fn of(callable: *mut PyObject) -> Entry {
        // SAFETY: passed on. Both types are those of C functions that take and answer the same; one of them may unwind.
        unsafe {
            let own = if PyFunction_Check(callable) != 0 { PyVectorcall_Function(callable) } else { None };
            Entry(own.map_or(unwinding::PyObject_Vectorcall, |own| std::mem::transmute::<vectorcallfunc, unwinding::Vectorcall>(own)))
        }
    }

    /// Enters user code, which may give the GIL back and take it again.
    ///
    /// # Safety
    /// As for PyObject_Vectorcall, without names; `callable` is the one that this entry is of.
    #[inline]
    pub unsafe fn call(self, callable: *mut PyObject, arguments: *const *mut PyObject, count: usize) -> *mut PyObject {
        // SAFETY: passed on.
        held(|| unsafe { self.0(callable, arguments, count, std::ptr::null_mut()) })
    }
}

/// PyGILState_Ensure.
///
/// # Safety
/// The main interpreter is up.
pub unsafe fn ensure() -> PyGILState_STATE {
    // SAFETY: passed on.
    held(|| unsafe { unwinding::PyGILState_Ensure() })
}

/// PyEval_RestoreThread.
///
/// # Safety
/// The thread state is one of an interpreter that is up, and no thread uses it.
pub unsafe fn restore(state: *mut PyThreadState) {
    // SAFETY: passed on.
    held(|| unsafe { unwinding::PyEval_RestoreThread(state) })
}

/// Runs `body` without the GIL. Called with it.
///
/// # Safety
/// The GIL is held, and `body` touches no Python object.
pub unsafe fn without<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: passed on.
    unsafe {
        let state = PyEval_SaveThread();
        let result = body();
        restore(state);
        result
    }
}
