//! What the first byte of a message says, and what follows it.

use super::mailbox::{Mailbox, Reader, Writer};
use crate::failure::Failure;
use crate::signature::text;
use arroyo_udf_abi as abi;
use std::io;

/// To a worker: a batch for a sync function. The function's number, then the arguments ([`super::parcel`]).
pub const RUN: u8 = 1;
/// To a worker: end, after all that must be done at an exit.
pub const LEAVE: u8 = 2;

/// From a worker: it is ready.
pub const READY: u8 = 1;
/// From a worker: a status and a text; no row was called.
pub const FAILED: u8 = 2;
/// From a worker: how each row ended, in their order ([`super::record`]). Readable before it is posted.
pub const RECORDS: u8 = 3;
/// From a worker: whether outcome and error are there, then the results ([`super::parcel`]).
pub const RESULTS: u8 = 4;

/// To a worker, in the lane of a started function: attempts, and orders for them ([`super::attempts::Outgoing`]).
pub const ATTEMPTS: u8 = 3;
/// From a worker, in that lane: what became of attempts ([`super::attempts::Said`]).
pub const SAID: u8 = 5;
/// To a worker, in that lane: forget the function. Its runtime is gone, with calls that are stuck.
pub const FORGET: u8 = 7;

/// What a worker has counted since its function was started, which its host counts as its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub blocked: u64,
    pub left_behind: u64,
    pub discarded: u64,
}

impl Counts {
    pub fn write(self, message: &mut Writer) -> io::Result<()> {
        [self.blocked, self.left_behind, self.discarded].into_iter().try_for_each(|count| message.number(count))
    }

    pub fn read(message: &mut Reader) -> Result<Counts, String> {
        Ok(Counts { blocked: message.number()?, left_behind: message.number()?, discarded: message.number()? })
    }
}

pub fn write_failure(into: &mut Mailbox, status: abi::Status, text: &str) -> io::Result<()> {
    let mut message = into.write();
    message.byte(FAILED)?;
    message.number(status as u64)?;
    message.text(text.as_bytes())
}

/// Reads what [`write_failure`] has written, after the first byte.
pub fn read_failure(message: &mut Reader) -> Result<Failure, String> {
    let (status, text) = (message.number()?, message.text()?);
    match abi::Status::try_from(status) {
        Ok(status) if status >= abi::INVALID_ARGUMENT => Ok(Failure::new(status, String::from_utf8_lossy(&text))),
        _ => Err(format!("a failure of status {status}")),
    }
}

/// With the lane of a started function: its number, and how it is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    pub function: u32,
    pub allowed_in_flight: u32,
    /// The most rows of a call; 0: it takes one.
    pub batch_size: u64,
    /// Of an attempt, in nanoseconds; `u64::MAX`: none.
    pub timeout: u64,
    pub lineage: [u8; 16],
}

impl Start {
    pub fn write(&self) -> Vec<u8> {
        let numbers = [u64::from(self.function), u64::from(self.allowed_in_flight), self.batch_size, self.timeout];
        numbers.iter().flat_map(|number| number.to_le_bytes()).chain(self.lineage).collect()
    }

    pub fn read(message: &[u8]) -> Option<Start> {
        let (numbers, lineage) = message.split_at_checked(32)?;
        let number = |i: usize| numbers[i * 8..i * 8 + 8].try_into().map(u64::from_le_bytes).ok();
        Some(Start {
            function: u32::try_from(number(0)?).ok()?,
            allowed_in_flight: u32::try_from(number(1)?).ok()?,
            batch_size: number(2)?,
            timeout: number(3)?,
            lineage: lineage.try_into().ok()?,
        })
    }
}

/// The version of what host and worker say to each other, and of the lane: to be raised with each change of them. The first
/// number of [`Hello`], because the two may have toolkits of their own.
pub const PROTOCOL: u64 = 3;

