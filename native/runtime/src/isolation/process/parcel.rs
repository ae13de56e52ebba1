//! Arrow arrays in a message: rows of an array, each level followed by those below it.
//!
//! A level is its length, whether it has a validity bitmap, then its buffers, aligned. Their sizes are not written: they
//! follow from the type, the length and the offsets. So a reader that copies first and computes from its copy is never led
//! astray. Offsets begin at 0, and buffers hold these rows alone.
//!
//! Assumes rows that were checked with all their offsets ([`check_rows`](crate::arrow::check_rows)) when they are written.

use super::mailbox::{Reader, Writer};
use crate::arrow::{bits, nulls, ArrayData, Buffer, Layout, Owned};
use arroyo_udf_abi::ArrowArray;
use std::io;
use std::ops::Range;

/// Writes rows of an array.
///
/// # Safety
/// The array has that layout and these rows, and they were checked.
pub unsafe fn write(array: &ArrowArray, layout: &Layout, rows: Range<usize>, into: &mut Writer) -> io::Result<()> {
    let (start, count) = (array.offset as usize + rows.start, rows.len());
    into.number(count as u64)?;
    // SAFETY: a checked array has the buffers and children of its layout, with so many rows.
    unsafe {
        let buffer = |i: usize| (*array.buffers.add(i)).cast::<u8>();
        let child = |i: usize| &**array.children.add(i);
        if *layout == Layout::Null {
            return Ok(());
        }
        let validity = if array.null_count == 0 || count == 0 { std::ptr::null() } else { buffer(0) };
        into.number(u64::from(!validity.is_null()))?;
        if !validity.is_null() {
            write_bits(validity, start, count, into)?;
        }
        match layout {
            Layout::Null => Ok(()),
            _ if count == 0 && !matches!(layout, Layout::Struct(_)) => write_nothing(layout, into),
            Layout::Bool => write_bits(buffer(1), start, count, into),
            Layout::Fixed(width) => write_bytes(buffer(1).add(start * width), count * width, into),
            Layout::Bytes | Layout::Text | Layout::LargeBytes | Layout::LargeText => {
                let span = write_offsets(layout, buffer(1), start, count, into)?;
                write_bytes(buffer(2).wrapping_add(span.start), span.len(), into)
            }
            Layout::List(item) | Layout::LargeList(item) => {
                let span = write_offsets(layout, buffer(1), start, count, into)?;
                write(child(0), item, span, into)
            }
            Layout::FixedList(width, item) => write(child(0), item, start * width..(start + count) * width, into),
            Layout::Struct(fields) => {
                fields.iter().enumerate().try_for_each(|(i, field)| write(child(i), field, start..start + count, into))
            }
        }
    }
}

/// What a reader expects of a level without rows, whose buffers and children may lack anything.
fn write_nothing(layout: &Layout, into: &mut Writer) -> io::Result<()> {
    let below = |layout: &Layout, into: &mut Writer| {
        into.number(0)?;
        match layout {
            Layout::Null => Ok(()),
            layout => into.number(0).and_then(|()| write_nothing(layout, into)),
        }
    };
    match layout {
        Layout::Null => Ok(()),
        Layout::Bool | Layout::Fixed(_) => into.buffer(0).map(drop),
        Layout::Bytes | Layout::Text | Layout::LargeBytes | Layout::LargeText => {
            write_no_offsets(layout, into)?;
            into.buffer(0).map(drop)
        }
        Layout::List(item) | Layout::LargeList(item) => {
            write_no_offsets(layout, into)?;
            below(item, into)
        }
        Layout::FixedList(_, item) => below(item, into),
        Layout::Struct(fields) => fields.iter().try_for_each(|field| below(field, into)),
    }
}

/// The one offset of no rows. Written out, because a mailbox still holds the bytes of earlier messages.
fn write_no_offsets(layout: &Layout, into: &mut Writer) -> io::Result<()> {
    let width = offset_width(layout);
    let to = into.buffer(width)?;
    // SAFETY: room was made.
    unsafe { to.write_bytes(0, width) };
    Ok(())
}

