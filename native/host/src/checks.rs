//! What is checked before a plugin is believed: its texts, schemas, and the shape of its arrays.

use std::ffi::{c_char, CStr};
use std::sync::atomic::{AtomicUsize, Ordering};

use arroyo_udf_abi as abi;

type Checked<T = ()> = std::result::Result<T, String>;

const DEEPEST: u32 = 64;
/// Values of 16 bytes, and bits of more values than there is memory for, still have sizes that fit.
const MOST_VALUES: i64 = i64::MAX / 128;

pub(crate) fn text(pointer: *const c_char) -> Checked<&'static str> {
    if pointer.is_null() {
        return Err("a text is NULL".into());
    }
    // SAFETY: the contract: a constant zero-ended text of a library that is never unloaded.
    unsafe { CStr::from_ptr(pointer) }.to_str().map_err(|_| "a text is not UTF-8".into())
}

/// A name that messages and queries can contain.
pub(crate) fn name(pointer: *const c_char) -> Checked<&'static str> {
    match text(pointer)? {
        "" => Err("a name is empty".into()),
        name if name.chars().any(char::is_control) => Err(format!("the name {name:?} has control characters")),
        name => Ok(name),
    }
}

/// The part of a plugin's struct that this host knows; the struct may be smaller or larger. `size_1`: its size in version 1.
/// For structs that begin with their size, and whose later fields may all be zero.
pub(crate) fn known<T: Copy>(from: *const T, size_1: u64) -> Checked<T> {
    if from.is_null() {
        return Err("a struct is NULL".into());
    }
    // SAFETY: the struct begins with its size.
    let size = unsafe { from.cast::<u64>().read() };
    if size < size_1 {
        return Err(format!("a struct has {size} bytes, this host needs {size_1}"));
    }
    let mut known = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: both have as many bytes as are copied, and zero is valid in all others.
    unsafe {
        std::ptr::copy_nonoverlapping(from.cast::<u8>(), known.as_mut_ptr().cast(), size_of::<T>().min(size as usize));
        Ok(known.assume_init())
    }
}

/// How arrays of a format look.
struct Layout {
    /// None: at least three.
    n_buffers: Option<i64>,
    /// None: any number.
    n_children: Option<i64>,
    has_validity: bool,
    /// Whether each value, or each offset, needs memory in the second buffer.
    has_values: bool,
}

fn layout_of(format: &str) -> Layout {
    let layout = |n_buffers, n_children, has_values| Layout {
        n_buffers: Some(n_buffers),
        n_children: Some(n_children),
        has_validity: true,
        has_values,
    };
    match format {
        "n" => Layout { has_validity: false, ..layout(0, 0, false) },
        "u" | "z" | "U" | "Z" => layout(3, 0, true),
        "vu" | "vz" => Layout { n_buffers: None, ..layout(3, 0, true) },
        "+s" => Layout { n_children: None, ..layout(1, 0, false) },
        "+l" | "+L" | "+m" => layout(2, 1, true),
        "+vl" | "+vL" => layout(3, 1, true),
        "+r" => Layout { has_validity: false, ..layout(0, 2, false) },
        _ if format.starts_with("+w:") => layout(1, 1, false),
        _ if format.starts_with("+ud:") => Layout { n_children: None, has_validity: false, ..layout(2, 0, false) },
        _ if format.starts_with("+us:") => Layout { n_children: None, has_validity: false, ..layout(1, 0, false) },
        _ => layout(2, 0, true),
    }
}

/// Checks what readers of a schema rely on: its texts, its children, and its sizes.
pub(crate) fn schema(checked: &'static abi::ArrowSchema, depth: u32) -> Checked {
    if depth > DEEPEST {
        return Err(format!("a type is nested more than {DEEPEST} times"));
    }
    let format = text(checked.format)?;
    if !checked.name.is_null() {
        text(checked.name)?;
    }
    if checked.n_children < 0 || (checked.n_children > 0 && checked.children.is_null()) {
        return Err(format!("a type {format} has no children where it says so"));
    }
    if layout_of(format).n_children.is_some_and(|wanted| wanted != checked.n_children) {
        return Err(format!("a type {format} has {} children", checked.n_children));
    }
    if let Some(size) = format.strip_prefix("+w:").or(format.strip_prefix("w:")) {
        if size.parse::<i32>().map_or(true, |size| size < 0) {
            return Err(format!("a type {format} has no size"));
        }
    }
    for i in 0..checked.n_children as usize {
        // SAFETY: the contract: n_children pointers to constants of the plugin.
        let child = unsafe { (*checked.children.add(i)).as_ref() };
        schema(child.ok_or("a child of a type is NULL")?, depth + 1)?;
    }
    // SAFETY: the contract: NULL, or a constant of the plugin.
    unsafe { checked.dictionary.as_ref() }.map_or(Ok(()), |values| schema(values, depth + 1))
}

