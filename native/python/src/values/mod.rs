//! Values between Arrow and Python, converted here rather than through pyarrow (F2): bool, integers, floats, utf8,
//! large_utf8, binary, large_binary, date32, timestamp.
//!
//! | module         | what it does                                       |
//! |----------------|----------------------------------------------------|
//! | [`conversion`] | the types, and which one a field of a schema has   |
//! | [`read`]       | a value of a column -> a Python object             |
//! | [`write`]      | a Python object -> the content of a value, checked |
//! | [`column`]     | many of those -> a column                          |
//!
//! Guarantees: a value that does not fit becomes an error text for its row, never a wrong value (F4).

pub mod column;
pub mod conversion;
pub mod read;
pub mod write;