/// With the first lane: the process of the host, the limits, the plugin. Its file, which the host has open, comes along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    pub host: u32,
    pub limits: Limits,
    /// Of the library that the host has described ([`identity`]).
    pub identity: u64,
    /// Where the host has found it; absolute. Another file may lie there now.
    pub plugin: Vec<u8>,
}

/// What tells a library from another build at the same path: a number of the plugin's name, the hash of its source and its
/// build, and the names of its functions.
///
/// # Safety
/// The descriptor is valid.
pub unsafe fn identity(descriptor: &abi::Descriptor) -> u64 {
    // SAFETY: the names of a valid descriptor are NUL-terminated, and it has so many functions of the size that they state.
    let texts = unsafe {
        let functions = (0..descriptor.n_functions as usize).filter_map(|number| (*descriptor.functions.add(number)).as_ref());
        let names = functions.map(|function| text(function.name));
        [text(descriptor.name), text(descriptor.hash)].into_iter().chain(names).collect::<Vec<_>>()
    };
    // FNV-1a, because both sides must agree, whatever compiler has built them.
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |number, byte| (number ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Limits of each worker; 0: none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory that is its own.
    pub memory: u64,
    /// Seconds of processor time.
    pub cpu: u64,
}

impl Hello {
    pub fn write(&self) -> Vec<u8> {
        let numbers = [PROTOCOL, u64::from(self.host), self.limits.memory, self.limits.cpu, self.identity];
        numbers.iter().flat_map(|number| number.to_le_bytes()).chain(self.plugin.iter().copied()).collect()
    }

    /// An error: the host speaks another version, or is none.
    pub fn read(message: &[u8]) -> Result<Hello, String> {
        let number = |i: usize| message.get(i * 8..i * 8 + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
        match number(0) {
            Some(PROTOCOL) => {}
            version => {
                let theirs = version.map_or("none".to_string(), |version| version.to_string());
                return Err(format!(
                    "the host and its worker have different versions of arroyo_udf_plugin: the protocol of this worker is {PROTOCOL}, \
                     that of the host {theirs}; name the python of the host's version in ARROYO_UDF_PYTHON, or build the plugin again"
                ));
            }
        }
        let read = || {
            let limits = Limits { memory: number(2)?, cpu: number(3)? };
            Some(Hello { host: u32::try_from(number(1)?).ok()?, limits, identity: number(4)?, plugin: message[40..].to_vec() })
        };
        read().ok_or_else(|| "the host sends something else than a greeting".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_a_worker_is_none_of_the_good_statuses() {
        let mut mailbox = Mailbox::create().unwrap();
        let mut said = |status| {
            write_failure(&mut mailbox, status, "why").unwrap();
            let mut message = mailbox.read().unwrap();
            assert_eq!(message.byte(), Ok(FAILED));
            read_failure(&mut message)
        };
        assert_eq!(said(abi::USER_CODE), Ok(Failure::new(abi::USER_CODE, "why")));
        assert_eq!(said(abi::OK), Err("a failure of status 0".to_string()));
    }

    #[test]
    fn a_worker_reads_what_the_host_has_written() {
        let hello = Hello { host: 7, limits: Limits { memory: 1 << 40, cpu: 3 }, identity: 1 << 63, plugin: b"/a b/\xff.so".to_vec() };
        assert_eq!(Hello::read(&hello.write()), Ok(hello.clone()));
        assert!(Hello::read(&PROTOCOL.to_le_bytes()).unwrap_err().contains("a greeting"));
        let older = [&7u64.to_le_bytes(), &hello.write()[8..]].concat();
        assert!(Hello::read(&older).unwrap_err().contains("that of the host 7; "), "the versions are told");
        assert!(Hello::read(b"short").is_err());
        let start = Start { function: 7, allowed_in_flight: u32::MAX, batch_size: 9, timeout: 11, lineage: [3; 16] };
        assert_eq!(Start::read(&start.write()), Some(start));
    }
}
