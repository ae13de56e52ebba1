//! The worker's side of a started function. It starts through the plugin's table, as in any host. Then the plugin's own copy of
//! this code takes the lane (the extension "worker/2"): the runtime there takes its calls from the host's machine
//! ([`crate::runtime::remote`]).
//!
//! Guarantees: never waits for user code, except at the start and at the end. An answer waits until the host has taken the one
//! before, and has about [`ANSWER`] bytes at most, or one outcome. A value for which there is no memory, or none within the
//! worker's limit, is the error of its row.

use super::attempts::{Said, Wanted};
use super::journal::no_room;
use super::lane::Lane;
use super::mailbox::ring;
use super::message::{write_failure, Counts, Start, ATTEMPTS, FORGET, LEAVE, READY};
use super::plugin::{failure, Plugin};
use crate::failure::Failure;
use crate::limits::{CLOSE_TIME, GRACE};
use crate::log;
use crate::machine::{Stop, Token};
use crate::runtime::remote::Ended;
use crate::runtime::{Runtime, NEWS};
use crate::signature::text;
use crate::sync::Unpoisoned;
use crate::{handles, retired, timer};
use arroyo_udf_abi as abi;
use std::collections::VecDeque;
use std::ffi::{c_char, c_void, CStr};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex};
use std::time::Instant;

pub const ID: &CStr = c"worker/2";

/// The answer of the extension.
#[repr(C)]
pub struct Remote {
    pub size: u64,
    /// Serves the function of a handle, before its first row, until the host lets go of it; takes over the descriptors of the
    /// lane. Answers YES if the handle is to be released, or NO if calls go on that use it.
    pub serve: unsafe extern "C" fn(abi::Handle, *const [RawFd; 4]) -> u32,
}

pub static REMOTE: Remote = Remote { size: size_of::<Remote>() as u64, serve: serve_here };

/// More rows than a host has at once.
const NO_LIMIT: u64 = 1 << 40;

/// How many bytes of values an answer has before the next outcome waits for the next one.
const ANSWER: u64 = 8 << 20;

/// The life of a started function.
pub fn serve(plugin: &'static Plugin, mut lane: Lane, message: &[u8]) {
    let said = match start(plugin, message) {
        Ok((handle, remote)) => lane.post(|message| message.byte(READY)).and_then(|()| lane.into_descriptors()).map(|lane| {
            // SAFETY: the handle is ours, and the descriptors are handed over.
            unsafe {
                if (remote.serve)(handle, &lane.map(IntoRawFd::into_raw_fd)) == abi::YES {
                    (plugin.table.release)(handle, std::ptr::null_mut());
                }
            }
        }),
        Err(failure) => {
            let said = write_failure(&mut lane.sent, failure.status, &failure.text);
            lane.post_written();
            said
        }
    };
    said.unwrap_or_else(give_up);
}

/// Nothing can be said to the host, so it must learn from the end of this process.
fn give_up<T>(error: io::Error) -> T {
    eprintln!("arroyo-udf: a worker process ends, because it cannot answer its host: {error}");
    std::process::abort();
}

fn start(plugin: &'static Plugin, message: &[u8]) -> Result<(abi::Handle, &'static Remote), Failure> {
    let broken = || Failure::internal("the host sends a broken start");
    let start = Start::read(message).ok_or_else(broken)?;
    let function = plugin.functions.get(start.function as usize).ok_or_else(broken)?;
    let options = abi::Options {
        size: size_of::<abi::Options>() as u64,
        allowed_in_flight: start.allowed_in_flight,
        timeout_ns: start.timeout,
        deadline_ns: u64::MAX,
        max_stuck: u32::MAX,
        batch_size: start.batch_size,
        batch_bytes: if start.batch_size > 0 { NO_LIMIT } else { 0 },
        lineage: start.lineage,
        deterministic: abi::NO, // the host's machine finds equal arguments
        ..abi::Options::unset()
    };
    let (mut handle, mut error) = (0, abi::Error::empty());
    // SAFETY: the structs are ours.
    let status = unsafe { (plugin.table.start)(start.function, &options, &mut handle, &mut error) };
    if status != abi::OK {
        return Err(failure(status, error));
    }
    // SAFETY: the plugin answers with null, or with a constant that states its size. One in Python answers once it has started.
    let remote = unsafe { (plugin.table.extension)(ID.as_ptr()).cast::<Remote>().as_ref() };
    remote.filter(|remote| remote.size >= size_of::<Remote>() as u64).map(|remote| (handle, remote)).ok_or_else(|| {
        // SAFETY: the handle is ours.
        unsafe { (plugin.table.release)(handle, std::ptr::null_mut()) };
        let name = &function.signature.name;
        Failure::new(abi::NOT_IMPLEMENTED, format!("{name}: was built before its functions could run in a process: build it again"))
    })
}

