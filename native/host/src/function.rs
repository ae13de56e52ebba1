//! Functions, and calls of sync ones. `runtime.rs` starts async ones.

use std::sync::Arc;

use arroyo_udf_abi as abi;

use crate::described::Described;
use crate::table::Table;
use crate::workers::Workers;
use crate::{error, Batch, BatchContext, FunctionKind, OnError, Result, Results, Volatility};

/// A function of a plugin, here or in workers. Clones are the same function.
#[derive(Clone)]
pub struct Function {
    pub(crate) table: Table,
    pub(crate) number: u32,
    pub(crate) described: Arc<Described>,
    pub(crate) plugin: &'static str,
    pub(crate) on_error: OnError,
    /// Kept as long as their functions.
    pub(crate) workers: Option<Arc<Workers>>,
}

impl Function {
    /// Its name in the plugin.
    pub fn name(&self) -> &'static str {
        self.described.name
    }

    /// The name of its plugin.
    pub fn plugin(&self) -> &'static str {
        self.plugin
    }

    /// How it is called.
    pub fn kind(&self) -> FunctionKind {
        self.described.kind
    }

    /// What its results depend on, if its author has said so.
    pub fn volatility(&self) -> Option<Volatility> {
        self.described.volatility
    }

    /// Its author's text.
    pub fn documentation(&self) -> Option<&'static str> {
        self.described.documentation
    }

    /// What a failed row does to a query, as the library was built (`arroyo-udf build --on-error`); an engine may decide
    /// otherwise.
    pub fn on_error(&self) -> OnError {
        self.on_error
    }

    /// Whether it runs in workers.
    pub fn is_isolated(&self) -> bool {
        self.workers.is_some()
    }

    /// The schemas of its arguments, a struct, and of a value, for another library of Arrow. Nobody releases them.
    pub fn schemas(&self) -> Result<(&'static abi::ArrowSchema, &'static abi::ArrowSchema)> {
        self.described.types().map(|types| (types.arguments, types.returns))
    }

    /// Rows for one call, from another library of Arrow.
    ///
    /// # Safety
    /// `array` is a valid struct array of the schema of the arguments, and from here on nobody else releases it.
    pub unsafe fn batch_from_raw(&self, array: abi::ArrowArray) -> Result<Batch> {
        // SAFETY: the caller's promise.
        self.described.types().map(|types| unsafe { Batch::new(array, types) })
    }

    /// Calls a sync function for a batch. Waits; a function in Python takes the interpreter's lock.
    ///
    /// A row that fails is no failed call: see [`Results`].
    pub fn run(&self, batch: Batch) -> Result<Results> {
        self.run_with(batch, &BatchContext::default())
    }

    /// The same, with what is true of the batch's rows.
    pub fn run_with(&self, mut batch: Batch, context: &BatchContext) -> Result<Results> {
        batch.check_types(self.described.types()?, self.name())?;
        let n_rows = batch.len();
        let mut results = Results::none(&self.described);
        context.with(n_rows, batch.constants, |context| {
            error::check(self.name(), &[abi::OK], |error| {
                let (rows, schema) = results.places();
                // SAFETY: the contract of `run`: the batch has the function's types, and all pointers are to locals. On OK
                // the plugin has taken the batch, and its `release` is NULL; else the batch is dropped here.
                unsafe { ((*self.table.0).run)(self.number, batch.raw_mut(), context, rows, schema, error) }
            })
        })?;
        batch.taken(self.name())?;
        let results = results.checked()?;
        if results.len() != n_rows {
            return Err(error::broken(self.name(), &format!("it answered {} rows for {n_rows}", results.len())));
        }
        Ok(results)
    }

    /// The table in which it has this number.
    pub(crate) fn place(&self) -> (Table, u32) {
        (self.table, self.number)
    }
}
