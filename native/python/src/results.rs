//! The results of a plugin, checked before pyarrow reads them.
//!
//! Guarantees: results that pass have the structure of their type, so that pyarrow stays within their memory; a row for each
//! row that was sent; and in each row a value only if that is the outcome, an error only if it is not. (A row with an outcome
//! that this host does not know is an error.) A result that fails is released, except if its structure is broken: then it
//! stays allocated, because its release callback would follow the same pointers.
//!
//! Assumes what no check can tell, see `arroyo_udf_plugin::arrow`. The GIL is held, also while results are released: that is
//! their owner's code, but short by contract.

use crate::ledger::{ledger_of, Ledger, Spread};
use crate::object::{raise, Owned};
use arroyo_udf_plugin::abi::{ArrowArray, ArrowSchema, VALUE};
use arroyo_udf_plugin::arrow::check;
use pyo3_ffi::*;
use std::ffi::CStr;
use std::ptr::null_mut;

/// The type of results: a struct, and where in it the fields are that the contract names.
struct Layout {
    /// The host's own, so that no plugin can change it.
    schema: ArrowSchema,
    value: usize,
    outcome: Option<usize>,
    error: Option<usize>,
    id: Option<usize>,
    attempts: Option<usize>,
}

impl Layout {
    /// # Safety
    /// `schema` is the valid schema of a struct, and is given away.
    unsafe fn new(schema: ArrowSchema) -> Option<Layout> {
        let place = |wanted: &CStr| {
            // SAFETY: a valid schema has n_children children with names.
            (0..schema.n_children as usize).find(|&i| unsafe { CStr::from_ptr((**schema.children.add(i)).name) } == wanted)
        };
        Some(Layout {
            value: place(c"value")?,
            outcome: place(c"outcome"),
            error: place(c"error"),
            id: place(c"id"),
            attempts: place(c"attempts"),
            schema,
        })
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        if let Some(release) = self.schema.release {
            // SAFETY: the schema is ours and has not been released.
            unsafe { release(&mut self.schema) };
        }
    }
}

/// Results whose structure was checked.
struct Checked<'a> {
    array: &'a ArrowArray,
    layout: &'a Layout,
}