/// # Safety
/// So many bytes can be read.
unsafe fn write_bytes(from: *const u8, count: usize, into: &mut Writer) -> io::Result<()> {
    let to = into.buffer(count)?;
    if count > 0 {
        // SAFETY: as promised, and room was made.
        unsafe { std::ptr::copy_nonoverlapping(from, to, count) };
    }
    Ok(())
}

/// # Safety
/// The bitmap has so many bits.
unsafe fn write_bits(bitmap: *const u8, start: usize, count: usize, into: &mut Writer) -> io::Result<()> {
    let to = into.buffer(count.div_ceil(64) * 8)?.cast::<u64>();
    for word in 0..count.div_ceil(64) {
        // SAFETY: as promised, and room for the words was made, aligned.
        unsafe { to.add(word).write(bits(bitmap, start + word * 64, (count - word * 64).min(64))) };
    }
    Ok(())
}

/// Writes the offsets of rows, from 0 on. Answers the span of what they delimit.
///
/// # Safety
/// The buffer has these offsets, in ascending order.
unsafe fn write_offsets(layout: &Layout, offsets: *const u8, start: usize, count: usize, into: &mut Writer) -> io::Result<Range<usize>> {
    /// # Safety
    /// As above; `to` has room for `count + 1` offsets, aligned.
    unsafe fn copy<T: Copy + std::ops::Sub<Output = T> + Into<i64>>(from: *const T, to: *mut T, count: usize) -> Range<usize> {
        // SAFETY: as promised; offsets that came in may be unaligned.
        unsafe {
            let first = from.read_unaligned();
            (0..=count).for_each(|i| to.add(i).write(from.add(i).read_unaligned() - first));
            first.into() as usize..from.add(count).read_unaligned().into() as usize
        }
    }
    let width = offset_width(layout);
    let to = into.buffer((count + 1) * width)?;
    // SAFETY: passed on; room was made, aligned.
    Ok(unsafe {
        match width {
            4 => copy(offsets.cast::<i32>().add(start), to.cast::<i32>(), count),
            _ => copy(offsets.cast::<i64>().add(start), to.cast::<i64>(), count),
        }
    })
}

fn offset_width(layout: &Layout) -> usize {
    if matches!(layout, Layout::LargeBytes | Layout::LargeText | Layout::LargeList(_)) {
        8
    } else {
        4
    }
}

/// What a reader makes of the buffers in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// They are used where they are: the message stays until the array is released, and its writer is trusted.
    View,
    /// They are copied before anything is read of them.
    Copy,
}

/// Reads an array. It has the buffers and children of its layout, as long as lengths and last offsets say; what lies between
/// is as the writer wrote it. So a writer that is not trusted needs a [`check`](crate::arrow::check()) afterwards.
pub fn read(layout: &Layout, take: Take, from: &mut Reader) -> Result<ArrowArray, String> {
    let length = from.size()?;
    if length > isize::MAX as usize >> 8 {
        return Err(format!("an array of {length} rows"));
    }
    if *layout == Layout::Null {
        return Ok(ArrayData { length, null_count: length, buffers: vec![], children: vec![] }.export());
    }
    let bitmap = |from: &mut Reader| buffer(length.div_ceil(64) * 8, take, from);
    let has_validity = from.number()? != 0;
    let (validity, null_count) = if has_validity {
        let bits = bitmap(from)?;
        // SAFETY: the bitmap has a bit for each row.
        let nulls = unsafe { nulls(bits.pointer(), 0, length) };
        (bits, nulls)
    } else {
        (Buffer::none(), 0)
    };
    let sized = |width: usize| length.checked_mul(width).ok_or_else(|| format!("{length} values of {width} bytes"));
    let mut buffers = vec![validity];
    let mut children = Vec::new();
    match layout {
        Layout::Null => {}
        Layout::Bool => buffers.push(bitmap(from)?),
        Layout::Fixed(width) => buffers.push(buffer(sized(*width)?, take, from)?),
        Layout::Bytes | Layout::Text | Layout::LargeBytes | Layout::LargeText => {
            let (offsets, end) = offsets(layout, length, take, from)?;
            buffers.extend([offsets, buffer(end, take, from)?]);
        }
        Layout::List(item) | Layout::LargeList(item) => {
            buffers.push(offsets(layout, length, take, from)?.0);
            children.push(Owned(read(item, take, from)?));
        }
        Layout::FixedList(_, item) => children.push(Owned(read(item, take, from)?)),
        Layout::Struct(fields) => {
            for field in fields {
                children.push(Owned(read(field, take, from)?));
            }
        }
    }
    let children = children.into_iter().map(Owned::into_array).collect();
    Ok(ArrayData { length, null_count, buffers, children }.export())
}

