//! Handle -> runtime. A handle is a number: slot, generation, and a mark of this library in this process.
//!
//! Guarantees: each call checks it. A released handle, one from before a fork, or one of another plugin is refused, never
//! followed (R13).

use crate::failure::Failure;
use crate::forks::{self, was_forked};
use crate::runtime::Runtime;
use crate::sync::Unpoisoned;
use arroyo_udf_abi::Handle;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

struct Slot {
    generation: u32,
    runtime: Option<Arc<Runtime>>,
}

static SLOTS: RwLock<Vec<Slot>> = RwLock::new(Vec::new());
/// The top 16 bits of each handle. 0: of none, because no function has been started in this process.
static MARK: AtomicU64 = AtomicU64::new(0);

const INDEX_BITS: u32 = 20;
const GENERATION_BITS: u32 = 28;
const MARK_SHIFT: u32 = INDEX_BITS + GENERATION_BITS;

/// Fails in a process where functions cannot be started: the threads of the timer and the executors are in the process
/// that started the first function. Call it before anything waits for those threads.
pub fn check_process() -> Result<(), Failure> {
    if was_forked() {
        return Err(Failure::state(
            "async functions of this plugin were started before a fork, and threads do not survive one: start them in the parent, or in a new process",
        ));
    }
    static MARKED: Mutex<bool> = Mutex::new(false);
    let mut marked = MARKED.lock().unpoisoned();
    if !*marked {
        forks::watch()?;
        *marked = true;
        // Libraries lie at different addresses, so two of them share a mark in 1 of 65,535 cases.
        let here = &raw const MARK as u64 ^ crate::timer::now();
        MARK.store((here.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48).clamp(1, 0xffff), Ordering::Relaxed);
    }
    Ok(())
}

pub fn insert(runtime: Arc<Runtime>) -> Result<Handle, Failure> {
    check_process()?;
    let mark = MARK.load(Ordering::Relaxed);
    let mut slots = SLOTS.write().unpoisoned();
    let index = match slots.iter().position(|slot| slot.runtime.is_none()) {
        Some(index) => index,
        None if slots.len() >> INDEX_BITS == 0 => {
            slots.push(Slot { generation: 0, runtime: None });
            slots.len() - 1
        }
        None => return Err(Failure::state("too many started functions; release some")),
    };
    let slot = &mut slots[index];
    slot.generation = (slot.generation + 1) & ((1 << GENERATION_BITS) - 1);
    slot.runtime = Some(runtime);
    Ok(mark << MARK_SHIFT | u64::from(slot.generation) << INDEX_BITS | index as u64)
}

fn refuse() -> Failure {
    Failure::state(
        "not a handle of this plugin in this process: released, from before a fork, or of another plugin; start the function here",
    )
}

/// The slot of a handle of this library in this process.
fn index(handle: Handle) -> Result<usize, Failure> {
    // Compared before any lock is taken: after a fork a lock may never be free again.
    if handle >> MARK_SHIFT != MARK.load(Ordering::Relaxed) || handle >> MARK_SHIFT == 0 || was_forked() {
        return Err(refuse());
    }
    Ok((handle & ((1 << INDEX_BITS) - 1)) as usize)
}

fn fits(slot: &Slot, handle: Handle) -> bool {
    u64::from(slot.generation) == handle >> INDEX_BITS & ((1 << GENERATION_BITS) - 1)
}

/// Calls `body` with a runtime that cannot be released meanwhile. `body` must not wait, and must not run code of a host or
/// an author. For calls made once per row, where another reference would cost as much as the rest.
pub fn with<R>(handle: Handle, body: impl FnOnce(&Arc<Runtime>) -> R) -> Result<R, Failure> {
    let index = index(handle)?;
    let slots = SLOTS.read().unpoisoned();
    slots.get(index).filter(|slot| fits(slot, handle)).and_then(|slot| slot.runtime.as_ref()).map(body).ok_or_else(refuse)
}

pub fn get(handle: Handle) -> Result<Arc<Runtime>, Failure> {
    with(handle, Arc::clone)
}

/// Ends a handle.
pub fn remove(handle: Handle) -> Result<Arc<Runtime>, Failure> {
    let index = index(handle)?;
    let mut slots = SLOTS.write().unpoisoned();
    slots.get_mut(index).filter(|slot| fits(slot, handle)).and_then(|slot| slot.runtime.take()).ok_or_else(refuse)
}

/// Every runtime of this process that has not been released.
pub fn all() -> Vec<Arc<Runtime>> {
    if was_forked() {
        return Vec::new();
    }
    SLOTS.read().unpoisoned().iter().filter_map(|slot| slot.runtime.clone()).collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Runs `body` in a forked child. True: it answered true.
    fn in_fork(body: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child runs `body` alone, which takes no lock that another thread may have held, and exits at once.
        unsafe {
            match libc::fork() {
                0 => libc::_exit(i32::from(!body())),
                child => {
                    let mut status = -1;
                    libc::waitpid(child, &mut status, 0) == child && status == 0
                }
            }
        }
    }

    #[test]
    fn r13_no_handle_is_good_in_a_forked_child() {
        check_process().expect("this process was not forked");
        let of_parent = MARK.load(Ordering::Relaxed) << MARK_SHIFT | 1 << INDEX_BITS;
        assert!(index(of_parent).is_ok());
        assert!(in_fork(|| index(of_parent).is_err() && index(0).is_err()));
    }
}

/// A call with this handle has panicked: a mistake of the toolkit ends the runtime (R17). Not a released one.
pub fn poison(handle: Handle, text: &str) {
    if let Ok(runtime) = get(handle) {
        runtime.poison(text);
    }
}
