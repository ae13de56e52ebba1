//! Plugins, and what they say of themselves.

use std::path::Path;
use std::sync::Arc;

use arroyo_udf_abi as abi;

use crate::checks::{known, name, text};
use crate::described::Described;
use crate::table::Table;
use crate::workers::Workers;
use crate::{Error, ErrorKind, Function, Isolation, OnError, Result};

/// A loaded library. It stays loaded until the process ends, so everything that it says of itself lives as long.
#[derive(Clone)]
pub struct Plugin {
    table: Table,
    /// The number of its first function in the table.
    first: u32,
    workers: Option<Arc<Workers>>,
    name: &'static str,
    language: &'static str,
    on_error: OnError,
    functions: Arc<[Arc<Described>]>,
}

impl Plugin {
    /// Loads a library, and checks its table and descriptor. Runs no user code.
    pub fn open(path: impl AsRef<Path>) -> Result<Plugin> {
        let path = path.as_ref();
        let (table, nulls) = Table::load(path).map_err(|text| Error::new(ErrorKind::Load, format!("{}: {text}", path.display())))?;
        let broken = |text: String| Error::new(ErrorKind::Load, format!("{}: the descriptor breaks the contract: {text}", path.display()));
        // SAFETY: a slot of version 1 of a checked table.
        let descriptor = known(unsafe { ((*table.0).describe)() }, abi::DESCRIPTOR_SIZE_1).map_err(broken)?;
        let n_functions =
            u32::try_from(descriptor.n_functions).map_err(|_| broken(format!("it has {} functions", descriptor.n_functions)))?;
        if n_functions > 0 && descriptor.functions.is_null() {
            return Err(broken("its functions are NULL".into()));
        }
        let functions = (0..n_functions).map(|number| {
            // SAFETY: the contract: n_functions pointers.
            let function = known(unsafe { *descriptor.functions.add(number as usize) }, abi::FUNCTION_SIZE_1)?;
            Described::new(number, &function).map(Arc::new)
        });
        let functions = functions.collect::<std::result::Result<Vec<_>, _>>().map_err(broken)?;
        if let Some(twice) = functions.iter().enumerate().find(|(i, one)| functions[..*i].iter().any(|other| other.name == one.name)) {
            return Err(broken(format!("two functions have the name {}", twice.1.name)));
        }
        Ok(Plugin {
            table,
            first: 0,
            workers: None,
            name: name(descriptor.name).map_err(broken)?,
            language: text(descriptor.language).map_err(broken)?,
            on_error: if nulls { OnError::Null } else { OnError::Fail },
            functions: functions.into(),
        })
    }

    /// For messages.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// `"python"`, `"rust"` or `"c"`.
    pub fn language(&self) -> &'static str {
        self.language
    }

    /// All functions, also those that this host cannot call.
    pub fn functions(&self) -> impl Iterator<Item = Function> + '_ {
        self.functions.iter().map(|described| Function {
            table: self.table,
            number: self.first + described.number,
            described: described.clone(),
            plugin: self.name,
            on_error: self.on_error,
            workers: self.workers.clone(),
        })
    }

    /// The function of this name.
    pub fn function(&self, name: &str) -> Result<Function> {
        self.functions().find(|function| function.name() == name).ok_or_else(|| {
            let names: Vec<&str> = self.functions.iter().map(|described| described.name).collect();
            let text = format!("plugin {} has no function {name}: it has {}", self.name, names.join(", "));
            Error::new(ErrorKind::InvalidArgument, text)
        })
    }

    /// The same functions in workers of their own, which end with the last clone, function and runtime of what this returns.
    pub fn isolated(&self, isolation: &Isolation) -> Result<Plugin> {
        let workers = Workers::open(self.table, self.name, isolation)?;
        let (table, first) = workers.place();
        Ok(Plugin { table, first, workers: Some(Arc::new(workers)), ..self.clone() })
    }
}
