//! Memory that two processes share: an anonymous file that both map.
//!
//! Guarantees: the file never shrinks, and what a writer has reserved is there before it writes: where the system has no
//! memory left, that is an error of [`Memory::reserve`], and no SIGBUS. A reader reads no more bytes than there is memory in
//! the file ([`Memory::readable`]), so a file of holes costs it nothing. The memory is gone when both processes have ended,
//! however they ended.
//!
//! Assumes that the other process may write anything at any time: bytes are read once, copied, and checked afterwards. One
//! that makes holes in the file on purpose, while the system has no memory for them, can still end its reader by SIGBUS.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::ptr::null_mut;

/// The size at first, and the least by which it grows. A started function has two such files in each worker.
const STEP: usize = 1 << 14;

/// A mapping of the whole file.
#[derive(Debug)]
pub struct Memory {
    file: File,
    address: *mut u8,
    size: usize,
    /// There is memory for so many bytes from the first on: known to the writer.
    reserved: usize,
    /// The same, of the reader, as it was at the last look.
    readable: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread; whoever has `&mut` may remap it.
unsafe impl Send for Memory {}

impl Memory {
    /// A new file; the other process maps its descriptor.
    pub fn create() -> io::Result<Memory> {
        // SAFETY: the name is a NUL-terminated text; the descriptor that comes back is ours.
        let file = unsafe {
            let descriptor = libc::memfd_create(c"arroyo-udf".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
            if descriptor < 0 {
                return Err(io::Error::last_os_error());
            }
            File::from_raw_fd(descriptor)
        };
        allocate(&file, 0, STEP)?;
        // SAFETY: a file of ours.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Memory::map(file)
    }

    /// The file that the other process has created.
    pub fn open(descriptor: OwnedFd) -> io::Result<Memory> {
        Memory::map(File::from(descriptor))
    }

    fn map(file: File) -> io::Result<Memory> {
        let mut memory = Memory { file, address: null_mut(), size: 0, reserved: 0, readable: 0 };
        memory.follow()?;
        Ok(memory)
    }

    /// Maps the file in its present size, which the other process may have changed.
    pub fn follow(&mut self) -> io::Result<()> {
        let file = self.file.metadata()?;
        let size = usize::try_from(file.len()).map_err(io::Error::other)?;
        self.readable = usize::try_from(file.blocks().saturating_mul(512)).unwrap_or(usize::MAX).min(size);
        if size <= self.size {
            return Ok(());
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a mapping of its own, of a file that never shrinks; a former one is moved, and nobody else points into it.
        let address = unsafe {
            match self.address.is_null() {
                true => libc::mmap(null_mut(), size, access, libc::MAP_SHARED, self.file.as_raw_fd(), 0),
                false => libc::mremap(self.address.cast(), self.size, size, libc::MREMAP_MAYMOVE),
            }
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        (self.address, self.size) = (address.cast(), size);
        Ok(())
    }

    /// Makes room for so many bytes. The addresses of bytes may change.
    pub fn reserve(&mut self, bytes: usize) -> io::Result<()> {
        if bytes > self.reserved {
            let reserved = bytes.max(self.reserved + self.reserved / 2).next_multiple_of(STEP);
            allocate(&self.file, self.reserved, reserved)?;
            self.reserved = reserved;
            self.follow()?;
        }
        Ok(())
    }

    /// What lies behind the first `keep` bytes may have been trimmed.
    pub fn forget(&mut self, keep: usize) {
        self.reserved = self.reserved.min(keep);
    }

    /// Gives the memory behind the first `keep` bytes back to the system; they read as zero.
    pub fn trim(&self, keep: usize) {
        if self.size > keep {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            // SAFETY: a file of ours, in its size. If it fails, the memory stays.
            unsafe { libc::fallocate(self.file.as_raw_fd(), mode, keep as i64, (self.size - keep) as i64) };
        }
    }

    pub fn address(&self) -> *mut u8 {
        self.address
    }

    /// How many bytes from the first on there were at the last look.
    pub fn readable(&self) -> usize {
        self.readable
    }

    /// For the other process.
    pub fn file(&self) -> &File {
        &self.file
    }
}

/// Makes sure that there is memory for these bytes of a file. A signal undoes a whole step, so steps get smaller until one ends
/// between two signals.
fn allocate(file: &File, mut start: usize, end: usize) -> io::Result<()> {
    let mut step = end - start;
    while start < end {
        let bytes = step.min(end - start);
        // SAFETY: a file of ours.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, start as i64, bytes as i64) } == 0 {
            start += bytes;
            continue;
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => step = (step / 2).max(STEP),
            error => return Err(error),
        }
    }
    Ok(())
}

/// The most memory that this process may have of its own. What it shares does not count for the system.
pub fn most_of_this_process() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the struct is whole, for the time of the call.
    match unsafe { libc::getrlimit(libc::RLIMIT_DATA, &mut limit) } {
        0 => usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX),
        _ => usize::MAX,
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if !self.address.is_null() {
            // SAFETY: the mapping is ours, and ends with its owner.
            unsafe { libc::munmap(self.address.cast(), self.size) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocated(memory: &Memory) -> u64 {
        memory.file.metadata().unwrap().blocks() * 512
    }

    #[test]
    fn what_is_reserved_is_there_before_it_is_written() {
        let mut memory = Memory::create().unwrap();
        for bytes in [1, STEP + 1, 10 << 20] {
            memory.reserve(bytes).unwrap();
            assert!(allocated(&memory) >= bytes as u64);
        }
    }

    #[test]
    fn the_file_never_shrinks() {
        let memory = Memory::create().unwrap();
        assert_eq!(memory.file.set_len(0).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(memory.file.set_len(2 * STEP as u64).is_ok());
    }

    #[test]
    fn what_the_system_does_not_give_is_an_error() {
        let mut memory = Memory::create().unwrap();
        assert!(memory.reserve(1 << 63).is_err());
        assert!(memory.reserve(2 * STEP).is_ok());
    }

    #[test]
    fn what_is_trimmed_is_reserved_again_before_it_is_written() {
        let mut memory = Memory::create().unwrap();
        memory.reserve(10 << 20).unwrap();
        memory.trim(STEP);
        assert_eq!(allocated(&memory), STEP as u64);
        memory.forget(STEP);
        memory.reserve(5 << 20).unwrap();
        assert!(allocated(&memory) >= 5 << 20);
    }
}
