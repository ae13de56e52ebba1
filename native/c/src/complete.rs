//! The functions with which an author completes a call, from any thread.
//!
//! Guarantees: the first completion that reaches the machine is the row's outcome (R6); others are discarded and counted.

use crate::calls::{self, OpenCall};
use crate::started;
use arroyo_udf_plugin::machine::Outcome;
use arroyo_udf_plugin::results;
use arroyo_udf_plugin::signature::Signature;
use arroyo_udf_plugin::value::Value;
use std::ffi::{c_char, CStr};

/// Formats of the Arrow C Data Interface, and the author's words for them.
const WORDS: [(u8, &str); 12] = [
    (b'b', "bool"),
    (b'c', "int8"),
    (b's', "int16"),
    (b'i', "int32"),
    (b'l', "int64"),
    (b'C', "uint8"),
    (b'S', "uint16"),
    (b'I', "uint32"),
    (b'L', "uint64"),
    (b'f', "float32"),
    (b'g', "float64"),
    (b'u', "utf8"),
];

fn word(format: u8) -> &'static str {
    WORDS.iter().find(|(known, _)| *known == format).map_or("another type", |(_, word)| word)
}

/// Ends the call of `token` with the result of `outcome`. False: the call or its runtime had ended before.
fn complete(token: u64, outcome: impl FnOnce(&Signature, &OpenCall) -> Outcome<Value>) -> bool {
    let Some(started) = started::find(calls::runtime_of(token)) else { return false };
    let Some(runtime) = started.runtime.upgrade() else { return false };
    let counts = runtime.guard(|| {
        let open = started.calls().take(token);
        let Some(open) = open else {
            runtime.count_discarded();
            return false;
        };
        let (attempt, outcome) = (open.attempt, outcome(runtime.signature(), &open));
        // Before the end is reported, because a host that has all results expects its arrays back.
        drop(open);
        let counts = runtime.end(attempt, outcome);
        if !started.is_mine() {
            runtime.notify();
        }
        counts
    });
    counts.unwrap_or(false)
}

/// Ends a call with a value, if `format` is the declared one.
fn value(token: u64, format: u8, value: impl FnOnce() -> Result<Value, String>) -> bool {
    complete(token, |signature, _| {
        // SAFETY: the format of a constant schema has at least one letter, or is empty and ends at once.
        let declared = unsafe { *signature.return_schema.format } as u8;
        let value = if declared == format {
            value().and_then(|value| results::fits(&signature.returns, &value).map(|()| value))
        } else {
            Err(format!("completed with {}, and its result is declared {}", word(format), word(declared)))
        };
        match value {
            Ok(value) => Outcome::Value(value),
            Err(text) => Outcome::Error(text.into()),
        }
    })
}

/// `arroyo_udf_complete_int64` and the like: `bits` are the value's, little-endian.
#[no_mangle]
pub extern "C" fn arroyo_udf_c_complete(token: u64, format: c_char, bits: u64) -> bool {
    value(token, format as u8, || Ok(Value::Fixed(bits)))
}

/// # Safety
/// `data` points to `length` bytes; it may be null if there are none.
#[no_mangle]
pub unsafe extern "C" fn arroyo_udf_complete_utf8(token: u64, data: *const c_char, length: usize) -> bool {
    value(token, b'u', || {
        let bytes = match length {
            0 => &[],
            // SAFETY: the caller promises `length` bytes.
            _ => unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) },
        };
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Value::Bytes(text.as_bytes().into())),
            Err(_) => Err("the result is not valid UTF-8".into()),
        }
    })
}

#[no_mangle]
pub extern "C" fn arroyo_udf_complete_null(token: u64) -> bool {
    complete(token, |signature, _| {
        if signature.returns_nullable {
            return Outcome::Value(Value::Null);
        }
        Outcome::Error("the function answered null, and its result is not declared nullable".into())
    })
}

/// # Safety
/// `text` is NUL-terminated.
#[no_mangle]
pub unsafe extern "C" fn arroyo_udf_complete_error(token: u64, text: *const c_char) -> bool {
    complete(token, |_, _| {
        // SAFETY: the caller promises a NUL-terminated text.
        Outcome::Error(unsafe { CStr::from_ptr(text) }.to_string_lossy().into())
    })
}

#[no_mangle]
pub extern "C" fn arroyo_udf_complete_cancelled(token: u64) {
    complete(token, |_, open| match open.cancelled {
        true => Outcome::Cancelled,
        false => Outcome::Error("completed as cancelled, but it was not cancelled".into()),
    });
}
