//! Looks at sixteen bytes at once: where a string may end, and where digits end.
//!
//! A loop over bytes ends where the processor does not expect it, for each string and number anew; this costs more than
//! the bytes. Most strings and numbers are shorter than a block, and need no loop.

/// How many bytes come before the first one that ends a run of plain characters in a string: a quote, a backslash, or a
/// control character, which must not be there.
#[inline(always)]
pub fn plain(bytes: &[u8]) -> usize {
    match bytes.first_chunk().map_or(0, special) {
        0 => long_plain(bytes),
        special => special.trailing_zeros() as usize,
    }
}

#[inline(never)]
fn long_plain(bytes: &[u8]) -> usize {
    let mut done = 0;
    while let Some(block) = bytes[done..].first_chunk() {
        let special = special(block);
        if special != 0 {
            return done + special.trailing_zeros() as usize;
        }
        done += block.len();
    }
    done + bytes[done..].iter().take_while(|&&byte| byte >= b' ' && byte != b'"' && byte != b'\\').count()
}

/// How many digits come first.
#[inline(always)]
pub fn digits(bytes: &[u8]) -> usize {
    match bytes.first_chunk().map_or(u32::MAX, digits_in) {
        // More than a block, or the end of the text is near.
        0xffff.. => bytes.iter().take_while(|byte| byte.is_ascii_digit()).count(),
        digits => digits.trailing_ones() as usize,
    }
}

/// A bit for each byte that is special in a string.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn special(block: &[u8; 16]) -> u32 {
    use std::arch::x86_64::*;
    // SAFETY: SSE2 is part of x86_64; the load needs no alignment, and reads the sixteen bytes of the block.
    unsafe {
        let block = _mm_loadu_si128(block.as_ptr().cast());
        let quotes = _mm_cmpeq_epi8(block, _mm_set1_epi8(b'"' as i8));
        let slashes = _mm_cmpeq_epi8(block, _mm_set1_epi8(b'\\' as i8));
        let controls = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(b' ' as i8 - 1)), block);
        _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quotes, slashes), controls)) as u32
    }
}

/// A bit for each byte that is a digit.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn digits_in(block: &[u8; 16]) -> u32 {
    use std::arch::x86_64::*;
    // SAFETY: as above.
    unsafe {
        let values = _mm_sub_epi8(_mm_loadu_si128(block.as_ptr().cast()), _mm_set1_epi8(b'0' as i8));
        _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(values, _mm_set1_epi8(9)), values)) as u32
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn special(block: &[u8; 16]) -> u32 {
    bits(block, |byte| byte < b' ' || byte == b'"' || byte == b'\\')
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn digits_in(block: &[u8; 16]) -> u32 {
    bits(block, |byte| byte.is_ascii_digit())
}

#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline(always)]
fn bits(block: &[u8; 16], is: impl Fn(u8) -> bool) -> u32 {
    block.iter().enumerate().map(|(place, &byte)| u32::from(is(byte)) << place).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_in_each_place() {
        for byte in 0..=u8::MAX {
            for place in 0..40 {
                let (mut text, mut number) = ([b'x'; 40], [b'7'; 40]);
                (text[place], number[place]) = (byte, byte);
                let is_special = byte < b' ' || byte == b'"' || byte == b'\\';
                assert_eq!(plain(&text), if is_special { place } else { 40 });
                assert_eq!(digits(&number), if byte.is_ascii_digit() { 40 } else { place });
                let block = text[..16].try_into().unwrap();
                assert_eq!(special(&block), bits(&block, |byte| byte < b' ' || byte == b'"' || byte == b'\\'));
            }
        }
    }
}
