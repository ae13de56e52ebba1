//! A batch of arguments: owns the struct array that came in, and views its columns.
//!
//! Guarantees: `take` moves the array only if it fits the declared layouts; a dropped batch is retired, because the release
//! callback must run in a thread of the host (R19).

use super::check;
use super::column::Column;
use super::layout::{Layout, Level};
use crate::batch_context::BatchContext;
use crate::retired::{self, Retired};
use arroyo_udf_abi::ArrowArray;
use smallvec::SmallVec;
use std::sync::Arc;

/// Up to two columns need no allocation: `send` must cost less than 100 ns.
type Columns = SmallVec<[Column; 2]>;

/// A struct array of arguments, checked; retired when dropped ([`retired`]).
#[derive(Debug)]
pub struct Batch {
    array: ArrowArray,
    columns: Columns,
    rows: usize,
    bytes: u64,
    context: Option<Arc<BatchContext>>,
    retired: &'static Retired,
}

impl Batch {
    /// Takes over a struct array of arguments if it fits the layouts; otherwise leaves it unchanged.
    ///
    /// # Safety
    /// `array` is a valid Arrow array in all that the checks here cannot tell.
    pub unsafe fn take(array: &mut ArrowArray, arguments: &[(String, Layout)]) -> Result<Batch, String> {
        // SAFETY: passed on.
        unsafe { Batch::take_with(array, arguments, 0) }
    }

    /// As `take`. constants: bit i says that argument number i has one value for all rows; only for arguments of bytes.
    ///
    /// # Safety
    /// As for `take`.
    pub unsafe fn take_with(array: &mut ArrowArray, arguments: &[(String, Layout)], constants: u64) -> Result<Batch, String> {
        if array.release.is_some() && array.n_children != arguments.len() as i64 {
            return Err(format!("the batch has {} columns, but the function has {} arguments", array.n_children, arguments.len()));
        }
        // SAFETY: passed on.
        unsafe { check::level(array, Level::Struct(arguments.len())) }.map_err(|text| format!("the batch: {text}"))?;
        let (rows, offset) = (array.length as usize, array.offset as usize);
        // SAFETY: a checked struct array has one buffer.
        let outer: *const u8 = if array.null_count == 0 { std::ptr::null() } else { unsafe { (*array.buffers).cast() } };
        let mut columns = Columns::with_capacity(arguments.len());
        let mut bytes = 0;
        for (i, (name, layout)) in arguments.iter().enumerate() {
            // SAFETY: a checked array has n_children pointers.
            let child = unsafe { (*array.children.add(i)).as_ref() }.ok_or_else(|| format!("argument {name}: no array"))?;
            columns.push(Column::empty());
            let Some(column) = columns.last_mut() else { unreachable!("pushed above") };
            // SAFETY: the caller promises a valid array; the batch owns the buffers as long as the columns live.
            unsafe { column.set(child, layout, name) }.map_err(|text| format!("argument {text}"))?;
            if i < 64 && constants >> i & 1 == 1 {
                if column.len() != 1 {
                    return Err(format!("argument {name}: a constant with {} rows; it has 1", column.len()));
                }
                // SAFETY: the validity of the struct is as long as the struct.
                unsafe { column.repeat(outer, offset, rows) };
            } else {
                if column.len() < rows + offset {
                    return Err(format!("argument {name}: {} rows, but the batch has {}", column.len(), rows + offset));
                }
                // SAFETY: just compared; the validity of the struct is as long as the struct.
                unsafe { column.narrow(outer, offset, rows) };
            }
            bytes += column.slice_bytes(layout, 0, rows);
        }
        let array = std::mem::replace(array, ArrowArray::empty());
        Ok(Batch { array, columns, rows, bytes, context: None, retired: &retired::LIBRARY })
    }

    /// Keeps what the host says of its rows.
    pub fn set_context(&mut self, context: Option<Arc<BatchContext>>) {
        self.context = context;
    }

    /// Chooses the list of the plugin that it was sent to.
    pub fn set_retired(&mut self, retired: &'static Retired) {
        self.retired = retired;
    }

    pub fn context(&self) -> Option<&Arc<BatchContext>> {
        self.context.as_ref()
    }

    /// What a call keeps of the context, which has its row's key already: only a trace parent is worth a reference.
    pub fn traced(&self) -> Option<&Arc<BatchContext>> {
        self.context().filter(|context| context.trace_parent.is_some())
    }

    /// Of its rows, in nanoseconds from their acceptance.
    pub fn deadline(&self) -> Option<u64> {
        self.context().and_then(|context| context.deadline)
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of the slice, not of the buffers it was cut from: for the budget (R4).
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Appends the arguments of a row, as [`Column::write_to`] does. `arguments`: as for `take`.
    pub fn write_arguments(&self, arguments: &[(String, Layout)], row: usize, into: &mut Vec<u8>) -> bool {
        arguments.iter().zip(&self.columns).all(|((_, layout), column)| column.write_to(layout, row, into))
    }

    /// The array itself, still owned by the batch.
    pub fn array(&self) -> &ArrowArray {
        &self.array
    }

    /// Takes the array out of the batch.
    pub fn into_array(mut self) -> ArrowArray {
        std::mem::replace(&mut self.array, ArrowArray::empty())
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.retired.add(std::mem::replace(&mut self.array, ArrowArray::empty()));
    }
}
