//! Bitmaps: validity and booleans, read from arrays that came in and built for arrays that go out.
//!
//! Reading never touches a byte beyond the last bit asked for.

use super::data::Buffer;

/// Bit `i`.
///
/// # Safety
/// `i` is within the bitmap.
#[inline]
pub(super) unsafe fn bit(bitmap: *const u8, i: usize) -> bool {
    // SAFETY: the caller keeps i within the bitmap.
    unsafe { *bitmap.add(i >> 3) >> (i & 7) & 1 != 0 }
}

/// `count` (1..=64) bits from bit `start` on, the first in the lowest bit.
///
/// # Safety
/// `start + count` bits are within the bitmap.
#[inline]
pub(crate) unsafe fn bits(bitmap: *const u8, start: usize, count: usize) -> u64 {
    let (byte, shift) = (start >> 3, start & 7);
    let n_bytes = (shift + count).div_ceil(8);
    let mut raw = [0u8; 16];
    // SAFETY: the caller keeps start + count within the bitmap, so its last byte is byte + n_bytes - 1.
    unsafe { std::ptr::copy_nonoverlapping(bitmap.add(byte), raw.as_mut_ptr(), n_bytes) };
    let word = (u128::from_le_bytes(raw) >> shift) as u64;
    if count == 64 {
        word
    } else {
        word & ((1 << count) - 1)
    }
}

/// How many of the `count` bits from bit `start` on are 0.
///
/// # Safety
/// `start + count` bits are within the bitmap.
pub(crate) unsafe fn nulls(bitmap: *const u8, start: usize, count: usize) -> usize {
    // SAFETY: passed on.
    let ones = |i: usize| unsafe { bits(bitmap, start + i, (count - i).min(64)) }.count_ones() as usize;
    count - (0..count).step_by(64).map(ones).sum::<usize>()
}

/// Bits of a column under construction: its validity, or its booleans.
#[derive(Debug, Default)]
pub struct Validity {
    words: Vec<u64>,
    length: usize,
    nulls: usize,
}

impl Validity {
    pub fn with_capacity(rows: usize) -> Validity {
        Validity { words: Vec::with_capacity(rows.div_ceil(64)), length: 0, nulls: 0 }
    }

    #[inline]
    pub fn push(&mut self, valid: bool) {
        if self.length & 63 == 0 {
            self.words.push(0);
        }
        if let Some(word) = self.words.last_mut() {
            *word |= u64::from(valid) << (self.length & 63);
        }
        self.length += 1;
        self.nulls += usize::from(!valid);
    }

    /// Appends `count` rows (1..=64) at once; only where `length` is a multiple of 64.
    #[inline]
    pub fn push_word(&mut self, word: u64, count: usize) {
        debug_assert!(self.length & 63 == 0 && count <= 64);
        self.words.push(word);
        self.length += count;
        self.nulls += count - word.count_ones() as usize;
    }

    pub fn nulls(&self) -> usize {
        self.nulls
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The bits as the values of a boolean column.
    pub fn into_bits(self) -> Buffer {
        self.words.into()
    }

    /// The buffer, absent when nothing is null.
    pub fn into_buffer(self) -> Buffer {
        if self.nulls == 0 {
            Buffer::none()
        } else {
            self.words.into()
        }
    }
}
