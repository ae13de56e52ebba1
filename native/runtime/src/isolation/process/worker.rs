//! The host's side of one worker: starts its process, sends it work, waits for answers, and notices its end.
//!
//! Guarantees: no wait depends on the worker alone. Each has an end in time, or ends with the process; and each ends soon
//! once the host interrupts it or the plugin is closed ([`Stopped`]).

use super::child::{kill_all, Process, Program};
use super::lane::Lane;
use super::mailbox::{wait, Reader, Writer};
use super::message::{identity, read_failure, Hello, Limits, Start, FAILED, LEAVE, READY};
use crate::failure::Failure;
use crate::sized;
use arroyo_udf_abi as abi;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long the process may take to start.
pub const START_TIME: Duration = Duration::from_secs(60);
/// How often the host is asked whether it ends a call that waits.
pub const TICK: Duration = Duration::from_millis(50);

/// Whether the host ends the call that waits in this thread.
pub type Interrupted = fn() -> bool;

/// Why the host waits no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// It has ended the call, and knows why.
    Interrupted,
    /// It has closed the plugin.
    Closed,
}

impl Stopped {
    /// What the call answers.
    pub fn failure(self, name: &str) -> Failure {
        match self {
            Stopped::Interrupted => Failure::new(abi::USER_CODE, format!("{name}: the host has interrupted the call")),
            Stopped::Closed => Failure::state(format!("{name}: the plugin was closed during this call")),
        }
    }
}

/// How workers start, and when the host waits for them no longer: the same for all of an instance.
#[derive(Debug)]
pub struct Spec {
    program: Program,
    hello: Hello,
    /// The library that the host has loaded, whatever lies at its path now.
    library: File,
    interrupted: Interrupted,
    closed: AtomicBool,
}

impl Spec {
    /// For a library at an absolute path.
    ///
    /// # Safety
    /// The descriptor is that of the library, and valid.
    pub unsafe fn new(
        program: Program,
        limits: Limits,
        path: Vec<u8>,
        descriptor: *const abi::Descriptor,
        interrupted: Interrupted,
    ) -> Result<Spec, String> {
        let library = File::open(OsStr::from_bytes(&path)).map_err(|error| format!("{}: {error}", String::from_utf8_lossy(&path)))?;
        // SAFETY: passed on.
        let identity = unsafe { identity(&sized::read(descriptor)?) };
        let hello = Hello { host: std::process::id(), limits, identity, plugin: path };
        Ok(Spec { program, hello, library, interrupted, closed: AtomicBool::new(false) })
    }

    /// The process that may use the workers.
    pub fn host(&self) -> u32 {
        self.hello.host
    }

    pub fn limits(&self) -> Limits {
        self.hello.limits
    }

    pub fn interrupted(&self) -> Interrupted {
        self.interrupted
    }

    /// Ends all waits soon.
    pub fn close(&self) {
        self.closed.store(true, Relaxed);
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    /// Why the call that waits in this thread must end.
    pub fn stopped(&self) -> Option<Stopped> {
        if self.is_closed() {
            return Some(Stopped::Closed);
        }
        (self.interrupted)().then_some(Stopped::Interrupted)
    }
}

#[derive(Debug)]
pub struct Worker {
    process: Process,
    lane: Lane,
    /// It has said that it is ready.
    ready: bool,
    life: Arc<Life>,
}

/// What all who have a lane of a worker know of it.
#[derive(Debug, Default)]
pub struct Life {
    /// It has answered a row, or said why it cannot.
    has_answered: AtomicBool,
    /// How it ended, once that is known.
    end: OnceLock<String>,
}

impl Life {
    pub fn set_answered(&self) {
        self.has_answered.store(true, Relaxed);
    }

    pub fn has_answered(&self) -> bool {
        self.has_answered.load(Relaxed)
    }

    pub fn obituary(&self) -> Option<&str> {
        self.end.get().map(String::as_str)
    }
}

/// A lane beside the first one.
pub struct Further {
    pub lane: Lane,
    /// Readable once the process has ended.
    pub end: Arc<OwnedFd>,
    pub life: Arc<Life>,
}

impl Further {
    /// Ends the worker's process soon; its place notices it. What it writes until then counts no more.
    pub fn kill(&self) {
        // SAFETY: a descriptor of the process, so the signal reaches no other.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.end.as_raw_fd(), libc::SIGKILL, std::ptr::null::<libc::siginfo_t>(), 0) };
    }
}

impl Worker {
    /// Starts the process; [`Worker::ready`] waits for it.
    pub fn start(spec: &Spec) -> Result<Worker, String> {
        let lane = Lane::create().map_err(|error| format!("no shared memory for a worker process: {error}"))?;
        let program = spec.program.path.to_string_lossy();
        let process = Process::start(&spec.program).map_err(|error| format!("{program} cannot be started: {error}"))?;
        match lane.send(process.socket(), &spec.hello.write(), Some(spec.library.as_raw_fd())) {
            // One that has ended already: `ready` says how.
            Err(error) if !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                Err(format!("nothing can be sent to {program}: {error}"))
            }
            _ => Ok(Worker { process, lane, ready: false, life: Arc::default() }),
        }
    }

