//! Arrow columns in and out of calls, by the C Data Interface.

use std::ffi::c_void;
use std::ptr::null;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{from_ffi_and_data_type, FFI_ArrowArray};
use arrow_array::types::{UInt16Type, UInt64Type, UInt8Type};
use arrow_array::{make_array, Array, ArrayRef, Datum, RecordBatch, StringArray, UInt16Array, UInt64Array, UInt8Array};
use arrow_schema::{DataType, FieldRef, Fields};
use arrow_select::take::take;
use arroyo_udf_abi as abi;

use crate::arrow_types::ArrowTypes;
use crate::batch::Owned;
use crate::error::broken;
use crate::nested::array_of;
use crate::{Batch, Error, ErrorKind, Function, Result, Results};

impl Function {
    /// The types of its arguments.
    ///
    /// An argument that is not nullable may have nulls: they give null without a call.
    pub fn arguments(&self) -> Result<&Fields> {
        Ok(&self.arrow_types()?.arguments)
    }

    /// The type of a value.
    pub fn returns(&self) -> Result<&FieldRef> {
        Ok(&self.arrow_types()?.returns)
    }

    /// Rows for one call: the columns of `rows` are the arguments, in their order, with exactly their types.
    pub fn batch(&self, rows: &RecordBatch) -> Result<Batch> {
        self.batch_of(rows.columns(), rows.num_rows())
    }

    /// The same, of columns with `n_rows` values.
    pub fn batch_of(&self, columns: &[ArrayRef], n_rows: usize) -> Result<Batch> {
        self.checked_batch(columns, n_rows, 0)
    }

    /// constants: bit i: column number i has one value, which the function takes for all rows.
    fn checked_batch(&self, columns: &[ArrayRef], n_rows: usize, constants: u64) -> Result<Batch> {
        let invalid = |text: String| Error::new(ErrorKind::InvalidArgument, text);
        let arguments = self.arguments()?;
        if arguments.len() != columns.len() {
            return Err(invalid(format!("{} takes {} arguments, not {}", self.name(), arguments.len(), columns.len())));
        }
        for (argument, column) in arguments.iter().zip(columns) {
            if !argument.data_type().equals_datatype(column.data_type()) {
                let (name, wanted, given) = (argument.name(), argument.data_type(), column.data_type());
                return Err(invalid(format!("{}: argument {name} is {wanted}, not {given}: cast the column", self.name())));
            }
        }
        for (i, column) in columns.iter().enumerate() {
            let wanted = if is_set(constants, i) { 1 } else { n_rows };
            if column.len() != wanted {
                return Err(invalid(format!("{}: a column has {} rows, not {wanted}", self.name(), column.len())));
            }
        }
        // SAFETY: a struct array of the types of the arguments, with the columns' own memory; `run` passes on which of them
        // are constants.
        let mut batch = unsafe { self.batch_from_raw(struct_of(columns, n_rows)) }?;
        batch.constants = constants;
        Ok(batch)
    }

    /// The same, of columns with `n_rows` values and of scalars ([`arrow_array::Scalar`]), which count for all rows. A text is
    /// not repeated then, if the function takes it as one value.
    pub fn batch_of_datums(&self, arguments: &[&dyn Datum], n_rows: usize) -> Result<Batch> {
        let takes = if self.is_isolated() { 0 } else { self.described.constants };
        let mut constants = 0;
        let mut columns = Vec::with_capacity(arguments.len());
        for (i, argument) in arguments.iter().enumerate() {
            let (array, is_scalar) = argument.get();
            if is_scalar && array.len() != 1 {
                return Err(Error::new(ErrorKind::InvalidArgument, format!("{}: a scalar with {} rows", self.name(), array.len())));
            }
            let is_constant = is_scalar && is_set(takes, i);
            constants |= if is_constant { 1 << i } else { 0 };
            columns.push(if is_scalar && !is_constant { repeated(array, n_rows)? } else { make_array(array.to_data()) });
        }
        self.checked_batch(&columns, n_rows, constants)
    }

