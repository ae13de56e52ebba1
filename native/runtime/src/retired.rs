//! Input arrays that nothing needs any more, and that wait to be released by a thread of the host (R19).
//!
//! The executor's threads drop batches too, but a release callback is the other side's code: it may need a lock or an
//! interpreter that the executor's thread must not touch. So a dropped batch is put here, and each call of the host ends
//! with [`sweep`], in its own thread, with no lock held.

use crate::sync::Unpoisoned;
use arroyo_udf_abi::ArrowArray;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

static ARRAYS: Mutex<Vec<ArrowArray>> = Mutex::new(Vec::new());
/// Saves `sweep` the lock when there is nothing to do. Set after the push, so a sweep may come one call late.
static ANY: AtomicBool = AtomicBool::new(false);

/// Takes over an array that nothing reads any more.
pub fn retire(array: ArrowArray) {
    if array.release.is_some() {
        lock().push(array);
        ANY.store(true, Ordering::Release);
    }
}

/// Releases the retired arrays. Call it in a thread of the host, with no lock held.
pub fn sweep() {
    if ANY.load(Ordering::Relaxed) && ANY.swap(false, Ordering::Acquire) {
        release(std::mem::take(&mut *lock()));
    }
}

/// Releases the retired arrays for which `here` answers true: those that may be released in the calling thread.
pub fn sweep_if(here: impl Fn(&ArrowArray) -> bool) {
    let (now, later): (Vec<ArrowArray>, Vec<ArrowArray>) = std::mem::take(&mut *lock()).into_iter().partition(here);
    lock().extend(later);
    release(now);
}

fn release(arrays: Vec<ArrowArray>) {
    for mut array in arrays {
        if let Some(release) = array.release {
            // SAFETY: the array was moved in by `retire` and is released once, here.
            unsafe { release(&mut array) };
        }
    }
}

fn lock() -> MutexGuard<'static, Vec<ArrowArray>> {
    ARRAYS.lock().unpoisoned()
}