    /// Waits until it is ready for work. The outer error: the host waits no longer.
    pub fn ready(&mut self, spec: &Spec) -> Result<Result<(), Unready>, Stopped> {
        if self.ready {
            return Ok(Ok(()));
        }
        let said = match self.wait(Instant::now() + START_TIME, || spec.stopped()) {
            Ok(()) => self.first_word().map_err(Unready::Refused),
            Err(NoAnswer::Ended) => Err(Unready::Ended("it ended before it was ready; standard error may say why".into())),
            Err(NoAnswer::Late) => Err(Unready::Refused(format!("it was not ready after {} s", START_TIME.as_secs()))),
            Err(NoAnswer::Stopped(why)) => return Err(why),
        };
        self.ready = said.is_ok();
        Ok(said)
    }

    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// Reads whether it is ready.
    fn first_word(&mut self) -> Result<(), String> {
        let broken = |error| format!("it said something else than that it is ready: {error}");
        let mut message = self.lane.received.read().map_err(|error| broken(error.to_string()))?;
        let said = match message.byte().map_err(broken)? {
            READY => Ok(()),
            FAILED => Err(read_failure(&mut message).map_err(broken)?.text),
            other => Err(broken(format!("{other}"))),
        };
        self.lane.received.take();
        said
    }

    pub fn life(&self) -> &Life {
        &self.life
    }

    /// Whether the process has not ended.
    pub fn lives(&self) -> bool {
        !self.process.has_ended()
    }

    /// Sends work. An error: there is no memory for it, and nothing was sent.
    pub fn post(&mut self, write: impl FnOnce(&mut Writer) -> io::Result<()>) -> io::Result<()> {
        self.lane.post(write)
    }

    /// Waits for the answer, which [`Worker::answer`] then reads.
    fn wait(&mut self, until: Instant, stopped: impl Fn() -> Option<Stopped>) -> Result<(), NoAnswer> {
        while !self.has_answered() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(NoAnswer::Late);
            }
            let ended = self.lane.wait(Some(self.process.end()), Some(left.min(TICK)));
            // What it said before it ended counts.
            if ended && !self.has_answered() {
                return Err(NoAnswer::Ended);
            }
            // The host is not asked if there is an answer, because that may take the GIL.
            if let Some(why) = if self.has_answered() { None } else { stopped() } {
                return Err(NoAnswer::Stopped(why));
            }
        }
        Ok(())
    }

    /// Waits until one of these workers answers or ends, or for [`TICK`], at most until then. False: none has.
    pub fn wait_for_any<'a>(workers: impl Iterator<Item = &'a Worker>, until: Option<Instant>) -> bool {
        let workers: Vec<&Worker> = workers.collect();
        let answered = || workers.iter().any(|worker| worker.has_answered());
        if workers.first().is_some_and(|worker| worker.lane.spin.sees(answered)) {
            return true;
        }
        let (bells, ends): (Vec<_>, Vec<_>) = workers.iter().map(|worker| (&worker.lane.ours, worker.process.end())).unzip();
        let left = until.map_or(TICK, |until| until.saturating_duration_since(Instant::now()).min(TICK));
        wait(&bells, &ends, Some(left)) || answered()
    }

    /// Whether there is a whole answer.
    pub fn has_answered(&self) -> bool {
        !self.lane.received.is_free()
    }

    /// Reads the answer, whole or not.
    pub fn answer(&mut self) -> io::Result<Reader<'_>> {
        self.lane.received.read()
    }

    /// The answer was read; it may send the next.
    pub fn take(&self) {
        self.lane.received.take();
    }

    /// Whether it had begun to work on what was sent last.
    pub fn has_begun(&self) -> bool {
        self.lane.received.begun() == self.lane.sent.posted()
    }

    /// Ends it at once: from then on it writes nothing.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Ends these, all at once.
    pub fn kill_all<'a>(workers: impl Iterator<Item = &'a mut Worker>) {
        kill_all(workers.map(|worker| &mut worker.process));
    }

    /// Says how it ended; kills it if it has not.
    pub fn bury(self) -> String {
        let how = self.process.bury();
        let _ = self.life.end.set(how.clone()); // for those who use further lanes
        how
    }

    /// A further lane, for a started function. The worker is ready.
    pub fn add_lane(&self, start: &Start) -> io::Result<Further> {
        let lane = Lane::create()?;
        lane.send(self.process.socket(), &start.write(), None)?;
        Ok(Further { lane, end: self.process.end_too(), life: Arc::clone(&self.life) })
    }

    /// Whether a further lane is one of this worker's.
    pub fn has(&self, further: &Further) -> bool {
        Arc::ptr_eq(&self.life, &further.life)
    }

    /// Asks these to end, and kills those that have not until then.
    pub fn leave(mut workers: Vec<Worker>, until: Instant) {
        let ask = |worker: &mut &mut Worker| worker.post(|message| message.byte(LEAVE)).is_ok();
        let asked: Vec<&mut Worker> = workers.iter_mut().filter_map(|mut worker| ask(&mut worker).then_some(worker)).collect();
        for worker in asked {
            let _ = worker.wait(until, || None); // then it is killed
        }
        Worker::kill_all(workers.iter_mut());
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAnswer {
    /// The process has ended.
    Ended,
    /// The time is over.
    Late,
    Stopped(Stopped),
}

/// Why a worker is not ready for work.
pub enum Unready {
    /// It ended; another may do better.
    Ended(String),
    /// It says why, or says nothing for too long.
    Refused(String),
}