    /// Calls a sync function: [`Function::batch`], [`Function::run`] and [`Results::into_rows`].
    pub fn call(&self, rows: &RecordBatch) -> Result<Rows> {
        self.run(self.batch(rows)?)?.into_rows()
    }

    fn arrow_types(&self) -> Result<&ArrowTypes> {
        self.described.arrow_types()
    }
}

fn is_set(bits: u64, i: usize) -> bool {
    i < 64 && bits >> i & 1 == 1
}

/// A column of `n_rows` times the same value.
fn repeated(scalar: &dyn Array, n_rows: usize) -> Result<ArrayRef> {
    let places = UInt64Array::from_value(0, n_rows);
    take(scalar, &places, None).map_err(|error| Error::new(ErrorKind::InvalidArgument, error.to_string()))
}

/// Keeps the columns of a batch until it is released.
struct Columns {
    children: Box<[FFI_ArrowArray]>,
    pointers: Box<[*mut abi::ArrowArray]>,
    no_buffer: [*const c_void; 1],
}

/// Columns as a struct array without nulls of its own. By hand, because StructArray and its export cost more than most calls.
fn struct_of(columns: &[ArrayRef], n_rows: usize) -> abi::ArrowArray {
    let mut children: Box<[_]> = columns.iter().map(|column| FFI_ArrowArray::new(&column.to_data())).collect();
    let pointers = children.iter_mut().map(|child| std::ptr::from_mut(child).cast()).collect();
    let mut columns = Box::new(Columns { children, pointers, no_buffer: [null()] });
    abi::ArrowArray {
        length: n_rows as i64,
        n_buffers: 1,
        n_children: columns.children.len() as i64,
        buffers: columns.no_buffer.as_mut_ptr(),
        children: columns.pointers.as_mut_ptr(),
        release: Some(release_columns),
        private_data: Box::into_raw(columns).cast(),
        ..abi::ArrowArray::empty()
    }
}

unsafe extern "C" fn release_columns(array: *mut abi::ArrowArray) {
    // SAFETY: an Arrow release callback gets a valid array, once; `private_data` is from `Box::into_raw` in `struct_of`. Each
    // child that was not moved out is released by its own drop.
    unsafe {
        (*array).release = None;
        drop(Box::from_raw((*array).private_data.cast::<Columns>()));
    }
}

/// How a row ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It has a value, perhaps null.
    Value,
    /// Its call failed, or ended in a way that this host does not know.
    Error,
    /// It took too long.
    TimedOut,
    /// It was cancelled.
    Cancelled,
}

/// The results of some rows, as Arrow columns.
#[derive(Debug, Clone)]
pub struct Rows {
    values: ArrayRef,
    outcomes: Option<UInt8Array>,
    errors: Option<StringArray>,
    ids: Option<UInt64Array>,
    attempts: Option<UInt16Array>,
}

impl Results {
    /// As Arrow columns, without a copy.
    pub fn into_rows(self) -> Result<Rows> {
        let (array, schema, function) = self.into_parts();
        let array = Owned(array);
        // SAFETY: results have been checked to have a schema, a constant of the plugin.
        let fields = function.arrow.results(function.name, unsafe { &*schema }, function.arrow_types()?.returns.data_type())?;
        let column = |place: Option<&(usize, DataType)>| -> Result<Option<ArrayRef>> {
            let Some((i, data_type)) = place else { return Ok(None) };
            // SAFETY: the shape has been checked: there is such a child. Both mirror the ArrowArray of the C Data Interface;
            // `from_raw` moves the child out, as that allows, and the rest is released with its parent.
            let child = unsafe { FFI_ArrowArray::from_raw((*array.0.children.add(*i)).cast()) };
            // SAFETY: the contract: an array of this type, whose shape has been checked.
            let data = unsafe { from_ffi_and_data_type(child, data_type.clone()) };
            // The shape says all of numbers; texts, and what is nested, have offsets and bytes of their own.
            let data = data.and_then(|data| if data_type.is_primitive() { Ok(data) } else { data.validate_full().map(|()| data) });
            let column = data.and_then(array_of);
            let column = column.map_err(|error| broken(function.name, &format!("it answered a broken array: {error}")))?;
            Ok(Some(column.slice(array.0.offset as usize, array.0.length as usize)))
        };
        let rows = Rows {
            values: column(Some(&fields.value))?.expect("it has a place"),
            outcomes: column(fields.outcome.as_ref())?.map(|column| column.as_primitive::<UInt8Type>().clone()),
            errors: column(fields.error.as_ref())?.map(|column| column.as_string::<i32>().clone()),
            ids: column(fields.id.as_ref())?.map(|column| column.as_primitive::<UInt64Type>().clone()),
            attempts: column(fields.attempts.as_ref())?.map(|column| column.as_primitive::<UInt16Type>().clone()),
        };
        rows.check().map_err(|why| broken(function.name, why))?;
        Ok(rows)
    }
}

