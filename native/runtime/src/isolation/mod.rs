//! Plugins in isolation: their functions run in workers, which are processes or subinterpreters of their own.
//!
//! A plugin that is opened in isolation is an [`Instance`]. Its functions are numbered from the base that [`open`] answers,
//! in one table for all instances of the process ([`TABLE`]). So a host calls them as it calls any plugin: the checks of
//! batches, the handles, and the one machine of each runtime are the same, and order, budget, retries, timeouts and
//! statistics with them. An instance only runs what it is given.
//!
//! Guarantees: a closed instance answers INVALID_STATE, and its workers have ended.
//! Assumes: descriptors are constants of libraries that are never unloaded.

pub mod contract;
pub mod process;
pub mod python;
pub mod shares;

use crate::arrow::Batch;
use crate::exports::{self, Plugin, Ran};
use crate::failure::Failure;
use crate::retired::Retired;
use crate::runtime::Runtime;
use crate::signature::{text, Signature};
use crate::sized;
use crate::sync::Unpoisoned;
use arroyo_udf_abi as abi;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, RwLock};

/// A plugin in one isolation. `function` is its own number of a function, from 0.
pub trait Instance: Send + Sync + 'static {
    /// As [`Plugin::run`].
    fn run(&self, function: u32, signature: &'static Signature, batch: &Arc<Batch>) -> Result<Ran, Failure>;

    /// As [`Plugin::start`].
    fn start(&self, function: u32, runtime: &Arc<Runtime>) -> Result<(), Failure>;

    /// Ends the calls that run, if it can. Whatever is left ends with the instance.
    fn close(&self) {}
}

struct Function {
    signature: &'static Signature,
    number: u32,
    /// None: closed.
    instance: RwLock<Option<Arc<dyn Instance>>>,
}

static FUNCTIONS: RwLock<Vec<&'static Function>> = RwLock::new(Vec::new());

/// The functions of all instances.
pub static TABLE: abi::Table = exports::table::<Isolated>();

/// The signatures of a plugin's functions, the same at each call: they live as long as the process.
///
/// # Safety
/// The descriptor is valid and a constant of a library.
pub unsafe fn signatures(descriptor: *const abi::Descriptor) -> Result<&'static [&'static Signature], String> {
    static KNOWN: Mutex<BTreeMap<usize, &'static [&'static Signature]>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unpoisoned();
    if let Some(signatures) = known.get(&(descriptor as usize)) {
        return Ok(signatures);
    }
    // SAFETY: passed on; a valid descriptor has n_functions functions.
    let signatures = unsafe {
        let described = sized::read(descriptor)?;
        let plugin = text(described.name);
        let retired: &'static Retired = Box::leak(Box::default());
        (0..described.n_functions as usize)
            .map(|number| {
                let signature = Signature::read(&plugin, *described.functions.add(number))?;
                Ok(&*Box::leak(Box::new(Signature { retired, ..signature })))
            })
            .collect::<Result<Vec<_>, String>>()?
    };
    Ok(known.entry(descriptor as usize).or_insert(signatures.leak()))
}

/// Adds the functions of an instance. Answers the number of the first; the others follow.
///
/// # Safety
/// The descriptor is valid and a constant of a library.
pub unsafe fn open(descriptor: *const abi::Descriptor, instance: &Arc<dyn Instance>) -> Result<u32, String> {
    // SAFETY: passed on.
    let signatures = unsafe { signatures(descriptor) }?;
    let opened = (0..).zip(signatures).map(|(number, signature)| {
        &*Box::leak(Box::new(Function { signature, number, instance: RwLock::new(Some(Arc::clone(instance))) }))
    });
    let mut functions = FUNCTIONS.write().unpoisoned();
    let base = functions.len();
    functions.extend(opened);
    Ok(base as u32)
}

/// Closes an instance: its functions answer INVALID_STATE from now on, and its workers end.
pub fn close(base: u32, functions: u32) {
    close_those(base as usize, functions as usize);
}

/// Closes all instances: before the main interpreter ends.
pub fn close_all() {
    close_those(0, usize::MAX);
}

/// The lock is given back before an instance is dropped, because that may wait for its workers.
fn close_those(first: usize, count: usize) {
    let functions = FUNCTIONS.read().unpoisoned().iter().skip(first).take(count).copied().collect::<Vec<_>>();
    let mut instances: Vec<_> = functions.iter().filter_map(|function| function.instance.write().unpoisoned().take()).collect();
    instances.dedup_by(|one, other| Arc::ptr_eq(one, other)); // the functions of an instance follow one another
    instances.iter().for_each(|instance| instance.close());
}

fn get(function: u32) -> Result<&'static Function, Failure> {
    let functions = FUNCTIONS.read().unpoisoned();
    functions.get(function as usize).copied().ok_or_else(|| Failure::argument(format!("function number {function} is not open")))
}

impl Function {
    fn instance(&self) -> Result<Arc<dyn Instance>, Failure> {
        let instance = self.instance.read().unpoisoned().clone();
        instance.ok_or_else(|| Failure::state(format!("{}: the plugin is closed: load it again", self.signature.name)))
    }
}

struct Isolated;

impl Plugin for Isolated {
    /// Each plugin describes itself.
    fn describe() -> *const abi::Descriptor {
        std::ptr::null()
    }

    fn signature(function: u32) -> Result<&'static Signature, Failure> {
        get(function).map(|function| function.signature)
    }

    /// Workers get whole columns.
    fn constants(_: &Signature) -> u64 {
        0
    }

    fn run(function: u32, batch: &Arc<Batch>) -> Result<Ran, Failure> {
        let function = get(function)?;
        function.instance()?.run(function.number, function.signature, batch)
    }

    fn start(function: u32, runtime: &Arc<Runtime>) -> Result<(), Failure> {
        let function = get(function)?;
        function.instance()?.start(function.number, runtime)
    }
}
