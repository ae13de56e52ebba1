//! What a host says of all rows of a batch: `arroyo_udf_batch_context` in the header.

use crate::sized;
use arroyo_udf_abi as abi;
use std::ffi::CString;
use std::slice;
use std::sync::Arc;

/// The most bytes of a trace parent.
const MOST: usize = 255;

/// What a row's calls may do something under once only (R10).
pub type Key = [u8; 24];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BatchContext {
    /// In nanoseconds from the call; None: no deadline.
    pub deadline: Option<u64>,
    /// Visible ASCII characters.
    pub trace_parent: Option<CString>,
    /// One for each row; None: they have lineage and id.
    pub keys: Option<Box<[Key]>>,
    /// Bit i: argument number i is a constant.
    pub constants: u64,
}

impl BatchContext {
    /// None: the host says nothing. What it says in fields of a later version is ignored. The error is a text for the host.
    ///
    /// # Safety
    /// `context` is null or points to a struct of the size that it states; its text is null or ends within 256 bytes, and its
    /// keys are null or of `rows` rows.
    pub unsafe fn read(context: *const abi::BatchContext, rows: usize) -> Result<Option<Arc<BatchContext>>, String> {
        if context.is_null() {
            return Ok(None);
        }
        // SAFETY: passed on.
        let context = unsafe { sized::read(context) }?;
        Ok(Some(Arc::new(BatchContext {
            deadline: (1..u64::MAX).contains(&context.deadline_ns).then_some(context.deadline_ns),
            // SAFETY: passed on.
            trace_parent: unsafe { trace_parent(context.trace_parent.cast()) }?,
            keys: (!context.idempotency_keys.is_null() && rows > 0).then(|| {
                // SAFETY: passed on; bytes have no alignment.
                unsafe { slice::from_raw_parts(context.idempotency_keys.cast::<Key>(), rows) }.into()
            }),
            constants: context.constants,
        })))
    }

    /// Of the row in this place of the batch.
    pub fn key(&self, row: usize) -> Option<Key> {
        self.keys.as_ref().and_then(|keys| keys.get(row).copied())
    }
}

/// # Safety
/// `text` is null or ends with a zero.
unsafe fn trace_parent(text: *const u8) -> Result<Option<CString>, String> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: no byte after the first zero is read.
    let length = (0..=MOST).find(|&i| unsafe { *text.add(i) } == 0);
    // SAFETY: these bytes were just read.
    let bytes = length.map(|length| unsafe { slice::from_raw_parts(text, length) });
    match bytes.filter(|bytes| !bytes.is_empty() && bytes.iter().all(u8::is_ascii_graphic)).map(CString::new) {
        Some(Ok(text)) => Ok(Some(text)),
        _ => Err(format!("batch context: trace_parent is not a text of 1 to {MOST} visible ASCII characters")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn read(deadline_ns: u64, trace_parent: Option<&CStr>) -> Result<BatchContext, String> {
        let size = size_of::<abi::BatchContext>() as u64;
        let trace_parent = trace_parent.map_or(std::ptr::null(), CStr::as_ptr);
        let context = abi::BatchContext { size, deadline_ns, trace_parent, idempotency_keys: std::ptr::null(), constants: 0 };
        // SAFETY: a context of this library.
        unsafe { BatchContext::read(&context, 1) }.map(|read| BatchContext::clone(&read.expect("a context was passed")))
    }

    #[test]
    fn a_deadline_of_zero_or_the_largest_number_is_none() {
        let deadlines = [0, 1, u64::MAX - 1, u64::MAX].map(|deadline| read(deadline, None).unwrap().deadline);
        assert_eq!(deadlines, [None, Some(1), Some(u64::MAX - 1), None]);
    }

    /// R10
    #[test]
    fn keys_are_copied_and_a_host_of_the_first_version_has_none() {
        let keys: Vec<u8> = (0..48).collect();
        let of = |size: usize, rows: usize| {
            let at = keys.as_ptr();
            let trace_parent = std::ptr::null();
            let context = abi::BatchContext { size: size as u64, deadline_ns: 1, trace_parent, idempotency_keys: at, constants: 0 };
            // SAFETY: a context of this library, with two keys.
            unsafe { BatchContext::read(&context, rows) }.unwrap().expect("a context was passed")
        };
        let whole = of(size_of::<abi::BatchContext>(), 2);
        assert_eq!((0..3).map(|row| whole.key(row).map(|key| key[0])).collect::<Vec<_>>(), [Some(0), Some(24), None]);
        assert_eq!(of(abi::BATCH_CONTEXT_SIZE_1 as usize, 2).keys, None);
        assert_eq!(of(size_of::<abi::BatchContext>(), 0).keys, None);
    }

    #[test]
    fn a_trace_parent_is_copied_and_one_that_is_not_visible_ascii_is_refused() {
        let text = c"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(read(0, Some(text)).unwrap().trace_parent.as_deref(), Some(text));
        let longest = std::ffi::CString::new([b'a'; MOST]).unwrap();
        assert!(read(0, Some(&longest)).is_ok());
        let too_long = std::ffi::CString::new([b'a'; MOST + 1]).unwrap();
        for wrong in [c"", c"a b", c"a\n", c"\xff", c"\xc3\xa4", &too_long] {
            let text = read(0, Some(wrong)).unwrap_err();
            assert_eq!(text, "batch context: trace_parent is not a text of 1 to 255 visible ASCII characters");
        }
    }
}
