//! The arguments of an Arroyo call, one array and schema each -> a batch.
//!
//! Guarantees: all that came in is released, also when it is refused; a type that differs from the declared one is refused,
//! because Arroyo takes its types from the SQL text and not from the library.

use super::layout::Arrays;
use crate::arrow::{child_schema, ArgumentArray};
use crate::retired;
use crate::signature::{text, Signature};
use arroyo_udf_abi::{ArrowArray, ArrowSchema};
use std::ffi::c_void;
use std::ptr::null;

/// The batch of a call. The error is a text without the function's name.
///
/// # Safety
/// `arrays` is what a host passed: valid arrays that belong to the callee.
pub unsafe fn batch(signature: &Signature, arrays: Arrays) -> Result<ArgumentArray, String> {
    // SAFETY: passed on.
    let columns = unsafe { arrays.take() };
    let mut refused = None;
    let mut children = Vec::with_capacity(columns.len());
    for (i, column) in columns.into_iter().enumerate() {
        // SAFETY: the declared schema is a constant; the other one is valid until it is released below.
        let wrong = unsafe { child_schema(signature.argument_schema, i).ok().and_then(|declared| other_type(declared, &column.schema)) };
        if let (Some(wrong), Some((name, _))) = (wrong, signature.arguments.get(i)) {
            refused.get_or_insert(format!("argument {name} {wrong}"));
        }
        children.push(column.untyped());
    }
    let (given, declared) = (children.len(), signature.arguments.len());
    if given != declared {
        refused.get_or_insert(format!("{given} arguments were passed, but it takes {declared}"));
    }
    let rows = children.first().map_or(1, |first| first.length);
    if children.iter().any(|child| child.length != rows) {
        refused.get_or_insert("the arguments are of different lengths".into());
    }
    let mut array = structure(rows, children);
    let batch = match refused {
        None => {
            // SAFETY: the struct is valid, as its children are.
            unsafe { ArgumentArray::take(&mut array, &signature.arguments, &retired::LIBRARY) }
        }
        Some(text) => Err(text),
    };
    if batch.is_err() {
        retired::LIBRARY.add(array);
    }
    batch
}

/// How a type differs from the declared one. A declared timestamp may have a zone; Arroyo's have none.
///
/// # Safety
/// Both schemas are valid.
pub unsafe fn other_type(declared: &ArrowSchema, given: &ArrowSchema) -> Option<String> {
    // SAFETY: formats of valid schemas are texts.
    let (wanted, passed) = unsafe { (text(declared.format), text(given.format)) };
    let without_zone = |format: &str| if format.starts_with("ts") { format.chars().take(3).collect() } else { format.to_string() };
    if without_zone(&wanted) != without_zone(&passed) || !given.dictionary.is_null() || given.n_children != declared.n_children {
        return Some(format!("has the Arrow type \"{passed}\", but is declared as \"{wanted}\""));
    }
    (0..declared.n_children as usize).find_map(|i| {
        // SAFETY: valid schemas have valid children.
        unsafe {
            match (child_schema(declared, i), child_schema(given, i)) {
                (Ok(declared), Ok(given)) => other_type(declared, given),
                _ => Some("lacks a part of its type".into()),
            }
        }
    })
}

struct Parts {
    children: Vec<ArrowArray>,
    pointers: Vec<*mut ArrowArray>,
    no_validity: *const c_void,
}

/// A struct array around the columns.
fn structure(rows: i64, children: Vec<ArrowArray>) -> ArrowArray {
    let mut parts = Box::new(Parts { pointers: Vec::new(), children, no_validity: null() });
    parts.pointers = parts.children.iter_mut().map(|child| &raw mut *child).collect();
    ArrowArray {
        length: rows,
        null_count: 0,
        offset: 0,
        n_buffers: 1,
        n_children: parts.children.len() as i64,
        buffers: &raw mut parts.no_validity,
        children: parts.pointers.as_mut_ptr(),
        dictionary: std::ptr::null_mut(),
        release: Some(release),
        private_data: Box::into_raw(parts).cast(),
    }
}

/// Releases retired arguments of this interface, in the calling thread: only theirs may be released in any thread (R19).
pub fn sweep() {
    let ours = release as unsafe extern "C" fn(*mut ArrowArray) as usize;
    retired::LIBRARY.sweep_if(|array| array.release.is_some_and(|function| function as usize == ours));
}

unsafe extern "C" fn release(array: *mut ArrowArray) {
    // SAFETY: `private_data` is the box of `structure`; release is reset, so this happens once.
    unsafe {
        for child in &mut Box::from_raw((*array).private_data.cast::<Parts>()).children {
            if let Some(release) = child.release {
                release(child);
            }
        }
        (*array).release = None;
    }
}
