//! Arguments by row number, in buffers whose release is counted; results as texts.

use crate::Task;
use arrow::array::{Array, ArrayData, ArrayRef, Int64Array, StringArray};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;

static LENT: AtomicI64 = AtomicI64::new(0);

/// Buffers that have not been released.
pub fn lent() -> i64 {
    LENT.load(Ordering::SeqCst)
}

/// What keeps a lent buffer alive.
struct Loan(Buffer);

impl Loan {
    fn of(buffer: &Buffer) -> Buffer {
        LENT.fetch_add(1, Ordering::SeqCst);
        let loan = Arc::new(Loan(buffer.clone()));
        let pointer = NonNull::new(loan.0.as_ptr().cast_mut()).expect("a buffer");
        let length = loan.0.len();
        // SAFETY: the loan holds the buffer.
        unsafe { Buffer::from_custom_allocation(pointer, length, loan) }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        LENT.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The arguments' types and values, from the command line.
#[derive(Clone)]
pub struct Plan {
    /// Text instead of numbers, and whether there are nulls.
    types: Vec<(bool, bool)>,
    counted: bool,
    from: i64,
    pub ids_fall: bool,
}

impl Plan {
    pub fn of(task: &Task) -> Plan {
        let ty = |name: &str| match name.trim_end_matches('?') {
            "i64" => (false, name.ends_with('?')),
            "string" => (true, name.ends_with('?')),
            other => panic!("no type {other}"),
        };
        Plan {
            types: task.text("types", "i64").split(',').map(ty).collect(),
            counted: task.number("count", 1) == 1,
            from: task.number("from", 0) as i64,
            ids_fall: task.text("ids", "rise") == "fall",
        }
    }

    /// One array per type, with the rows from `first` on.
    pub fn arguments(&self, first: u64, rows: usize) -> Vec<ArrayData> {
        let first = first as i64 + self.from;
        let numbers = || first..first + rows as i64;
        let array = |&(is_text, nullable): &(bool, bool)| {
            let value = |n: i64| (!nullable || n % 5 != 3).then_some(n);
            let array: ArrayRef = match (is_text, nullable) {
                (false, false) => Arc::new(Int64Array::from_iter_values(numbers())),
                (false, true) => Arc::new(Int64Array::from_iter(numbers().map(value))),
                (true, _) => Arc::new(StringArray::from_iter(numbers().map(|n| value(n).map(|n| format!("r{n}"))))),
            };
            let data = array.to_data();
            if !self.counted {
                return data;
            }
            let buffers = data.buffers().iter().map(Loan::of).collect();
            data.into_builder().buffers(buffers).build().expect("valid data")
        };
        self.types.iter().map(array).collect()
    }
}

/// The values of an array, one text each.
pub fn texts(data: ArrayData) -> Vec<String> {
    let array = arrow::array::make_array(data);
    match array.data_type() {
        DataType::Int64 => {
            let array = array.as_any().downcast_ref::<Int64Array>().expect("numbers");
            array.iter().map(|value| value.map_or("null".into(), |value| value.to_string())).collect()
        }
        DataType::Utf8 => {
            let array = array.as_any().downcast_ref::<StringArray>().expect("texts");
            array.iter().map(|value| value.unwrap_or("null").to_string()).collect()
        }
        other => panic!("no texts for {other}"),
    }
}
