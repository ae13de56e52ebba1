//! Why a call failed.

use std::ffi::CStr;
use std::fmt;

use arroyo_udf_abi as abi;

/// Of this crate's calls.
pub type Result<T> = std::result::Result<T, Error>;

/// What kind of failure it is: the statuses of `arroyo_udf.h`, and what is found out before a plugin is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is no plugin, or one that this host cannot use.
    Load,
    /// A wrong function, batch, id or option.
    InvalidArgument,
    /// Stopped, released, or used after a fork.
    InvalidState,
    /// The plugin cannot work here: no Python, a wrong version, a missing package.
    Environment,
    /// User code failed outside of a row: in its module, or in the init or close of a Context.
    UserCode,
    /// The plugin's mistake, or a status that is not an error of version 1.
    Internal,
    /// This function or plugin cannot do it.
    NotImplemented,
    /// Nothing changed: the caller keeps its batch.
    OutOfMemory,
    /// A row failed, and a value for each row was asked for.
    Row,
}

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    text: String,
    is_retryable: bool,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Error { kind, text: text.into(), is_retryable: false }
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the same call may succeed later, because memory or a thread was lacking.
    pub fn is_retryable(&self) -> bool {
        self.is_retryable
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

/// A function whose plugin does not keep the contract.
pub(crate) fn broken(function: &str, why: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("function {function}: the plugin breaks the contract: {why}"))
}

/// Calls a slot with an error to fill in, and takes its text.
///
/// Returns the status, if it is one of `expected`.
pub(crate) fn check(function: &str, expected: &[abi::Status], slot: impl FnOnce(*mut abi::Error) -> abi::Status) -> Result<abi::Status> {
    let mut error = abi::Error::empty();
    let status = slot(&mut error);
    if expected.contains(&status) {
        return Ok(status);
    }
    let text = if error.text.is_null() {
        format!("status {status}, without a text")
    } else {
        // SAFETY: the contract: a zero-ended text, which lives until the error's release.
        unsafe { CStr::from_ptr(error.text) }.to_string_lossy().into_owned()
    };
    if let Some(release) = error.release {
        // SAFETY: set by the plugin for this error, and called once, after the text was copied.
        unsafe { release(&mut error) };
    }
    if status < abi::INVALID_ARGUMENT {
        return Err(broken(function, &format!("it answered status {status}")));
    }
    Err(Error { kind: kind_of(status), text, is_retryable: error.retryable == abi::YES })
}

fn kind_of(status: abi::Status) -> ErrorKind {
    match status {
        abi::INVALID_ARGUMENT => ErrorKind::InvalidArgument,
        abi::INVALID_STATE => ErrorKind::InvalidState,
        abi::ENVIRONMENT => ErrorKind::Environment,
        abi::USER_CODE => ErrorKind::UserCode,
        abi::NOT_IMPLEMENTED => ErrorKind::NotImplemented,
        abi::OUT_OF_MEMORY => ErrorKind::OutOfMemory,
        _ => ErrorKind::Internal,
    }
}
