//! One JSON text (RFC 8259): no tree is made of it, answers are cut from it.
//!
//! | module     | what it is for                                                      |
//! |------------|---------------------------------------------------------------------|
//! | `bytes`    | sixteen bytes at once                                               |
//! | `cursor`   | reads a text from left to right, and checks what it passes          |
//! | `texts`    | a string without its escapes; a value without its spaces            |
//! | `keys`     | a path of keys and indices, and the first value that it leads to    |
//! | `paths`    | JSONPath, and all values that one leads to                          |
//! | `answers`  | what the functions of SQL answer about a text                       |
//! | `rows`     | lines of objects, as columns that are known                         |
//!
//! Functions by keys read a text up to the value and no further: what follows is not checked, and of two equal keys the
//! first counts. Functions by JSONPath read all of it: what is no JSON has no values, and of two equal keys the last counts.
//! Both are what Arroyo's functions of the same names do.

mod answers;
mod bytes;
mod cursor;
mod keys;
mod paths;
mod rows;
mod texts;

pub use answers::{array, as_text, boolean, contains, first, first_string, float, int, keys_of, length, query, raw, string, value};
pub use keys::Step;
pub use paths::Path;
pub use rows::LinesReader;
pub use texts::append_compact;

#[cfg(test)]
mod tests;
