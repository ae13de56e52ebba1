//! The worker's side: opens the plugin, runs what the host sends, and ends with the host.
//!
//! Guarantees: the process ends as soon as the host has ended, also if it was killed: a thread waits for that and for
//! nothing else. Ctrl-C at a terminal is the host's. Descriptor 0, which was the control socket, is empty for user code.
//!
//! Assumes that the host is sound: what it sends is not checked again.

use super::child;
use super::lane::Lane;
use super::message::{write_failure, Hello, Limits, LEAVE, READY, RUN};
pub use super::plugin::Journals;
use super::plugin::Plugin;
use super::started;
use crate::threads::{self, AUTHORS_STACK, OWN_STACK};
use arroyo_udf_abi as abi;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;

/// The plugin of this process, which is a worker.
static PLUGIN: OnceLock<Plugin> = OnceLock::new();

/// A worker's life: returns when the host asks it to leave. An error: it cannot work, and the host knows it if it is there.
pub fn serve(journals: Journals) -> Result<(), String> {
    let failed = |what: &str, error: io::Error| format!("{what}: {error}");
    let socket = control_socket().map_err(|error| failed("standard input is not the socket of a host", error))?;
    let received = Lane::receive(socket.as_raw_fd()).map_err(|error| failed("the host sends no memory", error))?;
    let Some((mut lane, message)) = received else { return Ok(()) };
    let hello = Hello::read(&message).ok_or("the host sends something else than a greeting")?;
    let opened = end_with(hello.host, socket)
        .and_then(|()| limit(hello.limits))
        .map_err(|error| error.to_string())
        .and_then(|()| Plugin::open(hello.plugin));
    let said = match &opened {
        Ok(_) => lane.sent.write().byte(READY),
        Err(why) => write_failure(&mut lane.sent, abi::ENVIRONMENT, why),
    };
    said.map_err(|error| failed("no shared memory", error))?;
    let opened = opened.map(|plugin| PLUGIN.get_or_init(|| plugin));
    lane.post_written();
    let plugin = opened?;
    loop {
        while lane.received.is_free() {
            lane.wait(None, None);
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
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        Ok(OwnedFd::from_raw_fd(socket))
    }
}

/// Ends this process when the host ends, or closes the socket. Begins what comes through the socket: started functions.
fn end_with(host: u32, socket: OwnedFd) -> io::Result<()> {
    let end = child::descriptor(host)?; // an error: it has ended already
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
            Ok(Some((lane, message))) => begin(lane, message),
            _ if descriptors.iter().all(|descriptor| descriptor.revents == 0) => {} // a signal
            // SAFETY: it runs nothing of this process.
            _ => unsafe { libc::_exit(0) },
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

fn limit(limits: Limits) -> io::Result<()> {
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
