//! The process of a worker: how it starts, how it ends, and what its end says.
//!
//! Guarantees: the host sees the end of the process at once, even if the worker's own children live on (a descriptor of the
//! process, not the end of a socket). Dropping it kills the process and its group, which is all that it has started and
//! not moved elsewhere. No wait for its end takes longer than [`END_TIME`].

use super::lane::socket_pair;
use crate::sync::Unpoisoned;
use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a killed process may take to end. One in the system's hands, for a device that hangs, may take longer.
const END_TIME: Duration = Duration::from_millis(500);

/// Those whose exit statuses could not be taken: a tracer still keeps them. They are tried again when others start.
static KEPT: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// How to start a worker: the program and its arguments. It finds the control socket at descriptor 0.
#[derive(Debug, Clone)]
pub struct Program {
    pub path: OsString,
    pub arguments: Vec<OsString>,
}

#[derive(Debug)]
pub struct Process {
    /// None: it has ended, and `status` says how.
    child: Option<Child>,
    status: Option<ExitStatus>,
    /// It had not ended when the host ended it.
    was_killed: bool,
    /// Readable once the process has ended.
    end: Arc<OwnedFd>,
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
    /// Starts it, in a process group of its own: no Ctrl-C at a terminal reaches it, and it ends with all that it starts.
    pub fn start(program: &Program) -> io::Result<Process> {
        KEPT.lock().unpoisoned().retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let (socket, theirs) = socket_pair()?;
        let mut child = Command::new(&program.path).args(&program.arguments).stdin(theirs).process_group(0).spawn()?;
        match descriptor(child.id()) {
            Ok(end) => Ok(Process { child: Some(child), status: None, was_killed: false, end: Arc::new(end), socket }),
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
    pub fn end_too(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.end)
    }

    pub fn has_ended(&self) -> bool {
        self.ends_within(Duration::ZERO)
    }

    fn ends_within(&self, time: Duration) -> bool {
        let mut end = libc::pollfd { fd: self.end.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one element.
        unsafe { libc::poll(&mut end, 1, time.as_millis() as libc::c_int) > 0 }
    }

    /// Kills it, if it has not ended, and says how it ended.
    pub fn bury(mut self) -> String {
        self.kill();
        said(self.status, self.was_killed)
    }

    /// As [`kill_all`], for one.
    pub fn kill(&mut self) {
        kill_all([self]);
    }

    fn send_kill(&mut self) {
        let Some(child) = &self.child else { return };
        // Else the host takes the exit statuses of all its children, and the numbers may be those of others by now.
        if is_child(child.id()) {
            self.was_killed = !self.has_ended();
            // SAFETY: a group whose leader nobody has waited for, so the number is its own.
            unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL) };
        }
    }

    /// Waits at most so long for its end, and takes its status.
    fn take_status(&mut self, time: Duration) {
        let Some(mut child) = self.child.take() else { return };
        self.ends_within(time);
        match child.try_wait() {
            Ok(None) => KEPT.lock().unpoisoned().push(child),
            waited => self.status = waited.ok().flatten(),
        }
    }
}

/// Ends processes that have not ended, all at once, and what is left of their groups. Waits for that, but not for ever, and no
/// longer for many than for one.
pub fn kill_all<'a>(processes: impl IntoIterator<Item = &'a mut Process>) {
    let mut processes: Vec<_> = processes.into_iter().collect();
    processes.iter_mut().for_each(|process| process.send_kill());
    let until = Instant::now() + END_TIME;
    processes.into_iter().for_each(|process| process.take_status(until.saturating_duration_since(Instant::now())));
}

/// Whether a process is a child of this one whose end nobody has waited for.
fn is_child(process: u32) -> bool {
    let mut info = MaybeUninit::uninit();
    // SAFETY: room for what the system says; it does not wait, and leaves the status for others.
    unsafe { libc::waitid(libc::P_PID, process, info.as_mut_ptr(), libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) == 0 }
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
/// function or `cpu_limit` sets. `was_killed`: by the host.
fn said(status: Option<ExitStatus>, was_killed: bool) -> String {
    let how = match (status.and_then(|status| status.signal()), status.and_then(|status| status.code())) {
        (Some(libc::SIGKILL) | None, None) if was_killed => "was ended by its host".to_string(),
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

#[cfg(test)]
mod tests {
    use super::super::mailbox::Bell;
    use super::*;

    #[test]
    fn processes_that_hang_are_waited_for_together() {
        let hanging = || {
            let program = Program { path: "sleep".into(), arguments: vec!["600".into()] };
            let mut process = Process::start(&program).unwrap();
            process.end = Arc::new(Bell::create().unwrap().into()); // nobody ever rings it
            process
        };
        let mut processes: Vec<Process> = (0..20).map(|_| hanging()).collect();
        let before = Instant::now();
        kill_all(processes.iter_mut());
        assert!(before.elapsed() < END_TIME * 10, "one after another they take twice as long, at least");
    }
}
