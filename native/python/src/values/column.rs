//! `ColumnWriter`: builds the Arrow column of `run`'s results from Python objects.

use super::conversion::{Conversion, Int};
use super::write::Scalar;
use arroyo_udf_plugin::arrow::{ArrayData, Buffer, Offset, Offsets, Validity};
use arroyo_udf_plugin::isolation::process::journal::{self, Journal};
use pyo3_ffi::PyObject;

/// The values, by width.
enum Values {
    Bits(Validity),
    W1(Vec<u8>),
    W2(Vec<u16>),
    W4(Vec<u32>),
    W8(Vec<u64>),
    Bytes(Offsets<i32>, Vec<u8>),
    LargeBytes(Offsets<i64>, Vec<u8>),
}

pub struct ColumnWriter {
    validity: Validity,
    values: Values,
    /// In a worker process: where each row is written down before the next one begins, and nowhere else.
    journal: Option<&'static mut Journal<'static>>,
}

impl ColumnWriter {
    /// For `rows` rows. Panics if pyarrow converts the type.
    pub fn new(conversion: &Conversion, rows: usize) -> ColumnWriter {
        // SAFETY: the writer lives as long as the loop over the batch's rows, and no longer.
        let journal = unsafe { journal::take() };
        let rows = if journal.is_some() { 0 } else { rows };
        let values = match conversion {
            Conversion::Bool => Values::Bits(Validity::with_capacity(rows)),
            Conversion::Int(Int::I8 | Int::U8) => Values::W1(Vec::with_capacity(rows)),
            Conversion::Int(Int::I16 | Int::U16) => Values::W2(Vec::with_capacity(rows)),
            Conversion::Int(Int::I32 | Int::U32) | Conversion::Float32 | Conversion::Date32 => Values::W4(Vec::with_capacity(rows)),
            Conversion::Int(Int::I64 | Int::U64) | Conversion::Float64 | Conversion::Timestamp(..) | Conversion::Pyarrow => {
                Values::W8(Vec::with_capacity(rows))
            }
            Conversion::Utf8 | Conversion::Binary => Values::Bytes(Offsets::with_capacity(rows), Vec::with_capacity(rows * 8)),
            Conversion::LargeUtf8 | Conversion::LargeBinary => {
                Values::LargeBytes(Offsets::with_capacity(rows), Vec::with_capacity(rows * 8))
            }
        };
        ColumnWriter { validity: Validity::with_capacity(rows), values, journal }
    }

    /// Appends what a function returned. The error is a text for the row; then nothing was appended.
    ///
    /// # Safety
    /// The GIL is held; `object` is valid.
    #[inline(always)]
    pub unsafe fn push(&mut self, conversion: &Conversion, object: *mut PyObject) -> Result<(), String> {
        // SAFETY: passed on; the bytes are copied before the object goes away.
        let scalar = unsafe { conversion.write(object) }?;
        if let Some(journal) = &mut self.journal {
            match scalar {
                Scalar::Fixed(x) => journal.fixed(x),
                Scalar::Bytes(bytes) => journal.bytes(bytes),
            }
            return Ok(());
        }
        match scalar {
            Scalar::Fixed(x) => match &mut self.values {
                Values::W8(values) => values.push(x),
                Values::W4(values) => values.push(x as u32),
                Values::W2(values) => values.push(x as u16),
                Values::W1(values) => values.push(x as u8),
                Values::Bits(bits) => bits.push(x != 0),
                Values::Bytes(..) | Values::LargeBytes(..) => unreachable!("the writer was made for this type"),
            },
            Scalar::Bytes(bytes) => match &mut self.values {
                Values::Bytes(offsets, data) => append(offsets, data, bytes)?,
                Values::LargeBytes(offsets, data) => append(offsets, data, bytes)?,
                _ => unreachable!("the writer was made for this type"),
            },
        }
        self.validity.push(true);
        Ok(())
    }

    #[inline]
    pub fn push_null(&mut self) {
        match &mut self.journal {
            Some(journal) => journal.null(),
            None => self.skip(1),
        }
    }

    /// A row without a value: an error with this text.
    pub fn push_error(&mut self, text: &str) {
        match &mut self.journal {
            Some(journal) => journal.error(text),
            None => self.skip(1),
        }
    }

    #[inline]
    fn skip(&mut self, rows: usize) {
        match &mut self.values {
            Values::Bits(bits) => (0..rows).for_each(|_| bits.push(false)),
            Values::W1(values) => values.resize(values.len() + rows, 0),
            Values::W2(values) => values.resize(values.len() + rows, 0),
            Values::W4(values) => values.resize(values.len() + rows, 0),
            Values::W8(values) => values.resize(values.len() + rows, 0),
            Values::Bytes(offsets, _) => offsets.skip(rows),
            Values::LargeBytes(offsets, _) => offsets.skip(rows),
        }
        (0..rows).for_each(|_| self.validity.push(false));
    }

    /// The column of so many rows; of rows that were written down elsewhere, nulls.
    pub fn finish(mut self, rows: usize) -> ArrayData {
        if self.journal.is_some() {
            self.skip(rows);
        }
        let (length, null_count) = (self.validity.len(), self.validity.nulls());
        let validity = self.validity.into_buffer();
        let buffers = match self.values {
            Values::Bits(bits) => vec![validity, bits.into_bits()],
            Values::W1(values) => vec![validity, values.into()],
            Values::W2(values) => vec![validity, values.into()],
            Values::W4(values) => vec![validity, values.into()],
            Values::W8(values) => vec![validity, values.into()],
            Values::Bytes(offsets, data) => vec![validity, offsets.into(), Buffer::from(data)],
            Values::LargeBytes(offsets, data) => vec![validity, offsets.into(), Buffer::from(data)],
        };
        ArrayData { length, null_count, buffers, children: vec![] }
    }
}

#[inline]
fn append<T: Offset>(offsets: &mut Offsets<T>, data: &mut Vec<u8>, bytes: &[u8]) -> Result<(), String> {
    offsets.push(bytes.len()).map_err(|no_room| no_room.to_string())?;
    data.extend_from_slice(bytes);
    Ok(())
}
