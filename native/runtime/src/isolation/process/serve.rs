//! The worker's side: opens the plugin, runs what the host sends, and ends with the host.
//!
//! Guarantees: the process ends as soon as the host has ended, also if it was killed, and so does its group: a thread waits
//! for that and for nothing else. A program that a function has put in the place of this one ends with the host, too: the
//! system sends it a signal. Ctrl-C at a terminal is the host's. Descriptor 0, which was the control socket, is empty for
//! user code.
//!
//! Assumes that the host is sound: what it sends is not checked again.

use super::child;
use super::lane::{Lane, Received};
use super::message::{write_failure, Hello, Limits, LEAVE, READY, RUN};
pub use super::plugin::Journals;
use super::plugin::Plugin;
use super::started;
use crate::forks;
use crate::threads::{self, AUTHORS_STACK, OWN_STACK};
use arroyo_udf_abi as abi;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;

/// The plugin of this process, which is a worker.
static PLUGIN: OnceLock<Plugin> = OnceLock::new();

/// A worker's life: returns when the host asks it to leave. An error: it cannot work, and the host knows it if it is there.
pub fn serve(journals: Journals) -> Result<(), String> {
    let failed = |what: &str, error: io::Error| format!("{what}: {error}");
    let socket = control_socket().map_err(|error| failed("standard input is not the socket of a host", error))?;
    let received = Lane::receive(socket.as_raw_fd()).map_err(|error| failed("the host sends no memory", error))?;
    let Some(Received { mut lane, message, file }) = received else { return Ok(()) };
    let opened = Hello::read(&message).and_then(|hello| {
        threads::work_for_a_host();
        forks::watch().map_err(|failure| failure.text)?;
        end_with(hello.host, socket).and_then(|()| limit(hello.limits)).map_err(|error| error.to_string())?;
        Plugin::open(hello.plugin, file.ok_or("the host sends no library")?, hello.identity)
    });
    let said = match &opened {
        Ok(_) => lane.sent.write().byte(READY),
        Err(why) => write_failure(&mut lane.sent, abi::ENVIRONMENT, why),
    };
    said.map_err(|error| failed("no shared memory", error))?;
    let opened = opened.map(|plugin| PLUGIN.get_or_init(|| plugin));
    lane.sent.limit();
    lane.post_written();
    let plugin = opened?;
    loop {
        if !lane.spin.sees(|| !lane.received.is_free()) {
            while lane.received.is_free() {
                lane.wait(None, None);
            }
        }
        let number = lane.received.posted();
        let Lane { sent, received, .. } = &mut lane;
        let mut message = received.read().map_err(|error| failed("no shared memory", error))?;
        match message.byte()? {
            LEAVE => return Ok(()),
            RUN => plugin.run(&mut message, sent, number, journals)?,
            other => return Err(format!("the host sends a message of kind {other}")),
        }
        lane.received.take();
        lane.post_written();
    }
}

/// The control socket, moved away from standard input, which is empty from now on.
fn control_socket() -> io::Result<OwnedFd> {
    let nothing = File::open("/dev/null")?;
    // SAFETY: descriptor 0 is ours by the agreement with the host; the copy is a new one.
    unsafe {
        let socket = libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 3);
        if socket < 0 || libc::dup2(nothing.as_raw_fd(), 0) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(socket))
    }
}

/// What the system sends a worker at the end of the host. Nobody else uses it, and it ends a program that does not know it.
const HOST_ENDED: libc::c_int = libc::SIGSTKFLT;

/// The process of the host.
static HOST: AtomicU32 = AtomicU32::new(0);

extern "C" fn nothing(_: libc::c_int) {}

/// The system sends [`HOST_ENDED`] also when only the host's thread has ended that has started this process.
extern "C" fn host_ended(_: libc::c_int) {
    // SAFETY: it takes nothing and always succeeds.
    if unsafe { libc::getppid() } as u32 != HOST.load(Ordering::Relaxed) {
        end_group();
    }
}

/// Ends this process and all that it has started, at once. May be called in a handler of a signal.
fn end_group() {
    // SAFETY: it runs nothing of this process, which leads its group.
    unsafe {
        libc::kill(-libc::getpid(), libc::SIGKILL);
        libc::_exit(0);
    }
}

/// Handles a signal. Unlike an ignored one, it is handled here alone, and not in the programs that a function starts.
fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) -> io::Result<()> {
    // SAFETY: all fields of the struct may be zero, and those that count are set. The handler may be called at any time.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        match libc::sigaction(signal, &action, std::ptr::null_mut()) {
            handled if handled < 0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// Ends this process when the host ends, or closes the socket. Begins what comes through the socket: started functions.
fn end_with(host: u32, socket: OwnedFd) -> io::Result<()> {
    let end = child::descriptor(host)?; // an error: it has ended already
    HOST.store(host, Ordering::Relaxed);
    handle(libc::SIGINT, nothing)?;
    handle(HOST_ENDED, host_ended)?;
    // SAFETY: it takes a number.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, HOST_ENDED) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it takes nothing and always succeeds.
    if unsafe { libc::getppid() } as u32 != host {
        return Err(io::Error::other("the host has ended"));
    }
    threads::spawn("udf-host-watch", OWN_STACK, move || loop {
        let mut descriptors = [socket.as_raw_fd(), end.as_raw_fd()].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        // SAFETY: an array of two.
        unsafe { libc::poll(descriptors.as_mut_ptr(), 2, -1) };
        let arrived = if descriptors[0].revents == libc::POLLIN { Lane::receive(socket.as_raw_fd()) } else { Ok(None) };
        match arrived {
            Ok(Some(Received { lane, message, .. })) => begin(lane, message),
            _ if descriptors.iter().all(|descriptor| descriptor.revents == 0) => {} // a signal
            _ => end_group(),
        }
    })?;
    Ok(())
}

/// Starts a function, in a thread of its own, which also says what is wrong.
fn begin(lane: Lane, message: Vec<u8>) {
    let Some(plugin) = PLUGIN.get() else { return };
    // Without a thread the lane ends, and the host waits no longer than for a start.
    drop(threads::spawn("udf-started", AUTHORS_STACK, move || started::serve(plugin, lane, &message)));
}

/// The most descriptors that a worker takes: each started function needs some.
const DESCRIPTORS: u64 = 1 << 16;

fn limit(limits: Limits) -> io::Result<()> {
    let mut files = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the struct is whole, for the time of the call. The host may have raised its own limit since; if it is refused,
    // the worker goes on with what it has.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut files) == 0 && files.rlim_cur < files.rlim_max.min(DESCRIPTORS) {
            files.rlim_cur = files.rlim_max.min(DESCRIPTORS);
            libc::setrlimit(libc::RLIMIT_NOFILE, &files);
        }
    }
    // A second between the two: at the soft limit comes SIGXCPU, which says what it is, at the hard one SIGKILL.
    for (resource, most, hard) in
        [(libc::RLIMIT_DATA, limits.memory, limits.memory), (libc::RLIMIT_CPU, limits.cpu, limits.cpu.saturating_add(1))]
    {
        if most == 0 {
            continue;
        }
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the struct is whole, for the time of the call.
        if unsafe { libc::getrlimit(resource, &mut limit) } < 0 {
            return Err(io::Error::last_os_error());
        }
        limit = libc::rlimit { rlim_cur: most, rlim_max: limit.rlim_max.min(hard) };
        // SAFETY: the struct is whole.
        if unsafe { libc::setrlimit(resource, &limit) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
