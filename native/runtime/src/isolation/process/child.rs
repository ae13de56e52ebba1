//! The process of a worker: how it starts, how it ends, and what its end says.
//!
//! Guarantees: the host sees the end of the process at once, even if the worker's own children live on (a descriptor of the
//! process, not the end of a socket). Dropping it kills the process.

use super::lane::socket_pair;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};

/// How to start a worker: the program and its arguments. It finds the control socket at descriptor 0.
#[derive(Debug, Clone)]
pub struct Program {
    pub path: OsString,
    pub arguments: Vec<OsString>,
}

#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Readable once the process has ended.
    end: OwnedFd,
    socket: OwnedFd,
}

/// A descriptor of a process.
pub fn descriptor(process: u32) -> io::Result<OwnedFd> {
    // SAFETY: two numbers; the descriptor that comes back is ours.
    unsafe {
        match libc::syscall(libc::SYS_pidfd_open, process, 0) {
            descriptor if descriptor < 0 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor as RawFd)),
        }
    }
}

impl Process {
    /// Starts it, in a process group of its own, so that no Ctrl-C at a terminal reaches it.
    pub fn start(program: &Program) -> io::Result<Process> {
        let (socket, theirs) = socket_pair()?;
        let mut child = Command::new(&program.path).args(&program.arguments).stdin(theirs).process_group(0).spawn()?;
        match descriptor(child.id()) {
            Ok(end) => Ok(Process { child, end, socket }),
            Err(error) => {
                drop(child.kill().and_then(|()| child.wait()));
                Err(error)
            }
        }
    }

    pub fn socket(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Readable once the process has ended.
    pub fn end(&self) -> RawFd {
        self.end.as_raw_fd()
    }

    /// The same, for others to wait for.
    pub fn end_too(&self) -> io::Result<OwnedFd> {
        self.end.try_clone()
    }

    pub fn has_ended(&self) -> bool {
        let mut end = libc::pollfd { fd: self.end.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one element; it does not wait.
        unsafe { libc::poll(&mut end, 1, 0) > 0 }
    }

    /// Kills it, if it has not ended, and says how it ended.
    pub fn bury(mut self) -> String {
        said(self.kill())
    }

    /// Ends it, if it has not ended, and waits for that.
    pub fn kill(&mut self) -> Option<ExitStatus> {
        match self.child.try_wait() {
            Ok(Some(status)) => Some(status),
            // An error: the host takes the exit statuses of all its children. Then there is no status, and no such child.
            Err(_) => None,
            Ok(None) => self.child.kill().and_then(|()| self.child.wait()).ok(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

const SIGNALS: [(i32, &str); 9] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGTRAP, "SIGTRAP"),
    (libc::SIGKILL, "SIGKILL"),
    (libc::SIGTERM, "SIGTERM"),
    (libc::SIGSYS, "SIGSYS"),
];

/// "the worker process was killed by signal 11 (SIGSEGV)". SIGXCPU is a limit of processor time, which only a worker's own
/// function or `cpu_limit` sets.
fn said(status: Option<ExitStatus>) -> String {
    let how = match (status.and_then(|status| status.signal()), status.and_then(|status| status.code())) {
        (Some(libc::SIGXCPU), _) => "was killed by signal 24 (SIGXCPU): it has used up its processor time (cpu_limit)".to_string(),
        (Some(signal), _) => match SIGNALS.iter().find(|(number, _)| *number == signal) {
            Some((_, name)) => format!("was killed by signal {signal} ({name})"),
            None => format!("was killed by signal {signal}"),
        },
        (None, Some(code)) => format!("ended with exit status {code}"),
        (None, None) => "has ended".to_string(),
    };
    format!("the worker process {how}")
}