fn buffer(bytes: usize, take: Take, from: &mut Reader) -> Result<Buffer, String> {
    let place = from.buffer(bytes)?;
    if take == Take::View {
        return Ok(Buffer::owned_by(place.cast(), None));
    }
    let mut words: Vec<u64> = Vec::new();
    words.try_reserve_exact(bytes.div_ceil(8)).map_err(|error| error.to_string())?;
    // SAFETY: so many bytes are mapped there; the words have room for them, and the last word is zeroed first.
    unsafe {
        if bytes % 8 != 0 {
            words.as_mut_ptr().add(bytes / 8).write(0);
        }
        std::ptr::copy_nonoverlapping(place, words.as_mut_ptr().cast::<u8>(), bytes);
        words.set_len(bytes.div_ceil(8));
    }
    Ok(words.into())
}

/// The offsets of so many rows, and the last of them.
fn offsets(layout: &Layout, length: usize, take: Take, from: &mut Reader) -> Result<(Buffer, usize), String> {
    let width = offset_width(layout);
    let offsets = buffer((length + 1) * width, take, from)?;
    // SAFETY: the buffer has length + 1 offsets, aligned.
    let last = unsafe {
        match width {
            4 => i64::from(offsets.pointer().cast::<i32>().add(length).read()),
            _ => offsets.pointer().cast::<i64>().add(length).read(),
        }
    };
    usize::try_from(last).map(|last| (offsets, last)).map_err(|_| format!("the last offset is negative: {last}"))
}

#[cfg(test)]
mod tests {
    use super::super::mailbox::Mailbox;
    use super::*;

    /// The length of each level.
    fn shape(array: &ArrowArray, layout: &Layout) -> Vec<i64> {
        // SAFETY: an array that was just read has the buffers and children of its layout.
        let child = |i: usize, layout: &Layout| unsafe { shape(&**array.children.add(i), layout) };
        let below = match layout {
            Layout::List(item) | Layout::LargeList(item) | Layout::FixedList(_, item) => child(0, item),
            Layout::Struct(fields) => fields.iter().enumerate().flat_map(|(i, field)| child(i, field)).collect(),
            _ => Vec::new(),
        };
        std::iter::once(array.length).chain(below).collect()
    }

    #[test]
    fn levels_without_rows_are_read_as_they_were_written_over_an_earlier_message() {
        let list = |item| Layout::List(Box::new(item));
        let layout = Layout::Struct(vec![
            Layout::Fixed(8),
            Layout::Bool,
            Layout::Text,
            list(Layout::Text),
            list(list(Layout::Fixed(4))),
            Layout::LargeList(Box::new(Layout::LargeText)),
            Layout::FixedList(3, Box::new(Layout::Fixed(2))),
            Layout::Struct(vec![Layout::Null, Layout::Bool, Layout::Text]),
            Layout::Fixed(8),
        ]);
        let mut mailbox = Mailbox::create().unwrap();
        let old = [0x5Au8; 4096];
        mailbox.write().text(&old).unwrap();
        let mut writer = mailbox.write();
        writer.number(0).and_then(|()| writer.number(0)).and_then(|()| write_nothing(&layout, &mut writer)).unwrap();
        writer.byte(7).unwrap();
        for take in [Take::View, Take::Copy] {
            let mut reader = mailbox.read().unwrap();
            let array = Owned(read(&layout, take, &mut reader).unwrap());
            assert!(shape(&array.0, &layout).iter().all(|length| *length == 0));
            assert_eq!(reader.byte(), Ok(7), "the message ends where it was written to");
        }
    }
}
