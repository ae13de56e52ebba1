//! Functions in workers.

use std::ptr::null;
use std::sync::Arc;

use arroyo_udf_abi as abi;

use crate::checks::known;
use crate::plugin::Table;
use crate::{error, Error, ErrorKind, Function, Plugin, Result};

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

/// The functions of a plugin in workers, which end with the last clone, function and runtime of it.
#[derive(Clone)]
pub struct Instance {
    plugin: Plugin,
    opened: Arc<Opened>,
}

struct Opened {
    isolation: abi::Isolation,
    instance: abi::Instance,
}

// SAFETY: the table is a constant of the process, and any thread may call it.
unsafe impl Send for Opened {}
// SAFETY: as above.
unsafe impl Sync for Opened {}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: the contract of `close`: an open instance, closed once. There is nobody to tell of a failure.
        let _ = error::check("(an instance)", &[abi::OK], |error| unsafe { (self.isolation.close)(&self.instance, error) });
    }
}

impl Instance {
    pub(crate) fn open(plugin: &Plugin, isolation: &Isolation) -> Result<Instance> {
        // SAFETY: the contract of `extension`: NULL or a constant.
        let found = unsafe { ((*plugin.table().0).extension)(c"isolation/1".as_ptr()) }.cast::<abi::Isolation>();
        if found.is_null() {
            return Err(Error::new(ErrorKind::NotImplemented, format!("plugin {} has no isolation", plugin.name())));
        }
        let broken =
            |why: String| Error::new(ErrorKind::Load, format!("plugin {}: its isolation breaks the contract: {why}", plugin.name()));
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
        Ok(Instance { plugin: plugin.clone(), opened: Arc::new(Opened { isolation: extension, instance }) })
    }

    /// All functions, in workers.
    pub fn functions(&self) -> impl Iterator<Item = Function> + '_ {
        self.plugin.functions_of(Some(self))
    }

    /// The function of this name, in workers.
    pub fn function(&self, name: &str) -> Result<Function> {
        self.plugin.function_of(Some(self), name)
    }

    /// Where a function of the plugin is in the instance.
    pub(crate) fn place_of(&self, number: u32) -> (Table, u32) {
        (Table(self.opened.instance.table), self.opened.instance.first + number)
    }
}
