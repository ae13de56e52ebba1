//! A mailbox: one message at a time, from one process to another, in shared memory. And the bell that wakes the other one.
//!
//! A message is written, posted, read, and taken away; then the next may be written. While a message grows, its writer can
//! publish how many parts of it are whole: the reader finds these even if the writer dies ([`Reader::parts`]).
//!
//! Guarantees: a reader never reads beyond the memory that is there, whatever the writer has written. A posted message is seen
//! with all its bytes (release and acquire). A mailbox whose message was taken keeps at most [`KEPT`] bytes.

use super::memory::{most_of_this_process, Memory};
use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What lies at the beginning of the memory.
#[repr(C)]
struct Head {
    posted: AtomicU64,
    taken: AtomicU64,
    parts: AtomicU64,
    begun: AtomicU64,
}

/// Where messages begin: buffers of Arrow are aligned to it.
pub const ALIGNMENT: usize = 64;

/// What a message larger than this took is given back when it is taken.
const KEPT: usize = 16 << 20;

#[derive(Debug)]
pub struct Mailbox {
    memory: Memory,
    /// The most bytes of a message.
    most: usize,
}

impl Mailbox {
    pub fn create() -> io::Result<Mailbox> {
        Memory::create().map(Mailbox::of)
    }

    pub fn open(descriptor: OwnedFd) -> io::Result<Mailbox> {
        Memory::open(descriptor).map(Mailbox::of)
    }

    fn of(memory: Memory) -> Mailbox {
        Mailbox { memory, most: usize::MAX }
    }

    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// A message has at most so many bytes as this process may have of its own: the limit of that is one of this, too.
    pub fn limit(&mut self) {
        self.most = most_of_this_process();
    }

    fn head(&self) -> &Head {
        // SAFETY: the memory is larger than the head, aligned to pages, and mapped as long as self. All fields are atomics.
        unsafe { &*self.memory.address().cast::<Head>() }
    }

    /// Whether the last message has been taken away.
    pub fn is_free(&self) -> bool {
        let head = self.head();
        head.posted.load(Ordering::Acquire) == head.taken.load(Ordering::Acquire)
    }

    /// The number of the last message.
    pub fn posted(&self) -> u64 {
        self.head().posted.load(Ordering::Acquire)
    }

    /// Begins a message. The mailbox is free.
    pub fn write(&mut self) -> Writer<'_> {
        self.memory.forget(KEPT); // the reader has trimmed it
        self.head().parts.store(0, Ordering::Release);
        Writer { memory: &mut self.memory, at: ALIGNMENT, most: self.most }
    }

    /// Posts the message that was written. Ring the bell afterwards.
    pub fn post(&self) {
        let head = self.head();
        head.posted.store(head.posted.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// The number of the message that the writer has begun last. From then on, parts belong to that one.
    pub fn begun(&self) -> u64 {
        self.head().begun.load(Ordering::Acquire)
    }

    /// Reads the message, whole or not.
    pub fn read(&mut self) -> io::Result<Reader<'_>> {
        self.memory.follow()?;
        let parts = self.head().parts.load(Ordering::Acquire);
        Ok(Reader { memory: &self.memory, at: ALIGNMENT, parts })
    }

    /// Takes the message away.
    pub fn take(&self) {
        if self.memory.readable() > KEPT {
            self.memory.trim(KEPT);
        }
        let head = self.head();
        head.taken.store(head.posted.load(Ordering::Acquire), Ordering::Release);
    }
}

/// Writes a message. An error: there is no memory for it.
pub struct Writer<'a> {
    memory: &'a mut Memory,
    at: usize,
    /// How far it may go.
    most: usize,
}

