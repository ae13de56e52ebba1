//! Memory whose amount a host or an author decides: asked for before it is needed, so that a call fails and the process
//! goes on.
//!
//! Rust's collections end the process when an allocation fails. That is accepted for small ones, and for what a function
//! returns beyond the widths of its type. Results of many rows are asked for here first: by `run`, which then gives the
//! batch back, and by `drain_results`, which keeps its rows.
//!
//! Assumes that memory which was there a moment ago still is: another thread may be faster.

use crate::arrow::Layout;
use crate::failure::Failure;
use crate::machine::{Finished, Outcome, Weigh};
use crate::value::Value;
use arroyo_udf_abi as abi;

/// Up to this many bytes nobody asks: a small allocation costs less than the question.
const SMALL: usize = 1 << 20;
/// What a row of results has besides its value: id, outcome, attempts, offset of its text, validity, and what is needed only
/// while they are made.
const BESIDE: usize = 32;

/// Fails if there is no memory for the results of `rows` rows, without the content of texts, bytes and lists.
pub fn for_results(name: &str, layout: &Layout, rows: usize) -> Result<(), Failure> {
    check(name, rows.checked_mul(width(layout) + BESIDE))
}

/// As `for_results`, with the content.
pub fn for_rows(name: &str, layout: &Layout, rows: &[Finished<Value>]) -> Result<(), Failure> {
    let content = |row: &Finished<Value>| if let Outcome::Value(value) = &row.outcome { value.bytes() as usize } else { 0 };
    let content = if has_content(layout) { rows.iter().map(content).sum() } else { 0 };
    let fixed = rows.len().checked_mul(width(layout) + BESIDE);
    check(name, fixed.and_then(|fixed| fixed.checked_add(content)))
}

fn check(name: &str, bytes: Option<usize>) -> Result<(), Failure> {
    let is_there = match bytes {
        Some(bytes) if bytes <= SMALL => true,
        // The compiler may leave out an allocation that nobody looks at.
        Some(bytes) => std::hint::black_box(&mut Vec::<u8>::new()).try_reserve_exact(bytes).is_ok(),
        None => false,
    };
    if is_there {
        return Ok(());
    }
    let bytes = bytes.map_or("too many".to_string(), |bytes| bytes.to_string());
    Err(Failure::new(abi::OUT_OF_MEMORY, format!("{name}: out of memory: the results need {bytes} bytes; ask for fewer rows at once")))
}

/// The bytes of a value in buffers of fixed width.
fn width(layout: &Layout) -> usize {
    match layout {
        Layout::Null | Layout::Bool => 1,
        Layout::Fixed(width) => *width,
        Layout::Bytes | Layout::Text | Layout::List(_) => 4,
        Layout::LargeBytes | Layout::LargeText | Layout::LargeList(_) => 8,
        Layout::FixedList(length, item) => length.saturating_mul(width(item)),
        Layout::Struct(fields) => fields.iter().map(width).sum(),
    }
}

/// Whether values have bytes beyond their width.
fn has_content(layout: &Layout) -> bool {
    !matches!(layout, Layout::Null | Layout::Bool | Layout::Fixed(_))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn results_of_more_rows_than_there_is_memory_are_refused() {
        let number = Layout::Fixed(8);
        assert_eq!(for_results("p.f", &number, 1_000_000), Ok(()));
        for rows in [usize::MAX, usize::MAX / 64] {
            let failure = for_results("p.f", &number, rows).unwrap_err();
            assert_eq!(failure.status, abi::OUT_OF_MEMORY);
            assert!(failure.text.starts_with("p.f: out of memory: "), "{}", failure.text);
        }
    }
}
