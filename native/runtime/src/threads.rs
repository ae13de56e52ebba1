//! The toolkit's own threads: named, with the host's signals blocked, so that those stay with the host's threads.

use std::io;
use std::thread::{Builder, JoinHandle};

/// For a thread that runs an author's code. Larger than a main thread's stack, because C libraries below a Python function
/// may need it. Untouched pages cost no memory.
pub const AUTHORS_STACK: usize = 16 << 20;
/// For a thread that runs the toolkit's code alone.
pub const OWN_STACK: usize = 2 << 20;

/// Starts a thread. The name has at most 15 bytes.
pub fn spawn(name: &str, stack_bytes: usize, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.into()).stack_size(stack_bytes).spawn(move || {
        block_signals();
        body();
    })
}

/// What a mistake of the thread itself causes: blocked, it would end the process without the host's handler.
const OWN: [libc::c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];

/// Blocks the signals of the process for the thread that calls this.
pub fn block_signals() {
    // SAFETY: the set is local, and sigfillset initialises it before use.
    unsafe {
        let mut others = std::mem::zeroed();
        libc::sigfillset(&mut others);
        for signal in OWN {
            libc::sigdelset(&mut others, signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &others, std::ptr::null_mut());
    }
}