impl<'a> Checked<'a> {
    /// Checks the structure, and that no row of the struct, no id, outcome or number of attempts is null.
    ///
    /// # Safety
    /// What no check can tell is right.
    unsafe fn new(array: &'a ArrowArray, layout: &'a Layout) -> Result<Checked<'a>, String> {
        // SAFETY: the caller promises it; the schema is valid.
        unsafe { check(array, &layout.schema) }?;
        let checked = Checked { array, layout };
        if checked.has_null(array, 0) {
            return Err("the struct has nulls".into());
        }
        for (place, name) in [(layout.id, "id"), (layout.outcome, "outcome"), (layout.attempts, "attempts")] {
            if place.is_some_and(|place| checked.has_null(checked.child(place), array.offset)) {
                return Err(format!("field {name:?} has nulls"));
            }
        }
        Ok(checked)
    }

    fn rows(&self) -> usize {
        self.array.length as usize
    }

    fn child(&self, place: usize) -> &'a ArrowArray {
        // SAFETY: checked arrays have the children of their type.
        unsafe { &**self.array.children.add(place) }
    }

    /// Whether one of the result's rows is null in an array. `offset`: of the rows in the array. The bitmap counts, whatever
    /// null_count says, because pyarrow reads the one here and the other there.
    fn has_null(&self, array: &ArrowArray, offset: i64) -> bool {
        let first = (array.offset + offset) as usize;
        bitmap(array).is_some_and(|bitmap| !all_set(bitmap, first, self.rows()))
    }

    fn is_null(&self, place: usize, row: usize) -> bool {
        let array = self.child(place);
        let row = (array.offset + self.array.offset) as usize + row;
        array.n_buffers == 0 || bitmap(array).is_some_and(|bitmap| !bit(bitmap, row))
        // the type null has no buffers
    }

    /// The numbers of a field of numbers, by row.
    fn numbers<T: Copy>(&self, place: usize) -> impl Fn(usize) -> T + Copy {
        let array = self.child(place);
        // SAFETY: checked arrays of numbers have a value for each row, which may be unaligned.
        unsafe {
            let values = (*array.buffers.add(1)).cast::<T>().wrapping_add((array.offset + self.array.offset) as usize);
            move |row| values.add(row).read_unaligned()
        }
    }

    /// Checks outcomes, values and errors against each other. Answers whether no row has failed. The error says what is wrong.
    fn check_outcomes(&self) -> Result<bool, String> {
        let (Some(outcome), Some(error)) = (self.layout.outcome, self.layout.error) else { return Ok(true) };
        let named = |row: usize| match self.layout.id {
            Some(id) => format!("row {}", self.numbers::<u64>(id)(row)),
            None => format!("row {row}"),
        };
        let code_of = self.numbers::<u8>(outcome);
        let failed = (0..self.rows()).fold(0, |all, row| all | code_of(row)) != VALUE;
        let errors = self.child(error);
        if !failed && errors.null_count == errors.length {
            return Ok(true);
        }
        for row in 0..self.rows() {
            let code = code_of(row);
            if code == VALUE && !self.is_null(error, row) {
                return Err(format!("an error of {}, whose outcome is value", named(row)));
            }
            if code != VALUE && !self.is_null(self.layout.value, row) {
                return Err(format!("a value of {}, whose outcome is not value", named(row)));
            }
            if code != VALUE {
                self.check_text(error, row).map_err(|wrong| format!("the error of {}, which {wrong}", named(row)))?;
            }
        }
        Ok(!failed)
    }

    /// Checks that a text is UTF-8 or null.
    fn check_text(&self, place: usize, row: usize) -> Result<(), String> {
        let array = self.child(place);
        if self.is_null(place, row) {
            return Ok(());
        }
        let offset = self.numbers::<i32>(place);
        let (from, to) = (offset(row), offset(row + 1));
        if from == to {
            return Ok(());
        }
        // SAFETY: checked offsets rise, and the last one is within the data.
        let text = unsafe {
            let data: *const u8 = (*array.buffers.add(2)).cast();
            std::slice::from_raw_parts(data.add(from as usize), (to - from) as usize)
        };
        std::str::from_utf8(text).map(|_| ()).map_err(|wrong| format!("is not UTF-8: {wrong}"))
    }
}

/// The validity of a checked array; None if no row is null, or if its type has none.
fn bitmap(array: &ArrowArray) -> Option<*const u8> {
    if array.n_buffers == 0 {
        return None;
    }
    // SAFETY: checked arrays have the buffers of their type, of which the first is the validity, or NULL in its place.
    let bitmap: *const u8 = unsafe { (*array.buffers).cast() };
    (!bitmap.is_null()).then_some(bitmap)
}

/// Whether `count` bits from bit `first` on are set in a bitmap that has them.
fn all_set(bitmap: *const u8, first: usize, count: usize) -> bool {
    let (mut i, end) = (first, first + count);
    while i < end {
        let n = (8 - i % 8).min(end - i);
        let mask = (0xff >> (8 - n)) << (i % 8);
        // SAFETY: checked bitmaps have a bit for each row.
        if unsafe { *bitmap.add(i / 8) } & mask != mask {
            return false;
        }
        i += n;
    }
    true
}

/// Bit `i` of a bitmap that has it.
fn bit(bitmap: *const u8, i: usize) -> bool {
    // SAFETY: checked bitmaps have a bit for each row.
    unsafe { *bitmap.add(i / 8) >> (i % 8) & 1 != 0 }
}

