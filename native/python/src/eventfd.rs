//! An eventfd: any thread wakes an event loop, which watches the file descriptor.
//!
//! Waking takes no lock and no GIL, and never waits.

pub struct EventFd(i32);

impl EventFd {
    /// None: errno says why the system refused it.
    pub fn new() -> Option<EventFd> {
        // SAFETY: no pointers are passed.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        (descriptor >= 0).then(|| EventFd(descriptor)) // made only then: its drop would replace errno
    }

    pub fn descriptor(&self) -> i32 {
        self.0
    }

    pub fn wake(&self) {
        wake(self.0);
    }

    /// Takes back all wake-ups so far.
    pub fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: eight bytes are written to `count`. It fails only if there was no wake-up.
        unsafe { libc::read(self.0, (&raw mut count).cast(), 8) };
    }
}

impl Drop for EventFd {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours.
        unsafe { libc::close(self.0) };
    }
}

/// Wakes the reader of a descriptor that somebody else owns.
pub fn wake(descriptor: i32) {
    let one = 1u64;
    // SAFETY: eight bytes are read from `one`. It fails only by overflow, and then the reader is awake already.
    unsafe { libc::write(descriptor, (&raw const one).cast(), 8) };
}