impl Writer<'_> {
    fn room(&mut self, bytes: usize) -> io::Result<*mut u8> {
        let end = self.at.checked_add(bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        if end > self.most {
            return Err(beyond(self.most));
        }
        self.memory.reserve(end)?;
        let start = self.at;
        self.at = end;
        Ok(self.memory.address().wrapping_add(start))
    }

    pub fn byte(&mut self, byte: u8) -> io::Result<()> {
        // SAFETY: room for one byte was made.
        self.room(1).map(|to| unsafe { to.write(byte) })
    }

    pub fn number(&mut self, number: u64) -> io::Result<()> {
        // SAFETY: room for eight bytes was made, which may be unaligned.
        self.room(8).map(|to| unsafe { to.cast::<u64>().write_unaligned(number) })
    }

    /// The length, then the bytes.
    pub fn text(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.number(bytes.len() as u64)?;
        // SAFETY: the slice has so many bytes.
        unsafe { self.bytes(bytes.as_ptr(), bytes.len()) }
    }

    /// # Safety
    /// So many bytes can be read at `from`.
    pub unsafe fn bytes(&mut self, from: *const u8, count: usize) -> io::Result<()> {
        let to = self.room(count)?;
        if count > 0 {
            // SAFETY: as promised, and room was made.
            unsafe { std::ptr::copy_nonoverlapping(from, to, count) };
        }
        Ok(())
    }

    /// Writes all of something, or nothing of it.
    pub fn whole(&mut self, write: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        let before = self.at;
        write(self).inspect_err(|_| self.at = before)
    }

    /// As [`Writer::whole`], for what is said instead of something that the limit of this process leaves no room for.
    pub fn beyond_limit(&mut self, write: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        let most = std::mem::replace(&mut self.most, usize::MAX);
        let written = self.whole(write);
        self.most = most;
        written
    }

    /// Aligned room for a buffer, for the caller to fill in before anything else is written.
    pub fn buffer(&mut self, bytes: usize) -> io::Result<*mut u8> {
        self.at = self.at.next_multiple_of(ALIGNMENT);
        self.room(bytes)
    }

    /// Says that the writer works on the other mailbox's message of this number, and that parts belong to that one.
    pub fn begin(&self, number: u64) {
        self.head().begun.store(number, Ordering::Release);
    }

    fn head(&self) -> &Head {
        // SAFETY: as in `Mailbox::head`.
        unsafe { &*self.memory.address().cast::<Head>() }
    }

    /// Publishes that what is written up to here has so many whole parts.
    pub fn publish(&mut self, parts: u64) {
        self.head().parts.store(parts, Ordering::Release);
    }
}

#[cold]
fn beyond(most: usize) -> io::Error {
    io::Error::other(format!("an answer has at most {most} bytes (memory_limit): send fewer rows at once, or raise it"))
}

/// Reads a message. An error is the text that it is broken, which never happens while the writer is sound.
#[derive(Clone)]
pub struct Reader<'a> {
    memory: &'a Memory,
    at: usize,
    parts: u64,
}

impl Reader<'_> {
    /// How many parts were published when the reading began.
    pub fn parts(&self) -> u64 {
        self.parts
    }

    fn skip(&mut self, bytes: usize) -> Result<*const u8, String> {
        let end = self.at.checked_add(bytes).filter(|end| *end <= self.memory.readable()).ok_or("a message is cut off")?;
        let start = self.at;
        self.at = end;
        Ok(self.memory.address().wrapping_add(start))
    }

    pub fn byte(&mut self) -> Result<u8, String> {
        // SAFETY: the byte is mapped.
        self.skip(1).map(|from| unsafe { from.read_volatile() })
    }

    pub fn number(&mut self) -> Result<u64, String> {
        let mut bytes = [0; 8];
        let from = self.skip(8)?;
        // SAFETY: eight bytes are mapped there.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), 8) };
        Ok(u64::from_le_bytes(bytes))
    }

    pub fn size(&mut self) -> Result<usize, String> {
        usize::try_from(self.number()?).map_err(|error| error.to_string())
    }

    /// A text, copied.
    pub fn text(&mut self) -> Result<Box<[u8]>, String> {
        let length = self.size()?;
        self.bytes(length)
    }

    /// So many bytes, copied.
    pub fn bytes(&mut self, count: usize) -> Result<Box<[u8]>, String> {
        let from = self.skip(count)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(count).map_err(|error| error.to_string())?;
        // SAFETY: so many bytes are mapped there, and the vector has room for them.
        unsafe {
            std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), count);
            bytes.set_len(count);
        }
        Ok(bytes.into())
    }

    /// The place of an aligned buffer.
    pub fn buffer(&mut self, bytes: usize) -> Result<*const u8, String> {
        self.at = self.at.next_multiple_of(ALIGNMENT).min(self.memory.readable());
        self.skip(bytes)
    }
}

/// Wakes the other process: an eventfd.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    pub fn create() -> io::Result<Bell> {
        // SAFETY: the descriptor that comes back is ours.
        match unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) } {
            descriptor if descriptor < 0 => Err(io::Error::last_os_error()),
            // SAFETY: as above.
            descriptor => Ok(Bell(unsafe { OwnedFd::from_raw_fd(descriptor) })),
        }
    }

    pub fn open(descriptor: OwnedFd) -> Bell {
        Bell(descriptor)
    }

    pub fn ring(&self) {
        ring(self.0.as_raw_fd());
    }

    /// Makes it quiet.
    fn answer(&self) {
        let mut number = 0u64;
        // SAFETY: eight bytes, as an eventfd gives them. It does not wait.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut number).cast(), 8) };
    }
}