impl Rows {
    /// Their number.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some of them, without a copy.
    pub fn slice(&self, first: usize, n_rows: usize) -> Rows {
        Rows {
            values: self.values.slice(first, n_rows),
            outcomes: self.outcomes.as_ref().map(|outcomes| outcomes.slice(first, n_rows)),
            errors: self.errors.as_ref().map(|errors| errors.slice(first, n_rows)),
            ids: self.ids.as_ref().map(|ids| ids.slice(first, n_rows)),
            attempts: self.attempts.as_ref().map(|attempts| attempts.slice(first, n_rows)),
        }
    }

    /// Null in rows that have no value.
    pub fn values(&self) -> &ArrayRef {
        &self.values
    }

    /// How a row ended.
    pub fn outcome(&self, row: usize) -> Outcome {
        match self.outcomes.as_ref().map_or(abi::VALUE, |outcomes| outcomes.value(row)) {
            abi::VALUE => Outcome::Value,
            abi::TIMED_OUT => Outcome::TimedOut,
            abi::CANCELLED => Outcome::Cancelled,
            _ => Outcome::Error,
        }
    }

    /// Why a row has no value: plugin, function, row, and the author's text.
    pub fn error(&self, row: usize) -> Option<&str> {
        let errors = self.errors.as_ref().filter(|errors| errors.is_valid(row));
        errors.filter(|_| self.outcome(row) != Outcome::Value).map(|errors| errors.value(row))
    }

    /// The ids of rows of an async function.
    pub fn ids(&self) -> Option<&UInt64Array> {
        self.ids.as_ref()
    }

    /// How many attempts each row of an async function took.
    pub fn attempts(&self) -> Option<&UInt16Array> {
        self.attempts.as_ref()
    }

    /// What readers of the columns rely on.
    fn check(&self) -> std::result::Result<(), &'static str> {
        let has_nulls = |column: Option<&dyn Array>| column.is_some_and(|column| column.null_count() > 0);
        if has_nulls(self.outcomes.as_ref().map(|column| column as _))
            || has_nulls(self.ids.as_ref().map(|column| column as _))
            || has_nulls(self.attempts.as_ref().map(|column| column as _))
        {
            return Err("an outcome, id or number of attempts is null");
        }
        let Some(outcomes) = self.outcomes.as_ref() else { return Ok(()) };
        let errors = self.errors.as_ref().ok_or("results with outcomes have no errors")?;
        for (row, outcome) in outcomes.values().iter().enumerate() {
            if *outcome != abi::VALUE && self.values.is_valid(row) {
                return Err("a row without a value has one");
            }
            if *outcome == abi::VALUE && errors.is_valid(row) {
                return Err("a row with a value has an error");
            }
        }
        Ok(())
    }

    /// The values, if each row has one; else the error of the first row that has none.
    pub fn into_values(self) -> Result<ArrayRef> {
        match self.first_failure() {
            None => Ok(self.values),
            Some(row) => Err(Error::new(ErrorKind::Row, self.error(row).unwrap_or("a row failed, without a text"))),
        }
    }

    /// The first row without a value.
    pub fn first_failure(&self) -> Option<usize> {
        let outcomes = self.outcomes.as_ref()?;
        outcomes.values().iter().position(|outcome| *outcome != abi::VALUE)
    }
}
