//! Arrays that go out: memory, its owner, and the C Data array that releases both.
//!
//! Guarantees: an exported array owns all its memory; any thread may release it, once. Children that the consumer has
//! moved out are left alone.
//!
//! Assumes that buffers have the length and content that the array's type needs: nothing is checked.

use arroyo_udf_abi::ArrowArray;
use std::any::Any;
use std::ffi::c_void;
use std::ptr::null_mut;

/// One buffer of an array that goes out, with its owner.
pub struct Buffer {
    pointer: *const c_void,
    _owner: Option<Box<dyn Any + Send>>,
}

impl Buffer {
    /// The absent buffer: no validity, or no values.
    pub fn none() -> Buffer {
        Buffer::owned_by(std::ptr::null(), None)
    }

    /// Memory that lives as long as its owner; or as long as the array is used, without one.
    pub(crate) fn owned_by(pointer: *const c_void, owner: Option<Box<dyn Any + Send>>) -> Buffer {
        Buffer { pointer, _owner: owner }
    }

    pub(crate) fn pointer(&self) -> *const u8 {
        self.pointer.cast()
    }
}

impl<T: Send + 'static> From<Vec<T>> for Buffer {
    fn from(values: Vec<T>) -> Buffer {
        // The pointer of an empty Vec dangles; an empty buffer needs no other.
        Buffer { pointer: values.as_ptr().cast(), _owner: Some(Box::new(values)) }
    }
}

/// An array about to go out. If it does not, its children are released.
pub struct ArrayData {
    pub length: usize,
    pub null_count: usize,
    pub buffers: Vec<Buffer>,
    /// Already exported.
    pub children: Vec<ArrowArray>,
}

struct Exported {
    pointers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    _buffers: Vec<Buffer>,
}

impl ArrayData {
    /// The C Data array, which owns the memory.
    pub fn export(mut self) -> ArrowArray {
        let (buffers, children) = (std::mem::take(&mut self.buffers), std::mem::take(&mut self.children));
        let mut exported = Box::new(Exported {
            pointers: buffers.iter().map(|b| b.pointer).collect(),
            children: children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect(),
            _buffers: buffers,
        });
        ArrowArray {
            length: self.length as i64,
            null_count: self.null_count as i64,
            offset: 0,
            n_buffers: exported.pointers.len() as i64,
            n_children: exported.children.len() as i64,
            buffers: exported.pointers.as_mut_ptr(),
            children: if exported.children.is_empty() { null_mut() } else { exported.children.as_mut_ptr() },
            dictionary: null_mut(),
            release: Some(release_exported),
            private_data: Box::into_raw(exported).cast(),
        }
    }
}

impl Drop for ArrayData {
    fn drop(&mut self) {
        for child in &mut self.children {
            if let Some(release) = child.release {
                // SAFETY: ours, released once.
                unsafe { release(child) };
            }
        }
    }
}

impl From<ArrayData> for ArrowArray {
    fn from(data: ArrayData) -> ArrowArray {
        data.export()
    }
}

unsafe extern "C" fn release_exported(array: *mut ArrowArray) {
    // SAFETY: `private_data` is the box of `export`; `release` is reset, so this happens once. A child that the consumer
    // has moved out has a null release.
    unsafe {
        let exported = Box::from_raw((*array).private_data.cast::<Exported>());
        for &child in &exported.children {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
        (*array).release = None;
    }
}

/// An array that is released unless it goes on.
pub struct Owned(pub ArrowArray);

impl Owned {
    pub fn into_array(mut self) -> ArrowArray {
        std::mem::replace(&mut self.0, ArrowArray::empty())
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: ours, released once.
            unsafe { release(&mut self.0) };
        }
    }
}