/// Rings the bell with this descriptor.
pub fn ring(bell: RawFd) {
    let one = 1u64;
    // SAFETY: eight bytes, as an eventfd wants them. It cannot fail but for a number that is never reached.
    unsafe { libc::write(bell, (&raw const one).cast(), 8) };
}

/// How long to look for an answer before it is waited for: a sleep and its wake-up take longer.
const SPIN: Duration = Duration::from_micros(20);
/// How many waits do not look at all after one that has looked in vain.
const REST: u32 = 15;

/// Looks for an answer that comes soon. It costs a core, so it rests where answers take longer, or where there is no other
/// core to answer.
#[derive(Debug, Default)]
pub struct Spin {
    rest: Cell<u32>,
}

impl Spin {
    /// Whether it is `there`, now or soon.
    pub fn sees(&self, there: impl Fn() -> bool) -> bool {
        static CORES: OnceLock<usize> = OnceLock::new();
        if there() {
            return true;
        }
        let rest = self.rest.get();
        if rest > 0 || *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from)) == 1 {
            self.rest.set(rest.saturating_sub(1));
            return false;
        }
        let until = Instant::now() + SPIN;
        while Instant::now() < until {
            if there() {
                return true;
            }
            std::hint::spin_loop();
        }
        self.rest.set(REST);
        false
    }
}

/// Waits until a bell rings or one of the `ends` has something to say, for at most so long. Answers whether one does.
pub fn wait(bells: &[&Bell], ends: &[RawFd], timeout: Option<Duration>) -> bool {
    let all = bells.iter().map(|bell| bell.as_raw_fd()).chain(ends.iter().copied());
    let mut all: Vec<_> = all.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
    let time = timeout.map(|time| libc::timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) });
    // SAFETY: the vector has so many elements; the time is null or valid; the mask is null.
    unsafe {
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        libc::ppoll(all.as_mut_ptr(), all.len() as libc::nfds_t, time, std::ptr::null());
    }
    let (rung, ended) = all.split_at(bells.len());
    bells.iter().zip(rung).filter(|(_, descriptor)| descriptor.revents != 0).for_each(|(bell, _)| bell.answer());
    ended.iter().any(|descriptor| descriptor.revents != 0)
}

impl From<Bell> for OwnedFd {
    fn from(bell: Bell) -> OwnedFd {
        bell.0
    }
}

impl AsRawFd for Bell {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn post(mailbox: &mut Mailbox, text: &[u8]) {
        mailbox.write().text(text).unwrap();
        mailbox.post();
    }

    #[test]
    fn a_huge_message_is_given_back_when_it_is_taken() {
        let mut sent = Mailbox::create().unwrap();
        let mut received = Mailbox::open(sent.memory().file().try_clone().unwrap().into()).unwrap();
        for bytes in [3 * KEPT, 10, 2 * KEPT] {
            let text = vec![7u8; bytes];
            post(&mut sent, &text);
            assert_eq!(received.read().unwrap().text().as_deref(), Ok(&*text));
            received.take();
            assert!(sent.memory().file().metadata().unwrap().blocks() * 512 <= KEPT as u64);
        }
    }

    #[test]
    fn what_has_no_room_is_not_written_in_part() {
        let mut mailbox = Mailbox::create().unwrap();
        let mut message = mailbox.write();
        message.most = ALIGNMENT + 39;
        message.whole(|message| message.text(b"first")).unwrap();
        assert!(message.whole(|message| message.text(&[0; 100])).is_err());
        message.whole(|message| message.text(b"second")).unwrap();
        assert!(message.whole(|message| message.text(b"third")).is_err());
        message.beyond_limit(|message| message.text(b"no room")).unwrap();
        assert!(message.whole(|message| message.byte(0)).is_err(), "the limit is back");
        mailbox.post();
        let mut read = mailbox.read().unwrap();
        assert_eq!([(); 3].map(|()| read.text().unwrap()), [&b"first"[..], b"second", b"no room"].map(Box::from));
    }

    #[test]
    fn a_file_of_holes_is_no_message() {
        let mut mailbox = Mailbox::create().unwrap();
        mailbox.write().number(1 << 30).unwrap(); // the length of a text
        mailbox.post();
        mailbox.memory().file().set_len(2 << 30).unwrap();
        assert_eq!(mailbox.read().unwrap().text(), Err("a message is cut off".to_string()));
    }
}
