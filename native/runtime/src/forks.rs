//! Forks: what a child of this process must not do.
//!
//! A child has one thread, a copy of the one that forked, and shares descriptors and shared memory with its parent. What the
//! parent's other threads do stops in it, and their locks may never be free again. So no started function is good in a child
//! (R13, [`crate::handles`]). And if a function has forked in a thread that does the toolkit's work, its child comes back to
//! that work, which is the parent's alone: [`is_stray`]. It ends there, as a program ends whose main function returns.
//!
//! Assumes that a fork runs the handlers of `pthread_atfork`.

use crate::failure::Failure;
use crate::sync::Unpoisoned;
use crate::threads;
use arroyo_udf_abi as abi;
use std::future::{poll_fn, Future};
use std::pin::pin;
use std::sync::Mutex;

extern "C" fn in_child() {
    threads::as_child();
}

/// Learns of forks from now on.
pub fn watch() -> Result<(), Failure> {
    static WATCHED: Mutex<bool> = Mutex::new(false);
    let mut watched = WATCHED.lock().unpoisoned();
    if !*watched {
        // SAFETY: the handler only touches an atomic and the thread's mask. The library is never unloaded.
        let refused = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        if refused != 0 {
            let error = std::io::Error::from_raw_os_error(refused);
            return Err(Failure::new(abi::ENVIRONMENT, format!("the system refuses to tell of forks: {error}")));
        }
        *watched = true;
    }
    Ok(())
}

/// Whether this process was forked from one that watched. Takes no lock: after a fork one may never be free.
#[inline]
pub fn was_forked() -> bool {
    threads::forks() != 0
}

/// A call of an author's function in a thread that may be that of a child. Such a child is a program of its own, and no stray:
/// it was forked by an author's code that has not come back.
pub struct Call(Option<u32>);

impl Call {
    #[inline]
    pub fn begin() -> Call {
        let before = threads::begun();
        threads::set_begun(before.map(|_| threads::forks()));
        Call(before)
    }
}

impl Drop for Call {
    #[inline]
    fn drop(&mut self) {
        threads::set_begun(self.0);
    }
}

/// Whether this is the child of a function that has forked in a thread which does the toolkit's work. To be asked when an
/// author's code comes back, before anything else is done.
#[inline]
pub fn is_stray() -> bool {
    was_forked() && threads::begun().is_some_and(|forks| forks != threads::forks())
}

/// Ends this process if it [is such a child](is_stray). `failed` answers why the function has failed.
#[inline]
pub fn end_stray<'a>(failed: impl FnOnce() -> Option<&'a str>) {
    if is_stray() {
        end(failed());
    }
}

/// Ends this process, as a program whose main function has returned, or failed.
#[cold]
pub fn end(failed: Option<&str>) -> ! {
    // SAFETY: the texts are whole. It runs nothing of this process: exit handlers are the parent's, and a lock of its standard
    // error may never be free.
    unsafe {
        for part in failed.into_iter().flat_map(|text| [text, "\n"]) {
            libc::write(2, part.as_ptr().cast(), part.len());
        }
        libc::_exit(i32::from(failed.is_some()))
    }
}

/// A future of an author's: where it has forked, the child ends once a poll comes back.
pub async fn within<T>(future: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let mut future = pin!(future);
    poll_fn(|context| {
        let polled = future.as_mut().poll(context);
        end_stray(|| match &polled {
            std::task::Poll::Ready(Err(text)) => Some(text),
            _ => None,
        });
        polled
    })
    .await
}