/// Releases results that cannot be used, and passes on why.
unsafe fn refused(array: *mut ArrowArray, text: String) -> String {
    // SAFETY: the structure was checked; the host owns the array.
    unsafe {
        if let Some(release) = (*array).release {
            release(array);
        }
    }
    text
}

const BROKEN: &str = "a broken array: ";

/// Checks the results of `run`. Answers whether only the array of values is left, because there is nothing else to know.
///
/// # Safety
/// The host owns the array at the address; what no check can tell is right.
unsafe fn run(layout: &Layout, address: *mut ArrowArray, rows: i64) -> Result<bool, String> {
    // SAFETY: passed on; references to the array end before it is replaced.
    unsafe {
        if (*address).length != rows && (*address).release.is_some() {
            return Err(format!("{BROKEN}{} rows for {rows}", (*address).length));
        }
        let checked = Checked::new(&*address, layout).map_err(|text| format!("{BROKEN}{text}"))?;
        let alone = checked.array.n_children == 1 && checked.array.offset == 0 && checked.child(0).length == rows;
        let outcomes = checked.check_outcomes();
        outcomes.map_err(|text| refused(address, text))?;
        if alone {
            let child = std::ptr::replace(*(*address).children, ArrowArray::empty());
            if let Some(release) = (*address).release {
                release(address);
            }
            address.write(child);
        }
        Ok(alone)
    }
}

/// What is known of drained rows.
struct Drained {
    /// All columns begin and end with the struct.
    even: bool,
    ids: Spread,
    /// No row has failed.
    are_values: bool,
}

/// Checks drained rows, and notes them in the ledger.
///
/// # Safety
/// As for `run`; `ledger` is a ledger.
unsafe fn drained(layout: &Layout, address: *mut ArrowArray, most: u64, ledger: &mut Ledger, alone: bool) -> Result<Drained, String> {
    // SAFETY: passed on; references to the array end before it is released.
    unsafe {
        let rows = (*address).length;
        if rows == 0 && (*address).release.is_some() {
            return Err("no rows, and OK means at least one".into());
        }
        if rows > 0 && most > 0 && rows as u64 > most {
            return Err(format!("{rows} rows, and {most} were wanted at most"));
        }
        if rows > 0 && rows as u64 > ledger.open() {
            return Err(format!("{rows} rows, and only {} have not come out", ledger.open()));
        }
        let checked = Checked::new(&*address, layout).map_err(|text| format!("{BROKEN}{text}"))?;
        let Some(id) = layout.id else { return Err("rows without ids".into()) };
        let noted =
            checked.check_outcomes().and_then(|are_values| Ok((ledger.come_out(checked.rows(), checked.numbers(id), alone)?, are_values)));
        let even = checked.array.offset == 0 && (0..checked.array.n_children as usize).all(|i| checked.child(i).length == rows);
        noted.map_err(|text| refused(address, text)).map(|(ids, are_values)| Drained { even, ids, are_values })
    }
}

// ---- For Python ----

const LAYOUT: &CStr = c"arroyo_udf_plugin._native.Layout";

unsafe extern "C" fn free(capsule: *mut PyObject) {
    // SAFETY: Python calls this once, when no reference is left; the capsule holds the box of `layout`.
    unsafe { drop(Box::from_raw(PyCapsule_GetPointer(capsule, LAYOUT.as_ptr()).cast::<Layout>())) };
}

/// layout(schema: int) -> Layout: of results, a struct with a field "value". Moves the ArrowSchema out of the address.
pub unsafe extern "C" fn layout(_module: *mut PyObject, schema: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL; the host passes the address of a schema that pyarrow has exported.
    unsafe {
        let schema = PyLong_AsVoidPtr(schema).cast::<ArrowSchema>();
        if schema.is_null() {
            return raise(PyExc_ValueError, "layout() takes the address of a schema");
        }
        match Layout::new(std::ptr::replace(schema, ArrowSchema::empty())) {
            Some(layout) => PyCapsule_New(Box::into_raw(Box::new(layout)).cast(), LAYOUT.as_ptr(), Some(free)),
            None => raise(PyExc_ValueError, "no field is named value"),
        }
    }
}

