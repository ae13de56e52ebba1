//! Arrow C Data arrays, in and out, without the arrow crates.
//!
//! | module     | what it is for                                                               |
//! |------------|------------------------------------------------------------------------------|
//! | `layout`   | a schema -> how the values of its type lie in memory                         |
//! | `check`    | in: what is checked of an array, and when                                    |
//! | `decimal`  | whether a decimal is within its precision                                    |
//! | `column`   | in: a checked view of one array                                              |
//! | `batch`    | in: owns the struct array of a call's arguments, and views its columns       |
//! | `data`     | out: memory with its owner, exported as an array that releases it            |
//! | `bitmap`   | validity and booleans, read and built                                        |
//! | `offsets`  | out: lengths -> offsets that never wrap                                      |
//! | `build`    | out: single values -> a column                                               |
//! | `concat`   | out: arrays of one type, one after another                                   |
//! | `view`     | in and out: an array that came in, again, for code that wants it whole       |
//!
//! Guarantees: an array that came in is checked by the rules in [`check`](mod@check) before it is read; an array that goes out
//! owns its memory. Assumes what no check can tell: buffers are as long as an array's length and offsets say, and stay
//! unchanged.

mod batch;
mod bitmap;
mod build;
mod check;
mod column;
mod concat;
mod data;
mod decimal;
mod layout;
mod offsets;
mod view;

pub use batch::{ArgumentArray, Batch};
pub use bitmap::Validity;
pub(crate) use bitmap::{bits, nulls};
pub(crate) use build::narrow;
pub use build::{build, build_with_room};
pub use check::{check, check_rows};
pub use column::{BytesView, Column, Kept, BAD_OFFSETS};
pub use concat::concat;
pub use data::{ArrayData, Buffer, Owned};
pub use layout::{child_schema, Layout};
#[cfg(test)]
pub(crate) use offsets::limit;
pub use offsets::{NoRoom, Offset, Offsets};
pub use view::{view, view_batch};
