//! The hash by which calls are found. That two arguments have the same hash costs them a shared call, and nothing else.

use std::hash::Hasher;

/// The key of a table that is a hash already.
#[derive(Debug, Default)]
pub struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, _: &[u8]) {
        unreachable!("the keys are numbers");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Fills bytes up to whole words with zeros.
#[inline]
pub fn pad(bytes: &mut Vec<u8>) {
    let length = bytes.len().next_multiple_of(WORD);
    bytes.extend_from_slice(&[0; WORD]); // of constant length: faster than those that lack
    bytes.truncate(length);
}

/// The bytes of a word.
const WORD: usize = 16;

/// A hash of whole words, whose bits all depend on all bytes and on the seed, which nobody outside knows. The folded product is
/// that of wyhash (Wang Yi 2019).
#[inline]
pub fn hash(seed: [u64; 2], bytes: &[u8]) -> u64 {
    debug_assert!(bytes.len() % WORD == 0);
    let half = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    let start = seed[0] ^ (bytes.len() as u64).wrapping_mul(SPREAD);
    let mixed = bytes.chunks_exact(WORD).fold(start, |hash, word| folded(half(&word[..8]) ^ hash, half(&word[8..]) ^ seed[1]));
    folded(mixed ^ SPREAD, seed[1] | 1)
}

/// Spreads a small number over 64 bits: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

#[inline]
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Looks as random as a real one: few zeros and ones in a row.
    const SEED: [u64; 2] = [0x94D0_49BB_1331_11EB, 0xBF58_476D_1CE4_E5B9];

    #[test]
    fn bytes_are_padded_to_whole_words() {
        for length in 0..40 {
            let mut bytes = vec![1; length];
            pad(&mut bytes);
            assert_eq!((bytes.len(), bytes.iter().filter(|byte| **byte == 1).count()), (length.div_ceil(WORD) * WORD, length));
        }
    }

    #[test]
    fn hashes_depend_on_all_bytes_their_number_and_the_seed() {
        let all = (0..=48).step_by(WORD).flat_map(|length| {
            let changed = (0..8 * length).map(move |bit| {
                let mut bytes = vec![0u8; length];
                bytes[bit / 8] |= 1 << (bit % 8);
                bytes
            });
            std::iter::once(vec![0u8; length]).chain(changed)
        });
        let hashes: Vec<u64> =
            all.clone().map(|bytes| hash(SEED, &bytes)).chain(all.map(|bytes| hash([SEED[0], !SEED[1]], &bytes))).collect();
        let different = |bits: fn(u64) -> u64| hashes.iter().map(|&hash| bits(hash)).collect::<HashSet<_>>().len();
        assert_eq!(different(|hash| hash), hashes.len());
        assert_eq!((different(|hash| hash & 0xff), different(|hash| hash >> 57)), (256, 128), "a table uses low and high bits");
    }
}
