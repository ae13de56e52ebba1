//! Rows on their way in and out: owners of Arrow arrays.

use std::ptr::null;
use std::sync::Arc;

use arroyo_udf_abi as abi;

use crate::described::{Described, Types};
use crate::{checks, error, Error, ErrorKind, Result};

/// Releases an array once.
pub(crate) struct Owned(pub(crate) abi::ArrowArray);

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: we own the array, and it is not released yet.
            unsafe { release(&mut self.0) };
        }
    }
}

/// The arguments of some rows of one function. `Function::batch` makes one of Arrow columns, `Function::batch_from_raw` of an
/// array of another library.
pub struct Batch {
    array: Owned,
    /// The schema of the function's arguments: by its address, the function for which the batch was made.
    arguments: *const abi::ArrowSchema,
    /// Bit i: argument number i has one row, whose value counts for all.
    pub(crate) constants: u64,
}

// SAFETY: the schema is a constant, and is only compared.
unsafe impl Send for Batch {}

impl Batch {
    /// # Safety
    /// `array` is a valid struct array of the type of the arguments, and nobody else releases it.
    pub(crate) unsafe fn new(array: abi::ArrowArray, types: Types) -> Self {
        Batch { array: Owned(array), arguments: types.arguments, constants: 0 }
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.array.0.length as usize
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn raw_mut(&mut self) -> *mut abi::ArrowArray {
        &mut self.array.0
    }

    /// After an accepted call.
    pub(crate) fn taken(self, function: &str) -> Result<()> {
        if self.array.0.release.is_none() {
            return Ok(());
        }
        // It may have been taken all the same: released twice is worse than never.
        std::mem::forget(self);
        Err(error::broken(function, "it has not taken its arguments"))
    }

    /// Buffers of other types would be read beyond their ends.
    pub(crate) fn check_types(&self, types: Types, function: &str) -> Result<()> {
        if std::ptr::eq(self.arguments, types.arguments) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::InvalidArgument, format!("the batch was made for another function than {function}")))
    }
}

/// The results of some rows: a struct array whose fields are found by name. `Results::into_rows` makes Arrow columns of it.
pub struct Results {
    array: Owned,
    schema: *const abi::ArrowSchema,
    function: Arc<Described>,
}

// SAFETY: the schema is a constant of the plugin.
unsafe impl Send for Results {}

impl Results {
    /// To be filled in by a call.
    pub(crate) fn none(function: &Arc<Described>) -> Self {
        Results { array: Owned(abi::ArrowArray::empty()), schema: null(), function: function.clone() }
    }

    pub(crate) fn places(&mut self) -> (*mut abi::ArrowArray, *mut *const abi::ArrowSchema) {
        (&mut self.array.0, &mut self.schema)
    }

    /// What a call has filled in has the shape of its schema.
    pub(crate) fn checked(self) -> Result<Self> {
        // SAFETY: the contract: a constant of the plugin, or what a broken plugin left, NULL.
        let shape = match unsafe { self.schema.as_ref() } {
            None => Err("without a schema".into()),
            Some(schema) => checks::results(&self.array.0, schema, &self.function.schemas),
        };
        shape.map_err(|why| error::broken(self.function.name, &format!("it answered an array {why}")))?;
        Ok(self)
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.array.0.length as usize
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// For another library of Arrow: the caller releases the array, and nobody the schema.
    pub fn into_raw(mut self) -> (abi::ArrowArray, *const abi::ArrowSchema) {
        (std::mem::replace(&mut self.array.0, abi::ArrowArray::empty()), self.schema)
    }

    #[cfg(feature = "arrow")]
    pub(crate) fn into_parts(mut self) -> (abi::ArrowArray, *const abi::ArrowSchema, Arc<Described>) {
        (std::mem::replace(&mut self.array.0, abi::ArrowArray::empty()), self.schema, self.function)
    }
}
