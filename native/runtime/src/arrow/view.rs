//! An array that came in, again: other structs over the same buffers, for code that wants it whole, such as pyarrow.
//!
//! Guarantees: releasing a view leaves the array alone. Null counts are -1, or 0 without a bitmap, so that nobody allocates by a
//! wrong one. Numbers and offsets are aligned: a buffer that is not is copied. An array without rows has an offset to read.

use super::batch::Batch;
use super::data::{ArrayData, Buffer};
use super::layout::{Layout, Level};
use arroyo_udf_abi::ArrowArray;
use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

/// The buffers of an array without rows, which may lack its only offset.
static NOTHING: [u64; 2] = [0; 2];

/// A view of an array, for as long as the array lives.
///
/// # Safety
/// The array was checked against the layout.
pub unsafe fn view(array: &ArrowArray, layout: &Layout) -> ArrowArray {
    let item = |i: usize| match layout {
        Layout::Struct(fields) => &fields[i],
        Layout::List(item) | Layout::LargeList(item) | Layout::FixedList(_, item) => &**item,
        _ => unreachable!("its shape has no children"),
    };
    // SAFETY: the children of a checked array were checked.
    unsafe { with_owner(array, layout.level(), item, None) }
}

/// A view of a batch, which keeps the batch: any thread may release it.
pub fn view_batch(batch: &Arc<Batch>, arguments: &[(String, Layout)]) -> ArrowArray {
    let owner = Box::new(Arc::clone(batch));
    // SAFETY: a batch was checked against the layouts of its arguments.
    unsafe { with_owner(batch.array(), Level::Struct(arguments.len()), |i| &arguments[i].1, Some(owner)) }
}

/// A view that drops `owner` when it is released.
///
/// # Safety
/// The array was checked; child number `i` has layout `of_child(i)`.
unsafe fn with_owner<'a>(
    array: &ArrowArray,
    kind: Level,
    of_child: impl Fn(usize) -> &'a Layout,
    mut owner: Option<Box<dyn Any + Send>>,
) -> ArrowArray {
    let (n_buffers, n_children) = kind.shape();
    // SAFETY: a checked array has these buffers, as long as its type needs them, and these children.
    unsafe {
        let buffer = |i: usize| {
            let pointer = match i {
                0 if array.null_count == 0 || array.length == 0 => std::ptr::null(),
                _ if array.length == 0 => (&raw const NOTHING).cast(),
                _ => *array.buffers.add(i),
            };
            match copied_size(array, kind, i, pointer) {
                Some(bytes) => {
                    let mut words = vec![0u64; bytes.div_ceil(8)];
                    std::ptr::copy_nonoverlapping(pointer.cast::<u8>(), words.as_mut_ptr().cast(), bytes);
                    Buffer::from(words)
                }
                None => Buffer::owned_by(pointer, owner.take()),
            }
        };
        let buffers = (0..n_buffers).map(buffer).collect();
        let children = (0..n_children).map(|i| view(&**array.children.add(i), of_child(i))).collect();
        let data = ArrayData { length: array.length as usize, null_count: 0, buffers, children };
        let null_count = if array.null_count == 0 { 0 } else { -1 };
        let offset = if array.length == 0 { 0 } else { array.offset };
        ArrowArray { offset, null_count, ..data.export() }
    }
}

/// The bytes of a buffer that must be copied, because it is not aligned.
fn copied_size(array: &ArrowArray, kind: Level, buffer: usize, pointer: *const c_void) -> Option<usize> {
    if buffer != 1 || array.length == 0 {
        return None;
    }
    let rows = (array.offset + array.length) as usize;
    let (width, count) = match (kind, kind.offset_width()) {
        (_, Some(width)) => (width, rows + 1),
        (Level::Fixed(width @ (2 | 4 | 8 | 16 | 32)), _) => (width, rows),
        _ => return None,
    };
    (pointer as usize % width.min(8) != 0).then_some(width * count)
}
