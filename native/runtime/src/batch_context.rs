//! What a host says of all rows of a batch: `arroyo_udf_batch_context` in the header.

use crate::sized;
use arroyo_udf_abi as abi;
use std::ffi::CString;
use std::slice;
use std::sync::Arc;

/// The most bytes of a trace parent.
const MOST: usize = 255;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchContext {
    /// In nanoseconds from the call; None: no deadline.
    pub deadline: Option<u64>,
    /// Visible ASCII characters.
    pub trace_parent: Option<CString>,
}

impl BatchContext {
    /// None: the host says nothing. What it says in fields of a later version is ignored. The error is a text for the host.
    ///
    /// # Safety
    /// `context` is null or points to a struct of the size that it states; its text is null or ends within 256 bytes.
    pub unsafe fn read(context: *const abi::BatchContext) -> Result<Option<Arc<BatchContext>>, String> {
        if context.is_null() {
            return Ok(None);
        }
        // SAFETY: passed on.
        let context = unsafe { sized::read(context) }?;
        Ok(Some(Arc::new(BatchContext {
            deadline: (1..u64::MAX).contains(&context.deadline_ns).then_some(context.deadline_ns),
            // SAFETY: passed on.
            trace_parent: unsafe { trace_parent(context.trace_parent.cast()) }?,
        })))
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
        let context = abi::BatchContext { size, deadline_ns, trace_parent: trace_parent.map_or(std::ptr::null(), CStr::as_ptr) };
        // SAFETY: a context of this library.
        unsafe { BatchContext::read(&context) }.map(|read| BatchContext::clone(&read.expect("a context was passed")))
    }

    #[test]
    fn a_deadline_of_zero_or_the_largest_number_is_none() {
        let deadlines = [0, 1, u64::MAX - 1, u64::MAX].map(|deadline| read(deadline, None).unwrap().deadline);
        assert_eq!(deadlines, [None, Some(1), Some(u64::MAX - 1), None]);
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
