//! Decimals within their precision: what a type such as decimal128(5, 2) says of its integers.

use arroyo_udf_abi::ArrowSchema;
use std::ffi::CStr;

/// A decimal's type.
#[derive(Debug, Clone, Copy)]
pub struct Decimal {
    /// Bytes per value.
    width: usize,
    digits: u32,
    /// 10 to the power of the digits, in words of 64 bits, the lowest first.
    bound: [u64; 4],
}

impl Decimal {
    /// The type of a schema; None: it is no decimal.
    ///
    /// # Safety
    /// The schema is valid, with a supported format.
    pub unsafe fn of(schema: &ArrowSchema) -> Option<Decimal> {
        // SAFETY: a valid schema has a NUL-terminated format.
        let format = unsafe { CStr::from_ptr(schema.format) }.to_str().ok()?;
        let mut sizes = format.strip_prefix("d:")?.split(',');
        let digits: u32 = sizes.next()?.parse().ok()?;
        let width = sizes.nth(1).map_or(Some(16), |bits| bits.parse::<usize>().ok().map(|bits| bits / 8))?;
        Some(Decimal { width, digits, bound: (0..digits).fold([1, 0, 0, 0], |power, _| times_ten(power)) })
    }

    pub fn digits(&self) -> u32 {
        self.digits
    }

    /// Whether value number `i` of a buffer has no more digits than its type.
    ///
    /// # Safety
    /// The buffer has this value, perhaps unaligned.
    pub unsafe fn fits(&self, values: *const u8, i: usize) -> bool {
        let mut bytes = [0u8; 32];
        // SAFETY: as promised; no decimal has more than 32 bytes.
        unsafe { std::ptr::copy_nonoverlapping(values.add(i * self.width), bytes.as_mut_ptr(), self.width) };
        let negative = bytes[self.width - 1] >= 0x80;
        if negative {
            bytes[self.width..].fill(0xff);
        }
        let word = |i: usize| u64::from_le_bytes(bytes[i * 8..i * 8 + 8].try_into().unwrap_or_default());
        let mut words = [word(0), word(1), word(2), word(3)];
        if negative {
            let mut carry = true;
            for word in &mut words {
                (*word, carry) = (!*word).overflowing_add(carry.into());
            }
        }
        words.iter().rev().lt(self.bound.iter().rev())
    }
}

/// Ten times a number below 10 to the power of 76.
fn times_ten(words: [u64; 4]) -> [u64; 4] {
    let mut carry = 0;
    words.map(|word| {
        let product = u128::from(word) * 10 + carry;
        carry = product >> 64;
        product as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::field;

    #[test]
    fn f4_a_decimal_fits_if_it_has_no_more_digits_than_its_type() {
        for (format, width, digits) in [(c"d:5,2,32", 4, 5), (c"d:18,0,64", 8, 18), (c"d:5,2", 16, 5), (c"d:38,2", 16, 38)] {
            // SAFETY: the schema is whole.
            let decimal = unsafe { Decimal::of(&field(c"", format, 0)) }.unwrap();
            let bound = 10i128.pow(digits);
            for (value, fits) in [(0, true), (bound - 1, true), (1 - bound, true), (bound, false), (-bound, false)] {
                // An odd byte before it, because buffers may be unaligned.
                let bytes = [&[0xaa], &value.to_le_bytes()[..width]].concat();
                // SAFETY: the buffer has one value.
                assert_eq!(unsafe { decimal.fits(bytes.as_ptr().add(1), 0) }, fits, "{value} as {format:?}");
            }
        }
        // SAFETY: as above.
        let wide = unsafe { Decimal::of(&field(c"", c"d:76,0,256", 0)) }.unwrap();
        let most = [[0xff; 31].as_slice(), &[0x7f]].concat();
        // SAFETY: the buffer has one value.
        unsafe {
            assert!(!wide.fits(most.as_ptr(), 0));
            assert!(wide.fits([0xff; 32].as_ptr(), 0), "it is -1");
        }
        // SAFETY: as above.
        assert!(unsafe { Decimal::of(&field(c"", c"l", 0)) }.is_none());
    }
}
