//! Types of Python objects with a Rust body. The module's exec makes them from a spec; only method tables are static. Python
//! code cannot instantiate them.

use crate::object::{raise, Owned};
use pyo3_ffi::*;
use std::ffi::{c_int, c_void, CStr};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A Rust body behind an object's head.
pub trait Body: Sized + 'static {
    /// The body of an object of this type.
    ///
    /// # Safety
    /// `object` was made by the type's [`HeapType::make`] with this body.
    unsafe fn of(object: *mut PyObject) -> *mut Self {
        // SAFETY: the layout is that of `Instance`.
        unsafe { &raw mut (*object.cast::<Instance<Self>>()).body }
    }

    /// The object around a body; borrowed.
    fn object(body: *mut Self) -> *mut PyObject {
        body.wrapping_byte_sub(std::mem::offset_of!(Instance<Self>, body)).cast()
    }
}

impl<T: Sized + 'static> Body for T {}

#[repr(C)]
pub struct Instance<T> {
    head: PyObject,
    pub body: T,
}

/// A type of objects; each interpreter has its own. An owned reference, or null: not defined yet, or gone with its module.
pub struct HeapType(AtomicPtr<PyTypeObject>);

/// Defines a function that Python calls as a method of objects with the body `$body`. In the code, `$this` points to the
/// body; `$argument` is the argument of a METH_O method.
macro_rules! method {
    ($(#[$doc:meta])* fn $name:ident($this:ident: $body:ty, $argument:ident) $code:block) => {
        $(#[$doc])*
        unsafe extern "C" fn $name(this: *mut PyObject, $argument: *mut PyObject) -> *mut PyObject {
            // SAFETY: Python calls a method with an object of its type and with the GIL held. No two references to one body
            // are alive across a call into Python.
            unsafe {
                let $this = <$body as Body>::of(this);
                let _ = &$argument;
                $code
            }
        }
    };
}
pub(crate) use method;

pub type Method = (&'static CStr, unsafe extern "C" fn(*mut PyObject, *mut PyObject) -> *mut PyObject, c_int);

impl HeapType {
    pub const fn new() -> HeapType {
        HeapType(AtomicPtr::new(null_mut()))
    }

    pub fn ptr(&self) -> *mut PyTypeObject {
        self.0.load(Ordering::Acquire)
    }

    /// Gives the type back.
    ///
    /// # Safety
    /// The GIL is held, in the interpreter that has defined the type.
    pub unsafe fn clear(&self) {
        // SAFETY: passed on; the reference was ours.
        unsafe { Py_XDECREF(self.0.swap(null_mut(), Ordering::AcqRel).cast()) };
    }

    /// Makes the type with these methods and further type slots, and adds it to the module, once. False: an exception is set.
    ///
    /// # Safety
    /// The GIL is held; the methods and slots are made for bodies of type `T`; `name` is "module.Type".
    pub unsafe fn define<T: 'static>(&self, module: *mut PyObject, name: &'static CStr, methods: &[Method], slots: &[PyType_Slot]) -> bool {
        unsafe extern "C" fn dealloc<T>(object: *mut PyObject) {
            // SAFETY: Python calls this once, with the last reference gone and the GIL held.
            unsafe {
                let kind = Py_TYPE(object);
                std::ptr::drop_in_place(&raw mut (*object.cast::<Instance<T>>()).body);
                PyObject_Free(object.cast());
                Py_DECREF(kind.cast());
            }
        }
        let mut table: Vec<PyMethodDef> = methods
            .iter()
            .map(|&(name, function, flags)| PyMethodDef {
                ml_name: name.as_ptr(),
                ml_meth: PyMethodDefPointer { PyCFunction: function },
                ml_flags: flags,
                ml_doc: std::ptr::null(),
            })
            .collect();
        table.push(PyMethodDef::zeroed());
        let table = Vec::leak(table); // the type refers to it as long as the process lives
        let mut all = vec![
            PyType_Slot { slot: Py_tp_dealloc, pfunc: dealloc::<T> as *mut c_void },
            PyType_Slot { slot: Py_tp_methods, pfunc: table.as_mut_ptr().cast() },
        ];
        all.extend(slots.iter().map(|slot| PyType_Slot { slot: slot.slot, pfunc: slot.pfunc }));
        all.push(PyType_Slot { slot: 0, pfunc: null_mut() });
        let mut spec = PyType_Spec {
            name: name.as_ptr(),
            basicsize: size_of::<Instance<T>>() as c_int,
            itemsize: 0,
            flags: (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION) as u32,
            slots: all.as_mut_ptr(),
        };
        // SAFETY: the spec and its slots are valid for the call.
        unsafe {
            let Some(kind) = Owned::new(PyType_FromModuleAndSpec(module, &mut spec, null_mut())) else { return false };
            if PyModule_AddType(module, kind.ptr().cast()) < 0 {
                return false;
            }
            self.0.store(kind.into_ptr().cast(), Ordering::Release);
            true
        }
    }

    /// A new object around a body. None: an exception is set.
    ///
    /// # Safety
    /// The GIL is held, in the interpreter that has defined the type, for bodies of type `T`.
    pub unsafe fn make<T: 'static>(&self, body: T) -> Option<Owned> {
        // SAFETY: the memory has room for an instance; its head is set up before any other code sees it.
        unsafe {
            let kind = self.ptr();
            if kind.is_null() {
                raise(PyExc_RuntimeError, "the interpreter ends");
                return None;
            }
            let object = PyType_GenericAlloc(kind, 0);
            let object = Owned::new(object)?;
            (&raw mut (*object.ptr().cast::<Instance<T>>()).body).write(body);
            Some(object)
        }
    }
}
