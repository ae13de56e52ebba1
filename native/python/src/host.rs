//! What the core offers to the Python host, beside the contract (`setup.py` declares these for cffi).

use arroyo_udf_plugin::abi::ArrowArray;
use std::ffi::c_void;
use std::ptr::null_mut;

struct Parts {
    pointers: Vec<*mut ArrowArray>,
    children: Vec<ArrowArray>,
    no_validity: *const c_void,
}

/// A struct array with `n_children` empty children, to be filled in: pyarrow exports columns right into them. Null where
/// a number is negative.
#[no_mangle]
pub extern "C" fn arroyo_udf_host_batch(length: i64, n_children: i64) -> *mut ArrowArray {
    let Some(count) = usize::try_from(n_children).ok().filter(|_| length >= 0) else { return null_mut() };
    let mut parts = Box::new(Parts {
        pointers: Vec::with_capacity(count),
        children: (0..count).map(|_| ArrowArray::empty()).collect(),
        no_validity: std::ptr::null(),
    });
    parts.pointers = parts.children.iter_mut().map(|child| child as *mut ArrowArray).collect();
    Box::into_raw(Box::new(ArrowArray {
        length,
        null_count: 0,
        offset: 0,
        n_buffers: 1,
        n_children,
        buffers: &raw mut parts.no_validity,
        children: parts.pointers.as_mut_ptr(),
        dictionary: null_mut(),
        release: Some(release_batch),
        private_data: Box::into_raw(parts).cast(),
    }))
}

unsafe extern "C" fn release_batch(array: *mut ArrowArray) {
    // SAFETY: `private_data` is the box made above; `release` is reset, so this happens once. Children that were never
    // filled in, or were moved out, have a null release.
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

/// Frees the shell of `arroyo_udf_host_batch`; releases the array first, if it has not moved.
///
/// # Safety
/// `batch` comes from `arroyo_udf_host_batch`, or is null, and is not used again.
#[no_mangle]
pub unsafe extern "C" fn arroyo_udf_host_batch_free(batch: *mut ArrowArray) {
    if batch.is_null() {
        return;
    }
    // SAFETY: the caller promises that this is our box.
    let mut batch = unsafe { Box::from_raw(batch) };
    if let Some(release) = batch.release {
        // SAFETY: it has not moved, so it is released here.
        unsafe { release(&mut *batch) };
    }
}

/// The function for `arm`: `data` is the number of an eventfd.
#[no_mangle]
pub extern "C" fn arroyo_udf_host_wake(data: *mut c_void) {
    crate::executor::wake(data as usize as i32);
}
