//! Waiting for a started function: what `host/waiters.py` does in threads and in event loops.
//!
//! A runtime has one `arm`, and any number of waiters. Each sleeps on an eventfd of its own. The latest has armed its eventfd
//! for the conditions of all. A waiter that wakes or gives up wakes the others; they check again and, if necessary, arm again.
//! So no condition is missed, and a superfluous wake-up costs one check.
//!
//! A thread waits in one piece without the GIL: beside a busy event loop, taking the GIL back costs more than all the rest.

use crate::eventfd::{self, EventFd};
use crate::gil;
use crate::host::Outputs;
use crate::object::{none, raise};
use arroyo_udf_plugin::abi::{ArmFn, Error, Handle, Status, WaitFn, OK, WOULD_BLOCK};
use arroyo_udf_plugin::sync::Unpoisoned;
use pyo3_ffi::*;
use std::ffi::{c_int, c_void, CStr};
use std::ptr::null_mut;
use std::sync::Mutex;

struct Waiters {
    wait: WaitFn,
    arm: ArmFn,
    handle: Handle,
    /// The descriptors and conditions of those for whom the latest one has armed. Nobody takes the GIL with this lock.
    armed: Mutex<Vec<(c_int, u32)>>,
    places: Mutex<Places>,
}

/// The eventfds. Nobody sleeps with this lock.
#[derive(Default)]
struct Places {
    free: Vec<EventFd>,
    taken: Vec<EventFd>,
    is_closed: bool,
}

impl Places {
    /// None: errno says why the system refuses an eventfd.
    fn take(&mut self) -> Option<c_int> {
        let place = self.free.pop().or_else(EventFd::new)?;
        let descriptor = place.descriptor();
        self.taken.push(place);
        Some(descriptor)
    }

    fn give_back(&mut self, descriptor: c_int) {
        let Some(at) = self.taken.iter().position(|place| place.descriptor() == descriptor) else { return };
        let place = self.taken.swap_remove(at);
        if !self.is_closed {
            place.clear();
            self.free.push(place);
        }
    }
}

/// Which slot has answered a status that ends a wait.
enum Answer {
    Wait(Status),
    Arm(Status),
}

// The functions below call into a plugin, which need not keep the contract: without the GIL, and with out-parameters that are
// alive until they return.

impl Waiters {
    unsafe fn holds(&self, condition: u32, error: *mut Error) -> Status {
        // SAFETY: see above.
        unsafe { (self.wait)(self.handle, condition, 0, error) }
    }

    /// OK: the descriptor becomes readable when it is time to check again.
    unsafe fn arm(&self, condition: u32, descriptor: c_int, error: *mut Error) -> Status {
        let mut armed = self.armed.lock().unpoisoned();
        armed.push((descriptor, condition));
        let every = armed.iter().fold(0, |every, (_, condition)| every | condition);
        // SAFETY: see above. The descriptor stays open until the runtime is released.
        unsafe { (self.arm)(self.handle, every, Some(wake), descriptor as usize as *mut c_void, error) }
    }

    fn leave(&self, descriptor: c_int) {
        for (other, _) in self.armed.lock().unpoisoned().drain(..).filter(|(other, _)| *other != descriptor) {
            eventfd::wake(other);
        }
    }

    unsafe fn sleep(&self, condition: u32, descriptor: c_int, milliseconds: c_int, error: *mut Error) -> Answer {
        // SAFETY: passed on.
        unsafe {
            let status = self.holds(condition, error);
            if status != WOULD_BLOCK {
                return Answer::Wait(status);
            }
            let status = self.arm(condition, descriptor, error);
            if status == OK {
                let mut watched = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
                libc::poll(&raw mut watched, 1, milliseconds); // a signal ends it, too
            }
            self.leave(descriptor);
            if status == OK {
                Answer::Wait(self.holds(condition, error))
            } else {
                Answer::Arm(status)
            }
        }
    }
}

/// What `arm` is given: `data` is the descriptor of an eventfd.
unsafe extern "C" fn wake(data: *mut c_void) {
    eventfd::wake(data as usize as c_int);
}

// ---- For Python ----

const WAITERS: &CStr = c"arroyo_udf_plugin._native.Waiters";

/// None: an exception is set.
unsafe fn waiters_of<'a>(capsule: *mut PyObject) -> Option<&'a Waiters> {
    // SAFETY: the name says that the capsule comes from `waiters`; the caller keeps it.
    unsafe { PyCapsule_GetPointer(capsule, WAITERS.as_ptr()).cast::<Waiters>().as_ref() }
}

unsafe extern "C" fn free(capsule: *mut PyObject) {
    // SAFETY: Python calls this once, when no reference is left; the capsule holds the box of `waiters`.
    unsafe { drop(Box::from_raw(PyCapsule_GetPointer(capsule, WAITERS.as_ptr()).cast::<Waiters>())) };
}

