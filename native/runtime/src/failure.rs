//! The failure of a call: a status and a text, and how both cross the C ABI. And the guard of every exported function.

use crate::panics::catch_own;
use crate::sized;
use arroyo_udf_abi as abi;
use std::ffi::{c_void, CString};

/// Why a call failed. `text` names the plugin, and the function if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub status: abi::Status,
    pub text: String,
    /// The same call may succeed later.
    pub retryable: bool,
}

impl Failure {
    pub fn new(status: abi::Status, text: impl Into<String>) -> Self {
        Failure { status, text: text.into(), retryable: status == abi::OUT_OF_MEMORY }
    }

    /// A failure for want of something that may be there later: a thread, memory.
    pub fn for_now(status: abi::Status, text: impl Into<String>) -> Self {
        Failure { retryable: true, ..Failure::new(status, text) }
    }

    pub fn argument(text: impl Into<String>) -> Self {
        Failure::new(abi::INVALID_ARGUMENT, text)
    }

    pub fn state(text: impl Into<String>) -> Self {
        Failure::new(abi::INVALID_STATE, text)
    }

    /// The caller of a slot has passed null.
    pub fn null(slot: &str, what: &str) -> Self {
        Failure::argument(format!("{slot}: {what} is null"))
    }

    /// The toolkit's mistake.
    pub fn internal(text: impl Into<String>) -> Self {
        Failure::new(abi::INTERNAL, text)
    }

    /// Writes the text into the caller's struct, which may be null. One that is smaller than in version 1 gets none.
    ///
    /// # Safety
    /// `error` is null or points to a writable struct of the size that it states, whose former content needs no release.
    pub unsafe fn write(self, error: *mut abi::Error) -> abi::Status {
        // SAFETY: the caller promises the size.
        if !error.is_null() && unsafe { sized::size(error) }.is_ok() {
            let text = CString::new(self.text.replace('\0', "\u{fffd}")).unwrap_or_default().into_raw();
            let retryable = if self.retryable { abi::YES } else { 0 };
            let filled = abi::Error { text, release: Some(release), private_data: text.cast::<c_void>(), retryable, ..abi::Error::empty() };
            // SAFETY: as above, and writable. The size was just found valid, so this does not fail.
            drop(unsafe { sized::write(&filled, error) });
        }
        self.status
    }
}

unsafe extern "C" fn release(error: *mut abi::Error) {
    // SAFETY: `private_data` is the CString that `write` gave away; `release` is reset, so it is freed once.
    unsafe {
        drop(CString::from_raw((*error).private_data.cast()));
        (*error).text = std::ptr::null();
        (*error).release = None;
    }
}

/// Runs the body of an exported function: a panic of ours becomes a status and never crosses the boundary. `broken` gets its
/// text first, to poison the runtime that the call was for (R17).
///
/// # Safety
/// As for [`Failure::write`].
pub unsafe fn guard(error: *mut abi::Error, broken: impl FnOnce(&str), body: impl FnOnce() -> Result<abi::Status, Failure>) -> abi::Status {
    let failure = match catch_own(body) {
        Ok(Ok(status)) => return status,
        Ok(Err(failure)) => failure,
        Err(text) => {
            drop(catch_own(|| broken(&text)));
            Failure::internal(text)
        }
    };
    // SAFETY: passed on.
    unsafe { failure.write(error) }
}