unsafe extern "C" fn serve_here(handle: abi::Handle, lane: *const [RawFd; 4]) -> u32 {
    // SAFETY: the worker hands over four open descriptors.
    let lane = unsafe { (*lane).map(|descriptor| OwnedFd::from_raw_fd(descriptor)) };
    let served = Lane::of(lane).and_then(|lane| Served::new(handle, lane)?.serve());
    served.unwrap_or_else(give_up)
}

/// Lines for the host's log.
struct Log {
    bell: RawFd,
    lines: Mutex<Vec<Vec<u8>>>,
}

impl Log {
    fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.lines.lock().unpoisoned())
    }
}

unsafe extern "C" fn write_log(data: *mut c_void, _level: u32, line: *const c_char) {
    // SAFETY: the log outlives the runtime; the text ends with a zero.
    let (log, line) = unsafe { (&*data.cast::<Log>(), text(line)) };
    log.lines.lock().unpoisoned().push(line.into_bytes());
    ring(log.bell);
}

/// [`ring`], as a runtime calls its host: with the bell's descriptor.
unsafe extern "C" fn wake(bell: *mut c_void) {
    ring(bell as usize as RawFd);
}

/// A function that the host's machine calls.
struct Served {
    runtime: Arc<Runtime>,
    lane: Lane,
    log: Box<Log>,
    /// The attempts that the host asks for.
    asked: Vec<Token>,
    /// Attempts that have ended, of which the host has not been told.
    ended: VecDeque<(Token, Ended)>,
    /// The host knows that the runtime has failed.
    told_of_poison: bool,
}

impl Served {
    fn new(handle: abi::Handle, mut lane: Lane) -> io::Result<Served> {
        lane.sent.limit();
        let runtime = handles::get(handle).map_err(|failure| io::Error::other(failure.text))?;
        runtime.become_remote();
        let log = Box::new(Log { bell: lane.ours.as_raw_fd(), lines: Mutex::default() });
        let data = (&raw const *log).cast_mut().cast();
        let place = abi::Log { size: size_of::<abi::Log>() as u64, write: Some(write_log), data };
        // SAFETY: a whole struct; the log outlives its use (`forget`, `leave`).
        runtime.log().set(unsafe { log::Log::read(&place) }.map_err(io::Error::other)?);
        Ok(Served { runtime, lane, log, asked: Vec::new(), ended: VecDeque::new(), told_of_poison: false })
    }

    /// Passes on what comes, in both directions, until the host lets go. An error: there is no memory for an answer.
    fn serve(mut self) -> io::Result<u32> {
        loop {
            let mut worked = false;
            if !self.lane.received.is_free() {
                let mut message = self.lane.received.read()?;
                let kind = message.byte().map_err(io::Error::other)?;
                if kind == ATTEMPTS {
                    let Wanted { wishes, asked, unread } =
                        Wanted::read(self.runtime.signature(), &mut message).map_err(io::Error::other)?;
                    self.runtime.obey(wishes);
                    self.asked.extend(asked);
                    self.ended.extend(unread);
                    worked = true;
                }
                self.lane.take();
                match kind {
                    ATTEMPTS => {}
                    LEAVE => return self.leave().map(|()| abi::YES),
                    FORGET => return Ok(self.forget()),
                    other => return Err(io::Error::other(format!("the host sends a message of kind {other}"))),
                }
            }
            if self.lane.sent.is_free() {
                worked |= self.answer()?;
            }
            // Also before it sleeps: an idle worker keeps no arguments. The host rings once more after the last outcome.
            retired::sweep(Some(self.runtime.signature().retired));
            if !worked {
                self.lane.wait(None, None);
            }
        }
    }

