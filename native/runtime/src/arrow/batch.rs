//! A batch of arguments: the struct array that came in, checked ([`ArgumentArray`]), and with views of its columns ([`Batch`]).
//!
//! `send` leaves the array alone in the inbox, a third of the bytes of a batch: what it writes there is cold memory, and
//! the executor reads it in another processor. Who takes it out makes the views.
//!
//! Guarantees: `take` moves the array only if it fits the declared layouts; dropped, it is retired, because the release
//! callback must run in a thread of the host (R19).

use super::check;
use super::column::Column;
use super::layout::{Layout, Level};
use crate::batch_context::BatchContext;
use crate::retired::Retired;
use arroyo_udf_abi::ArrowArray;
use smallvec::SmallVec;
use std::sync::Arc;

/// Up to two columns need no allocation.
type Columns = SmallVec<[Column; 2]>;

/// The arguments of a function, as its signature declares them: names and layouts.
type Declared = [(String, Layout)];

/// A struct array of arguments, checked; retired when dropped ([`retired`](crate::retired)).
#[derive(Debug)]
pub struct ArgumentArray {
    array: ArrowArray,
    bytes: u64,
    context: Option<Arc<BatchContext>>,
    retired: &'static Retired,
}

impl ArgumentArray {
    /// Takes over a struct array of arguments if it fits the layouts; otherwise leaves it unchanged.
    ///
    /// # Safety
    /// `array` is a valid Arrow array in all that the checks here cannot tell.
    pub unsafe fn take(array: &mut ArrowArray, declared: &Declared, retired: &'static Retired) -> Result<ArgumentArray, String> {
        // SAFETY: passed on.
        let slice = unsafe { Slice::of(array, declared) }?;
        let mut bytes = 0;
        for i in 0..declared.len() {
            // SAFETY: passed on; the array outlives the column.
            bytes += unsafe { slice.set(&mut Column::empty(), array, declared, i, false) }?;
        }
        Ok(ArgumentArray::of(array, bytes, retired))
    }

    /// Moves the array.
    fn of(array: &mut ArrowArray, bytes: u64, retired: &'static Retired) -> ArgumentArray {
        ArgumentArray { array: std::mem::replace(array, ArrowArray::empty()), bytes, context: None, retired }
    }

    /// Keeps what the host says of its rows.
    pub fn set_context(&mut self, context: Option<Arc<BatchContext>>) {
        self.context = context;
    }

    /// Of its rows, in nanoseconds from their acceptance.
    pub fn deadline(&self) -> Option<u64> {
        self.context.as_ref().and_then(|context| context.deadline)
    }

    pub fn rows(&self) -> usize {
        self.array.length as usize
    }

    /// Bytes of the slice, not of the buffers it was cut from: for the budget (R4).
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes the array out.
    pub fn into_array(mut self) -> ArrowArray {
        std::mem::replace(&mut self.array, ArrowArray::empty())
    }
}

impl Drop for ArgumentArray {
    fn drop(&mut self) {
        self.retired.add(std::mem::replace(&mut self.array, ArrowArray::empty()));
    }
}

/// The rows of a struct array, seen from its columns.
struct Slice {
    /// Validity of the struct. Null: every row is valid.
    outer: *const u8,
    offset: usize,
    rows: usize,
}

impl Slice {
    /// Checks the struct itself.
    ///
    /// # Safety
    /// As for [`ArgumentArray::take`].
    #[inline]
    unsafe fn of(array: &ArrowArray, declared: &Declared) -> Result<Slice, String> {
        if array.release.is_some() && array.n_children != declared.len() as i64 {
            return Err(format!("the batch has {} columns, but the function has {} arguments", array.n_children, declared.len()));
        }
        // SAFETY: passed on.
        unsafe { check::level(array, Level::Struct(declared.len())) }.map_err(|text| format!("the batch: {text}"))?;
        // SAFETY: a checked struct array has one buffer.
        let outer = if array.null_count == 0 { std::ptr::null() } else { unsafe { (*array.buffers).cast() } };
        Ok(Slice { outer, offset: array.offset as usize, rows: array.length as usize })
    }