/// waiters(wait: int, arm: int, handle: int) -> Waiters: for a runtime. wait, arm: the addresses of its plugin's slots.
pub unsafe extern "C" fn waiters(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and `count` arguments: the addresses of two slots and a handle of that plugin.
    unsafe {
        if count != 3 {
            return raise(PyExc_TypeError, "waiters() takes two slots and a handle");
        }
        let (wait, arm) = (PyLong_AsVoidPtr(*arguments), PyLong_AsVoidPtr(*arguments.add(1)));
        let handle = PyLong_AsUnsignedLongLong(*arguments.add(2));
        if !PyErr_Occurred().is_null() {
            return null_mut();
        }
        if wait.is_null() || arm.is_null() {
            return raise(PyExc_ValueError, "waiters() takes addresses");
        }
        let waiters = Box::new(Waiters {
            wait: std::mem::transmute::<*mut c_void, WaitFn>(wait),
            arm: std::mem::transmute::<*mut c_void, ArmFn>(arm),
            handle,
            armed: Mutex::default(),
            places: Mutex::default(),
        });
        PyCapsule_New(Box::into_raw(waiters).cast(), WAITERS.as_ptr(), Some(free))
    }
}

/// The waiters, a condition, and where the plugin writes an error. None: an exception is set.
unsafe fn who_waits<'a>(arguments: *mut *mut PyObject, outputs: usize) -> Option<(&'a Waiters, u32, *mut Error)> {
    // SAFETY: the GIL is held; `outputs` is the place of the address of outputs, which no other call uses.
    unsafe {
        let condition = PyLong_AsUnsignedLong(*arguments.add(1)) as u32;
        let outputs = PyLong_AsVoidPtr(*arguments.add(outputs)).cast::<Outputs>();
        if !PyErr_Occurred().is_null() {
            return None;
        }
        if outputs.is_null() {
            raise(PyExc_ValueError, "pass the address of outputs");
            return None;
        }
        Some((waiters_of(*arguments)?, condition, &raw mut (*outputs).error))
    }
}

/// sleep(waiters, condition: int, milliseconds: int, outputs: int) -> tuple[str, int]: until the condition holds, or might, or
/// the time is over. Answers the slot whose answer ends that, "wait" or "arm", and its status.
pub unsafe extern "C" fn sleep(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and `count` arguments, which keeps them.
    unsafe {
        if count != 4 {
            return raise(PyExc_TypeError, "sleep() takes waiters, a condition, milliseconds and outputs");
        }
        let Some((waiters, condition, error)) = who_waits(arguments, 3) else { return null_mut() };
        let milliseconds = PyLong_AsLong(*arguments.add(2));
        if !PyErr_Occurred().is_null() {
            return null_mut();
        }
        let answer = if milliseconds == 0 {
            Answer::Wait(gil::without(|| waiters.holds(condition, error)))
        } else {
            let Some(descriptor) = waiters.places.lock().unpoisoned().take() else { return PyErr_SetFromErrno(PyExc_OSError) };
            let milliseconds = c_int::try_from(milliseconds).unwrap_or(c_int::MAX);
            let answer = gil::without(|| waiters.sleep(condition, descriptor, milliseconds, error));
            waiters.places.lock().unpoisoned().give_back(descriptor);
            answer
        };
        let (slot, status) = match answer {
            Answer::Wait(status) => (c"wait", status),
            Answer::Arm(status) => (c"arm", status),
        };
        Py_BuildValue(c"(si)".as_ptr(), slot.as_ptr(), status)
    }
}

/// arm(waiters, condition: int, outputs: int) -> tuple[int, int]: for a waiter in an event loop. Answers the status of the slot,
/// and the descriptor that becomes readable when it is time to check again. `leave` follows.
pub unsafe extern "C" fn arm(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and `count` arguments, which keeps them.
    unsafe {
        if count != 3 {
            return raise(PyExc_TypeError, "arm() takes waiters, a condition and outputs");
        }
        let Some((waiters, condition, error)) = who_waits(arguments, 2) else { return null_mut() };
        let Some(descriptor) = waiters.places.lock().unpoisoned().take() else { return PyErr_SetFromErrno(PyExc_OSError) };
        let status = gil::without(|| waiters.arm(condition, descriptor, error));
        Py_BuildValue(c"(ii)".as_ptr(), status, descriptor)
    }
}

/// leave(waiters, descriptor: int): a waiter in an event loop wakes or gives up.
pub unsafe extern "C" fn leave(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and `count` arguments, which keeps them.
    unsafe {
        if count != 2 {
            return raise(PyExc_TypeError, "leave() takes waiters and a descriptor");
        }
        let descriptor = PyLong_AsLong(*arguments.add(1)) as c_int;
        if !PyErr_Occurred().is_null() {
            return null_mut();
        }
        let Some(waiters) = waiters_of(*arguments) else { return null_mut() };
        gil::without(|| waiters.leave(descriptor));
        waiters.places.lock().unpoisoned().give_back(descriptor);
        none()
    }
}

/// close_waiters(waiters): closes the eventfds. After the release, when the plugin uses them no longer.
pub unsafe extern "C" fn close_waiters(_module: *mut PyObject, waiters: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and one argument.
    unsafe {
        let Some(waiters) = waiters_of(waiters) else { return null_mut() };
        let mut places = waiters.places.lock().unpoisoned();
        places.is_closed = true;
        places.free.clear();
        none()
    }
}
