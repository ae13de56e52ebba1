//! A lane: two mailboxes and their bells, one for each direction. And how descriptors get from one process to another.
//!
//! Both processes hold the same lane, mirrored: what one sends, the other receives.

use super::mailbox::{wait, Bell, Mailbox, Writer};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

#[derive(Debug)]
pub struct Lane {
    pub sent: Mailbox,
    pub received: Mailbox,
    /// Rings the other process.
    pub theirs: Bell,
    /// Is rung by the other process.
    pub ours: Bell,
}

/// Of a lane: its two files and its two bells.
const DESCRIPTORS: usize = 4;
/// The most that come with a message.
const MOST_DESCRIPTORS: usize = DESCRIPTORS + 1;

impl Lane {
    pub fn create() -> io::Result<Lane> {
        Ok(Lane { sent: Mailbox::create()?, received: Mailbox::create()?, theirs: Bell::create()?, ours: Bell::create()? })
    }

    /// Sends a message. The mailbox is free. An error: there is no memory for it, and nothing was sent.
    pub fn post(&mut self, write: impl FnOnce(&mut Writer) -> io::Result<()>) -> io::Result<()> {
        write(&mut self.sent.write())?;
        self.post_written();
        Ok(())
    }

    /// Sends the message that is written.
    pub fn post_written(&self) {
        self.sent.post();
        self.theirs.ring();
    }

    /// The received message was read: the other process may send the next.
    pub fn take(&self) {
        self.received.take();
        self.theirs.ring();
    }

    /// Its descriptors, for [`Lane::of`] in another copy of this code in this process.
    pub fn into_descriptors(self) -> io::Result<[OwnedFd; DESCRIPTORS]> {
        let file = |mailbox: &Mailbox| mailbox.memory().file().try_clone().map(OwnedFd::from);
        Ok([file(&self.sent)?, file(&self.received)?, self.theirs.into(), self.ours.into()])
    }

    pub fn of([sent, received, theirs, ours]: [OwnedFd; DESCRIPTORS]) -> io::Result<Lane> {
        Ok(Lane { sent: Mailbox::open(sent)?, received: Mailbox::open(received)?, theirs: Bell::open(theirs), ours: Bell::open(ours) })
    }

    /// Waits until the other process rings, or `end` has something to say, for at most so long. Answers whether `end` does.
    pub fn wait(&self, end: Option<RawFd>, timeout: Option<Duration>) -> bool {
        wait(&[&self.ours], end.as_slice(), timeout)
    }

    /// Sends it to the other process, with a message and perhaps a file. Never waits: a process that takes nothing from its
    /// socket is an error of the kind `WouldBlock`.
    pub fn send(&self, socket: RawFd, message: &[u8], file: Option<RawFd>) -> io::Result<()> {
        let own = [
            self.sent.memory().file().as_raw_fd(),
            self.received.memory().file().as_raw_fd(),
            self.theirs.as_raw_fd(),
            self.ours.as_raw_fd(),
        ];
        send(socket, message, &own.into_iter().chain(file).collect::<Vec<_>>())
    }

    /// Receives one, mirrored, with what was sent with it. None: the other end of the socket is closed.
    pub fn receive(socket: RawFd) -> io::Result<Option<Received>> {
        let Some((message, descriptors)) = receive(socket)? else { return Ok(None) };
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or_else(|| io::Error::other("a message without its descriptors"));
        let [received, sent, ours, theirs] = [next()?, next()?, next()?, next()?];
        Ok(Some(Received { lane: Lane::of([sent, received, theirs, ours])?, message, file: descriptors.next() }))
    }
}

/// A lane, and what was sent with it.
pub struct Received {
    pub lane: Lane,
    pub message: Vec<u8>,
    pub file: Option<OwnedFd>,
}

/// Two ends of a socket that keeps messages apart. Programs that are started inherit neither.
pub fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors, which are then ours.
    unsafe {
        if libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr()) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// The room for descriptors beside a message and for what precedes them, in words, so that it is aligned.
const CONTROL: usize = 4 + MOST_DESCRIPTORS.div_ceil(2);
const LONGEST: usize = 1 << 16;

fn header<'a>(part: &'a mut libc::iovec, control: &'a mut [u64; CONTROL]) -> libc::msghdr {
    // SAFETY: all fields of the struct may be zero.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    (header.msg_iov, header.msg_iovlen) = (part, 1);
    (header.msg_control, header.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(control));
    header
}

fn send(socket: RawFd, message: &[u8], descriptors: &[RawFd]) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: message.len() };
    let mut control = [0u64; CONTROL];
    let mut header = header(&mut part, &mut control);
    let bytes = size_of_val(descriptors) as u32;
    // SAFETY: the header points to the part and to room for the most descriptors and what precedes them.
    unsafe {
        header.msg_controllen = libc::CMSG_SPACE(bytes) as usize;
        let first = libc::CMSG_FIRSTHDR(&header);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = libc::SCM_RIGHTS;
        (*first).cmsg_len = libc::CMSG_LEN(bytes) as usize;
        std::ptr::copy_nonoverlapping(descriptors.as_ptr().cast(), libc::CMSG_DATA(first), bytes as usize);
        match libc::sendmsg(socket, &header, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) {
            sent if sent < 0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

fn receive(socket: RawFd) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let mut message = vec![0u8; LONGEST];
    let mut part = libc::iovec { iov_base: message.as_mut_ptr().cast(), iov_len: message.len() };
    let mut control = [0u64; CONTROL];
    let mut header = header(&mut part, &mut control);
    // SAFETY: the header points to room of the lengths that it states; the system fills in what it received.
    unsafe {
        let length = loop {
            match libc::recvmsg(socket, &mut header, libc::MSG_CMSG_CLOEXEC) {
                length if length >= 0 => break length as usize,
                _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                _ => return Err(io::Error::last_os_error()),
            }
        };
        if length == 0 {
            return Ok(None);
        }
        message.truncate(length);
        let first = libc::CMSG_FIRSTHDR(&header);
        if first.is_null() || (*first).cmsg_type != libc::SCM_RIGHTS {
            return Err(io::Error::other("a message without its descriptors"));
        }
        let count = ((*first).cmsg_len as usize - libc::CMSG_LEN(0) as usize) / size_of::<RawFd>();
        let data = libc::CMSG_DATA(first).cast::<RawFd>();
        let descriptors = (0..count).map(|i| OwnedFd::from_raw_fd(data.add(i).read_unaligned())).collect();
        Ok(Some((message, descriptors)))
    }
}