    /// Makes an empty column the view of argument number `i`; answers the bytes of its rows. `constant`: it has one value for
    /// all rows.
    ///
    /// # Safety
    /// The array is that of `of`; it outlives the column.
    #[inline]
    unsafe fn set(&self, column: &mut Column, array: &ArrowArray, declared: &Declared, i: usize, constant: bool) -> Result<u64, String> {
        let (name, layout) = &declared[i];
        // SAFETY: a checked array has n_children pointers.
        let child = unsafe { (*array.children.add(i)).as_ref() }.ok_or_else(|| format!("argument {name}: no array"))?;
        // SAFETY: passed on.
        unsafe { column.set(child, layout, name) }.map_err(|text| format!("argument {text}"))?;
        if constant {
            if column.len() != 1 {
                return Err(format!("argument {name}: a constant with {} rows; it has 1", column.len()));
            }
            // SAFETY: the validity of the struct is as long as the struct.
            unsafe { column.repeat(self.outer, self.offset, self.rows) };
        } else {
            if column.len() < self.rows + self.offset {
                return Err(format!("argument {name}: {} rows, but the batch has {}", column.len(), self.rows + self.offset));
            }
            // SAFETY: just compared; the validity of the struct is as long as the struct.
            unsafe { column.narrow(self.outer, self.offset, self.rows) };
        }
        Ok(column.slice_bytes(layout, 0, self.rows))
    }
}

/// Arguments with views of their columns.
#[derive(Debug)]
pub struct Batch {
    arguments: ArgumentArray,
    columns: Columns,
}

impl Batch {
    /// As [`ArgumentArray::take`], with views. constants: bit i says that argument number i has one value for all rows; only for
    /// arguments of bytes.
    ///
    /// # Safety
    /// As for [`ArgumentArray::take`].
    pub unsafe fn take(array: &mut ArrowArray, declared: &Declared, constants: u64, retired: &'static Retired) -> Result<Batch, String> {
        let mut columns = Columns::new();
        // SAFETY: passed on; the batch will own the array.
        let bytes = unsafe { view(&mut columns, array, declared, constants) }?;
        Ok(Batch { arguments: ArgumentArray::of(array, bytes, retired), columns })
    }

    /// `declared`: with which the arguments were taken.
    pub fn of(arguments: ArgumentArray, declared: &Declared) -> Arc<Batch> {
        let mut batch = Arc::new(Batch { arguments, columns: Columns::new() });
        let Some(Batch { arguments, columns }) = Arc::get_mut(&mut batch) else { unreachable!("nobody else has it") };
        // SAFETY: the array was checked, and is the batch's own.
        let viewed = unsafe { view(columns, &arguments.array, declared, 0) };
        viewed.expect("a checked array stays as it is");
        batch
    }

    pub fn context(&self) -> Option<&Arc<BatchContext>> {
        self.arguments.context.as_ref()
    }

    /// What a call keeps of the context, which has its row's key already: only a trace parent is worth a reference.
    pub fn traced(&self) -> Option<&Arc<BatchContext>> {
        self.context().filter(|context| context.trace_parent.is_some())
    }

    pub fn rows(&self) -> usize {
        self.arguments.rows()
    }

    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Appends the arguments of a row, as [`Column::write_to`] does. `declared`: as for `take`.
    pub fn write_arguments(&self, declared: &Declared, row: usize, into: &mut Vec<u8>) -> bool {
        declared.iter().zip(&self.columns).all(|((_, layout), column)| column.write_to(layout, row, into))
    }

    /// The array itself, still owned by the batch.
    pub fn array(&self) -> &ArrowArray {
        &self.arguments.array
    }

    /// Takes the array out of the batch.
    pub fn into_array(self) -> ArrowArray {
        self.arguments.into_array()
    }
}

/// Adds the views of all columns, in place, because columns are too large to be moved about; answers the bytes of their rows.
///
/// # Safety
/// As for [`ArgumentArray::take`]; the array outlives the columns.
unsafe fn view(columns: &mut Columns, array: &ArrowArray, declared: &Declared, constants: u64) -> Result<u64, String> {
    // SAFETY: passed on.
    let slice = unsafe { Slice::of(array, declared) }?;
    columns.reserve_exact(declared.len());
    let mut bytes = 0;
    for i in 0..declared.len() {
        columns.push(Column::empty());
        let Some(column) = columns.last_mut() else { unreachable!("pushed above") };
        let constant = i < 64 && constants >> i & 1 == 1;
        // SAFETY: passed on.
        bytes += unsafe { slice.set(column, array, declared, i, constant) }?;
    }
    Ok(bytes)
}