/// The first two arguments of the functions below: a layout, and the address of the results. None: an exception is set.
///
/// # Safety
/// The GIL is held; there are `count` arguments.
unsafe fn what_is_checked<'a>(
    arguments: *mut *mut PyObject,
    count: Py_ssize_t,
    wanted: Py_ssize_t,
) -> Option<(&'a Layout, *mut ArrowArray)> {
    // SAFETY: the caller's layout lives at least until the function returns.
    unsafe {
        if count != wanted {
            raise(PyExc_TypeError, &format!("there must be {wanted} arguments, of which the first are a layout and an address"));
            return None;
        }
        let layout = PyCapsule_GetPointer(*arguments, LAYOUT.as_ptr()).cast::<Layout>();
        let address = PyLong_AsVoidPtr(*arguments.add(1)).cast();
        PyErr_Occurred().is_null().then(|| (&*layout, address))
    }
}

/// check_run(layout, address: int, rows: int) -> bool: checks the results of `run` for so many rows. True: it has replaced
/// the struct at the address with its only child, the values. Raises ValueError; the text follows "run answers".
pub unsafe extern "C" fn check_run(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and `count` arguments; the host owns the array at the address.
    unsafe {
        let Some((layout, address)) = what_is_checked(arguments, count, 3) else { return null_mut() };
        let rows = PyLong_AsLongLong(*arguments.add(2));
        if !PyErr_Occurred().is_null() {
            return null_mut();
        }
        match run(layout, address, rows) {
            Ok(alone) => PyBool_FromLong(alone.into()),
            Err(text) => raise(PyExc_ValueError, &text),
        }
    }
}

/// check_drained(layout, address: int, most: int, ledger, alone: bool) -> (even: bool, low: int, high: int, are_neighbours: bool,
/// are_values: bool): checks the results of `drain_results`, which was asked for at most so many rows (0: any number), and notes
/// them in the ledger. alone: no other drain was under way. even: pyarrow can import the struct as a RecordBatch. low, high: of
/// the ids. are_neighbours: these rise by one from row to row. are_values: no row has failed. Raises ValueError; the text follows
/// "drain_results answers".
pub unsafe extern "C" fn check_drained(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: as in check_run.
    unsafe {
        let Some((layout, address)) = what_is_checked(arguments, count, 5) else { return null_mut() };
        let most = PyLong_AsUnsignedLongLong(*arguments.add(2));
        if !PyErr_Occurred().is_null() {
            return null_mut();
        }
        let Some(ledger) = ledger_of(*arguments.add(3)) else { return null_mut() };
        let alone = PyObject_IsTrue(*arguments.add(4)) == 1;
        match drained(layout, address, most, ledger, alone) {
            Ok(drained) => described(&drained).map_or(null_mut(), Owned::into_ptr),
            Err(text) => raise(PyExc_ValueError, &text),
        }
    }
}

/// The tuple of `check_drained`. None: an exception is set.
///
/// # Safety
/// The GIL is held.
unsafe fn described(drained: &Drained) -> Option<Owned> {
    // SAFETY: passed on; the tuple takes its own references.
    unsafe {
        let truth = |is: bool| Owned::new(PyBool_FromLong(is.into()));
        let id = |id: u64| Owned::new(PyLong_FromUnsignedLongLong(id));
        let Drained { even, ids, are_values } = drained;
        let items = [truth(*even)?, id(ids.low)?, id(ids.high)?, truth(ids.runs == 1)?, truth(*are_values)?];
        Owned::new(PyTuple_Pack(5, items[0].ptr(), items[1].ptr(), items[2].ptr(), items[3].ptr(), items[4].ptr()))
    }
}
