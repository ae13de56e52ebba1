//! One value of any Arrow type: a row's result from its end to its drain.

use crate::machine::Weigh;
use std::sync::Arc;

/// The variant follows the physical layout (`arrow::Layout`), not the logical type: date32 and int32 are both `Fixed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Null,
    /// Up to 8 bytes, little-endian; a boolean is 0 or 1.
    Fixed(u64),
    /// Up to 16 bytes, little-endian.
    Wide([u64; 2]),
    /// Text, bytes, and fixed-width values of more than 16 bytes.
    Bytes(Box<[u8]>),
    /// The same, where several rows have it.
    Shared(Arc<[u8]>),
    /// The items of a list, or the fields of a struct.
    Nested(Box<[Value]>),
}

impl Value {
    /// The content of `Bytes` and `Shared`.
    #[inline]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            Value::Shared(bytes) => Some(bytes),
            _ => None,
        }
    }
}

impl Weigh for Value {
    #[inline]
    fn bytes(&self) -> u64 {
        match self {
            Value::Null | Value::Fixed(_) | Value::Wide(_) => 0,
            Value::Bytes(bytes) => bytes.len() as u64,
            Value::Shared(bytes) => bytes.len() as u64,
            Value::Nested(items) => items.iter().map(|item| item.bytes() + 8).sum(),
        }
    }

    fn shared(self) -> Value {
        match self {
            Value::Bytes(bytes) => Value::Shared(bytes.into()),
            other => other,
        }
    }
}