    /// Sends what there is to say. False: nothing; it will ring.
    fn answer(&mut self) -> io::Result<bool> {
        self.ended.extend(self.runtime.take_ended());
        let mut said = Said { lines: self.log.take(), ..Said::default() };
        if !self.told_of_poison {
            said.poison = self.runtime.why_poisoned().unwrap_or_default();
            self.told_of_poison = !said.poison.is_empty();
        }
        // What ended before the poison counts, so the host learns of both at once.
        said.ended = if said.poison.is_empty() { self.next_ended() } else { self.ended.drain(..).collect() };
        let asked = std::mem::take(&mut self.asked);
        let begun = self.runtime.begun(&asked).into_iter().map(|begun| begun.map_or(u64::MAX, timer::on_system_clock));
        said.begun = asked.into_iter().zip(begun).collect();
        if said.lines.is_empty() && said.ended.is_empty() && said.begun.is_empty() && said.poison.is_empty() {
            // A poisoned runtime is over, but its calls may still end.
            let condition = if self.told_of_poison { NEWS } else { abi::RESULTS };
            return Ok(self.runtime.arm(condition, wake, self.lane.ours.as_raw_fd() as usize as *mut c_void));
        }
        said.counts = self.counts();
        self.say(said).map(|()| true)
    }

    /// Outcomes for an answer.
    fn next_ended(&mut self) -> Vec<(Token, Ended)> {
        let mut bytes = 0;
        let is_full = |(_, ended): &(Token, Ended)| {
            let has_room = bytes < ANSWER;
            bytes += ended.bytes();
            !has_room
        };
        let count = self.ended.iter().position(is_full).unwrap_or(self.ended.len());
        self.ended.drain(..count).collect()
    }

    /// Sends an answer; if there is no memory for it, with fewer outcomes, and at last with errors in place of values.
    fn say(&mut self, mut said: Said) -> io::Result<()> {
        while let Err(error) = self.lane.post(|message| said.write(message)) {
            match said.ended.len() {
                0 => return Err(error),
                1 if said.ended[0].1.lose_largest(&no_room(&error)) => {}
                1 => return Err(error),
                several => {
                    let later = said.ended.split_off(several / 2);
                    later.into_iter().rev().for_each(|ended| self.ended.push_front(ended));
                }
            }
        }
        Ok(())
    }

    fn counts(&self) -> Counts {
        let abi::Statistics { blocked, left_behind, discarded, .. } = self.runtime.statistics();
        Counts { blocked, left_behind, discarded }
    }

    /// Leaves the runtime to its calls, which are stuck: its Context is not closed (R13).
    fn forget(self) -> u32 {
        self.runtime.disarm();
        self.runtime.log().set(None);
        abi::NO
    }

    /// Ends the runtime, and says how that went.
    fn leave(mut self) -> io::Result<()> {
        let stopped = self.runtime.stop(Stop::Cancel, CLOSE_TIME + 3 * GRACE);
        let (status, text) = stopped.map_or_else(|failure| (failure.status, failure.text), |status| (status, String::new()));
        self.runtime.disarm();
        self.runtime.log().set(None);
        let (counts, lines) = (self.counts(), self.log.take());
        let until = Instant::now() + GRACE;
        while !self.lane.sent.is_free() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(()); // the host has given up this function, and takes no answer
            }
            self.lane.wait(None, Some(left));
        }
        self.lane.post(|message| {
            message.byte(LEAVE)?;
            message.number(status as u64)?;
            message.text(text.as_bytes())?;
            Said { counts, lines, ..Said::default() }.write(message)
        })
    }
}
