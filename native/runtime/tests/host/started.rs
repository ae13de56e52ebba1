//! A started function of this test binary, with values instead of buffers.

use super::{batch, no_error, number, read, taken, Row, TABLE};
use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::value::Value;
use std::ptr::null;

/// A started function; released at the end of the test.
pub struct Started(pub abi::Handle);

impl Started {
    pub fn new(name: &str, options: abi::Options) -> Started {
        let (mut handle, mut error) = (0, no_error());
        // SAFETY: all pointers are valid.
        let status = unsafe { (TABLE.start)(number(name), &options, &mut handle, &mut error) };
        assert_eq!((status, taken(&mut error)), (abi::OK, String::new()));
        Started(handle)
    }

    pub fn send(&self, name: &str, first_id: u64, columns: &[Vec<Value>]) -> abi::Status {
        self.send_with(name, first_id, columns, null())
    }

    pub fn send_with(&self, name: &str, first_id: u64, columns: &[Vec<Value>], context: *const abi::BatchContext) -> abi::Status {
        let (mut arguments, mut error) = (batch(name, columns, 3), no_error());
        // SAFETY: all pointers are valid.
        unsafe { (TABLE.send)(self.0, first_id, &mut arguments, context, &mut error) }
    }

    pub fn wait(&self, condition: u32) {
        let mut error = no_error();
        // SAFETY: all pointers are valid. The time is far longer than any test takes.
        let status = unsafe { (TABLE.wait)(self.0, condition, 60_000_000_000, &mut error) };
        assert_eq!((status, taken(&mut error)), (abi::OK, String::new()));
    }

    /// Waits for results and takes all of them.
    pub fn drain_some(&self) -> Vec<(u64, Row)> {
        loop {
            self.wait(abi::RESULTS);
            let (mut results, mut schema, mut error) = (abi::ArrowArray::empty(), null(), no_error());
            // SAFETY: all pointers are valid.
            match unsafe { (TABLE.drain_results)(self.0, 0, &mut results, &mut schema, &mut error) } {
                // SAFETY: on OK the schema is a constant of the plugin.
                abi::OK => return read(results, unsafe { &*schema }).into_iter().map(|(id, row)| (id.expect("an id"), row)).collect(),
                abi::WOULD_BLOCK => {}
                status => panic!("{status} {}", taken(&mut error)),
            }
        }
    }

    /// The last `rows` results.
    pub fn drain(&self, rows: usize) -> Vec<(u64, Row)> {
        let mut drained = Vec::new();
        while drained.len() < rows {
            drained.extend(self.drain_some());
        }
        assert_eq!(drained.len(), rows);
        drained
    }

    pub fn stop(&self, mode: u32, seconds: u64) -> abi::Status {
        let mut error = no_error();
        // SAFETY: all pointers are valid.
        let status = unsafe { (TABLE.stop_runtime)(self.0, mode, seconds * 1_000_000_000, &mut error) };
        assert_eq!(taken(&mut error), "");
        status
    }

    /// The status of drain_results when there are no results.
    pub fn state(&self) -> abi::Status {
        let (mut results, mut schema, mut error) = (abi::ArrowArray::empty(), null(), no_error());
        // SAFETY: all pointers are valid.
        unsafe { (TABLE.drain_results)(self.0, 0, &mut results, &mut schema, &mut error) }
    }

    pub fn statistics(&self) -> abi::Statistics {
        let mut statistics = abi::Statistics { size: size_of::<abi::Statistics>() as u64, ..Default::default() };
        // SAFETY: all pointers are valid.
        assert_eq!(unsafe { (TABLE.statistics)(self.0, &mut statistics, &mut no_error()) }, abi::OK);
        statistics
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // SAFETY: all pointers are valid.
        unsafe { (TABLE.release)(self.0, &mut no_error()) };
    }
}

pub fn numbers(values: impl IntoIterator<Item = u64>) -> Vec<Value> {
    values.into_iter().map(Value::Fixed).collect()
}

pub fn options() -> abi::Options {
    abi::Options::unset()
}
