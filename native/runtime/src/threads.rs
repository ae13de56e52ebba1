//! The toolkit's own threads: named, and with the signals that are for them.
//!
//! They block all signals, so that those stay with the host's threads: Python handles signals in the main thread, and a main
//! thread that waits does not learn of one that another thread has got. In a worker process no thread waits for signals. There
//! a thread that runs an author's code has the mask of the thread that caused it: whatever the author starts inherits the mask,
//! and a program with blocked signals cannot be asked to end.

use crate::forks;
use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

/// For a thread that runs an author's code. Larger than a main thread's stack, because C libraries below a Python function
/// may need it. Untouched pages cost no memory.
pub const AUTHORS_STACK: usize = 16 << 20;
/// For a thread that runs the toolkit's code alone.
pub const OWN_STACK: usize = 2 << 20;

/// This process works for a host.
static WORKER: AtomicBool = AtomicBool::new(false);

/// Says that this process is a worker, and that the calling thread works for its host: before its first thread.
pub fn work_for_a_host() {
    forks::begin_work();
    WORKER.store(true, Ordering::Relaxed);
}

/// Whether this process is a worker.
fn is_worker() -> bool {
    WORKER.load(Ordering::Relaxed)
}

thread_local! {
    /// Of a thread of the toolkit: the mask of the host's thread that caused it.
    static HOSTS_MASK: Cell<Option<libc::sigset_t>> = const { Cell::new(None) };
}

/// Starts a thread. The name has at most 15 bytes; the stack says whose code it runs.
pub fn spawn(name: &str, stack_bytes: usize, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let hosts = HOSTS_MASK.get().unwrap_or_else(mask);
    Builder::new().name(name.into()).stack_size(stack_bytes).spawn(move || {
        HOSTS_MASK.set(Some(hosts));
        forks::begin_work();
        if stack_bytes != OWN_STACK && is_worker() {
            set_mask(&hosts);
        } else {
            block_signals();
        }
        body();
    })
}

/// Makes the calling thread one of the toolkit's, which runs an author's code. It was started by a thread that has such a
/// mask, in another way than by [`spawn`].
pub fn adopt() {
    HOSTS_MASK.set(Some(mask()));
    forks::begin_work();
    if !is_worker() {
        block_signals();
    }
}

fn mask() -> libc::sigset_t {
    let mut mask = MaybeUninit::zeroed();
    // SAFETY: the set is local; the system fills it in.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), mask.as_mut_ptr());
        mask.assume_init()
    }
}

fn set_mask(mask: &libc::sigset_t) {
    // SAFETY: the set is initialised.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}

/// What a mistake of the thread itself causes: blocked, it would end the process without the host's handler.
const OWN: [libc::c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];

/// Blocks the signals of the process for the thread that calls this.
fn block_signals() {
    let mut others = MaybeUninit::uninit();
    // SAFETY: the set is local, and sigfillset initialises it before use.
    let others = unsafe {
        libc::sigfillset(others.as_mut_ptr());
        for signal in OWN {
            libc::sigdelset(others.as_mut_ptr(), signal);
        }
        others.assume_init()
    };
    set_mask(&others);
}