/// Schemas of results that have been checked, by their addresses. A plugin has one or two for a function.
#[derive(Default)]
pub(crate) struct Schemas([AtomicUsize; 2]);

impl Schemas {
    fn check(&self, results: &'static abi::ArrowSchema) -> Checked {
        let address = std::ptr::from_ref(results) as usize;
        if self.0.iter().any(|known| known.load(Ordering::Relaxed) == address) {
            return Ok(());
        }
        schema(results, 0)?;
        if text(results.format)? != "+s" {
            return Err(format!("of type {}, which is no struct", text(results.format)?));
        }
        let is_free = |known: &&AtomicUsize| known.compare_exchange(0, address, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        self.0.iter().find(is_free); // where none is, such a schema is checked again
        Ok(())
    }
}

/// Checks an array of results: a struct without nulls of its own.
pub(crate) fn results(checked: &abi::ArrowArray, of: &'static abi::ArrowSchema, known: &Schemas) -> Checked {
    known.check(of)?;
    array(checked, of, 0, 0)?;
    // SAFETY: a struct has one buffer, which is NULL or has a bit for each row.
    let is_null = |row: i64| unsafe {
        let validity = (*checked.buffers).cast::<u8>();
        !validity.is_null() && *validity.add(row as usize / 8) >> (row % 8) & 1 == 0
    };
    if checked.null_count != 0 && (checked.offset..checked.offset + checked.length).any(is_null) {
        return Err("with rows that are null".into());
    }
    Ok(())
}

/// Checks the numbers of an array against each other and against its type, before anything is read through them.
///
/// `n_values`: how many values its parent reads.
pub(crate) fn array(checked: &abi::ArrowArray, schema: &abi::ArrowSchema, n_values: i64, depth: u32) -> Checked {
    if depth > DEEPEST {
        return Err("that is nested too deeply".into());
    }
    if checked.release.is_none() {
        return Err("that is released".into());
    }
    let format = text(schema.format)?;
    let layout = layout_of(format);
    let (length, offset) = (checked.length, checked.offset);
    if length < n_values || offset < 0 || length > MOST_VALUES || offset > MOST_VALUES {
        return Err(format!("with length {length} and offset {offset}, where {n_values} values are needed"));
    }
    if layout.n_buffers.map_or(checked.n_buffers < 3, |wanted| wanted != checked.n_buffers) {
        return Err(format!("of type {format} with {} buffers", checked.n_buffers));
    }
    if checked.n_children != schema.n_children || (checked.n_children > 0 && (checked.children.is_null() || schema.children.is_null())) {
        return Err(format!("with {} children, where its type has {}", checked.n_children, schema.n_children));
    }
    if (checked.n_buffers > 0 && checked.buffers.is_null()) || checked.dictionary.is_null() != schema.dictionary.is_null() {
        return Err("without buffers or dictionary".into());
    }
    // SAFETY: it has that many buffers.
    let has_buffer = |i: usize| unsafe { !(*checked.buffers.add(i)).is_null() };
    if checked.null_count < -1 || checked.null_count > length || (layout.has_validity && checked.null_count > 0 && !has_buffer(0)) {
        return Err(format!("with {} nulls", checked.null_count));
    }
    if layout.has_values && offset + length > 0 && !has_buffer(1) {
        return Err("that has no buffer of values".into());
    }
    let read_of_children = if format == "+s" { offset + length } else { 0 };
    for i in 0..checked.n_children as usize {
        // SAFETY: both have that many children.
        let (child, child_schema) = unsafe { ((*checked.children.add(i)).as_ref(), (*schema.children.add(i)).as_ref()) };
        let (Some(child), Some(child_schema)) = (child, child_schema) else { return Err("with a child that is NULL".into()) };
        array(child, child_schema, read_of_children, depth + 1)?;
    }
    // SAFETY: the contract: NULL, or an array of the dictionary's type, as above.
    match unsafe { (checked.dictionary.as_ref(), schema.dictionary.as_ref()) } {
        (Some(values), Some(values_schema)) => array(values, values_schema, 0, depth + 1),
        _ => Ok(()),
    }
}
