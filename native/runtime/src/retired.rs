//! Input arrays that nothing needs any more, and that wait to be released by a thread of the host (R19).
//!
//! The executor's threads drop batches too, but a release callback is the other side's code: it may need a lock or an
//! interpreter that the executor's thread must not touch. So a dropped batch is put on its plugin's list, and each call of
//! the host into that plugin ends with a sweep, in the caller's thread, with no lock held.
//!
//! A library is one plugin, and has the list [`LIBRARY`]. The native core of Python serves all Python plugins of a process:
//! each of them has a list of its own (`Signature::retired`), because one host's callback must not run during another
//! host's call.

use crate::sync::Unpoisoned;
use arroyo_udf_abi::ArrowArray;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// The list of one plugin.
#[derive(Debug, Default)]
pub struct Retired {
    arrays: Mutex<Vec<ArrowArray>>,
    /// Saves `sweep` the lock when there is nothing to do. Set after the push, so a sweep may come one call late.
    any: AtomicBool,
}

/// The list of a library that is one plugin.
pub static LIBRARY: Retired = Retired::new();

impl Retired {
    pub const fn new() -> Retired {
        Retired { arrays: Mutex::new(Vec::new()), any: AtomicBool::new(false) }
    }

    /// Takes over an array that nothing reads any more.
    pub fn add(&self, array: ArrowArray) {
        if array.release.is_some() {
            self.lock().push(array);
            self.any.store(true, Ordering::Release);
        }
    }

    /// Releases the arrays. Call it in a thread of the host, during a call into this plugin, with no lock held.
    pub fn sweep(&self) {
        if self.any.load(Ordering::Relaxed) && self.any.swap(false, Ordering::Acquire) {
            release(std::mem::take(&mut *self.lock()));
        }
    }

    /// Releases the arrays for which `here` answers true: those that may be released in the calling thread.
    pub fn sweep_if(&self, here: impl Fn(&ArrowArray) -> bool) {
        let (now, later): (Vec<ArrowArray>, Vec<ArrowArray>) = std::mem::take(&mut *self.lock()).into_iter().partition(here);
        if !later.is_empty() {
            self.lock().extend(later);
            self.any.store(true, Ordering::Release);
        }
        release(now);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ArrowArray>> {
        self.arrays.lock().unpoisoned()
    }
}

/// The end of a call into a plugin: releases the input arrays that it needs no more (R19). None: the call has reached no
/// plugin.
pub fn sweep(retired: Option<&Retired>) {
    if let Some(retired) = retired {
        retired.sweep();
    }
}

fn release(arrays: Vec<ArrowArray>) {
    for mut array in arrays {
        if let Some(release) = array.release {
            // SAFETY: the array was moved in by `add` and is released once, here.
            unsafe { release(&mut array) };
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    static RELEASED: AtomicUsize = AtomicUsize::new(0);

    unsafe extern "C" fn count(_: *mut ArrowArray) {
        RELEASED.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn r19_an_array_that_a_partial_sweep_leaves_is_released_by_the_next_whole_one() {
        let retired = Retired::new();
        retired.add(ArrowArray { release: Some(count), ..ArrowArray::empty() });
        retired.any.store(false, Ordering::Relaxed); // as after a sweep that came one call early
        retired.sweep_if(|_| false);
        retired.sweep();
        assert_eq!(RELEASED.load(Ordering::Relaxed), 1);
    }
}
