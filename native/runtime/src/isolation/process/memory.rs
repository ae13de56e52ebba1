//! Memory that two processes share: an anonymous file that both map.
//!
//! Guarantees: it never shrinks, so no access to mapped bytes fails, whatever the other process does. It is gone when both
//! processes have ended, however they ended.
//!
//! Assumes that the other process may write anything at any time: bytes are read once, copied, and checked afterwards.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;

/// The size at first, and the least by which it grows.
const STEP: usize = 1 << 16;

/// A mapping of the whole file.
#[derive(Debug)]
pub struct Memory {
    file: File,
    address: *mut u8,
    size: usize,
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
        file.set_len(STEP as u64)?;
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
        let mut memory = Memory { file, address: null_mut(), size: 0 };
        memory.remap()?;
        Ok(memory)
    }

    /// Maps the file in its present size.
    fn remap(&mut self) -> io::Result<()> {
        let size = usize::try_from(self.file.metadata()?.len()).map_err(io::Error::other)?;
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
        if bytes > self.size {
            let size = bytes.max(self.size * 2).next_multiple_of(STEP);
            self.file.set_len(size as u64)?;
            self.remap()?;
        }
        Ok(())
    }

    /// Maps what the other process has reserved.
    pub fn follow(&mut self) -> io::Result<()> {
        self.remap()
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

    pub fn size(&self) -> usize {
        self.size
    }

    /// For the other process.
    pub fn file(&self) -> &File {
        &self.file
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
