//! The workers of an instance of a plugin.

use std::ptr::null;

use arroyo_udf_abi as abi;

use crate::checks::known;
use crate::table::Table;
use crate::{error, Error, ErrorKind, Result};

/// What a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worker {
    /// An interpreter of Python with a lock of its own: only for plugins in Python, from 3.13 on.
    Subinterpreter,
    /// A process. If it dies, the row in hand is an error, and the next one is started.
    Process {
        /// Bytes that it may have of its own.
        memory_limit: Option<u64>,
        /// Seconds of processor time that it may use.
        cpu_limit: Option<u64>,
    },
}

/// How functions are isolated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isolation {
    /// What a worker is.
    pub worker: Worker,
    /// How many; 0: one.
    pub workers: u32,
}

/// Workers of one plugin, which end when it is dropped.
pub(crate) struct Workers {
    isolation: abi::Isolation,
    instance: abi::Instance,
}

// SAFETY: the table is a constant of the process, and any thread may call it.
unsafe impl Send for Workers {}
// SAFETY: as above.
unsafe impl Sync for Workers {}

impl Drop for Workers {
    fn drop(&mut self) {
        // SAFETY: the contract of `close`: an open instance, closed once. There is nobody to tell of a failure.
        let _ = error::check("(an instance)", &[abi::OK], |error| unsafe { (self.isolation.close)(&self.instance, error) });
    }
}

impl Workers {
    pub(crate) fn open(table: Table, plugin: &str, isolation: &Isolation) -> Result<Workers> {
        // SAFETY: the contract of `extension`: NULL or a constant.
        let found = unsafe { ((*table.0).extension)(c"isolation/1".as_ptr()) }.cast::<abi::Isolation>();
        if found.is_null() {
            return Err(Error::new(ErrorKind::NotImplemented, format!("plugin {plugin} has no isolation")));
        }
        let broken = |why: String| Error::new(ErrorKind::Load, format!("plugin {plugin}: its isolation breaks the contract: {why}"));
        let extension = known(found, abi::ISOLATION_SIZE_1).map_err(broken)?;
        let (mode, memory_limit, cpu_limit) = match isolation.worker {
            Worker::Subinterpreter => (abi::SUBINTERPRETER, None, None),
            Worker::Process { memory_limit, cpu_limit } => (abi::PROCESS, memory_limit, cpu_limit),
        };
        let options = abi::IsolationOptions {
            size: size_of::<abi::IsolationOptions>() as u64,
            mode,
            workers: isolation.workers,
            memory_limit: memory_limit.unwrap_or(0),
            cpu_limit: cpu_limit.unwrap_or(0),
        };
        let mut instance = abi::Instance { size: size_of::<abi::Instance>() as u64, table: null(), first: 0, reserved: 0 };
        // SAFETY: the contract of `open`; all pointers are to locals.
        error::check("(an instance)", &[abi::OK], |error| unsafe { (extension.open)(&options, &mut instance, error) })?;
        if instance.table.is_null() {
            return Err(broken("it has no table".into()));
        }
        Ok(Workers { isolation: extension, instance })
    }

    /// Their table, and the number in it of the plugin's first function.
    pub(crate) fn place(&self) -> (Table, u32) {
        (Table(self.instance.table), self.instance.first)
    }
}
