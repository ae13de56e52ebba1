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

/// Spreads a small number over 64 bits: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// A hash whose bits all depend on all bytes and on the seed, which nobody outside knows. The folded product is that of wyhash
/// (Wang Yi 2019).
#[inline]
pub fn hash(seed: [u64; 2], bytes: &[u8]) -> u64 {
    let mut hash = seed[0] ^ (bytes.len() as u64).wrapping_mul(SPREAD);
    let mut chunks = bytes.chunks_exact(16);
    for chunk in &mut chunks {
        hash = folded(word(&chunk[..8]) ^ hash, word(&chunk[8..]) ^ seed[1]);
    }
    let (low, high) = chunks.remainder().split_at(chunks.remainder().len().min(8));
    hash = folded(word(low) ^ hash, word(high) ^ seed[1]);
    folded(hash ^ seed[0], seed[1] | 1)
}

#[inline]
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Up to 8 bytes as a number.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Looks as random as a real one: few zeros and ones in a row.
    const SEED: [u64; 2] = [0x94D0_49BB_1331_11EB, 0xBF58_476D_1CE4_E5B9];

    #[test]
    fn hashes_depend_on_all_bytes_their_number_and_the_seed() {
        let all = (0..40).flat_map(|length| {
            let zeros = vec![0u8; length];
            let changed = (0..8 * length).map(move |bit| {
                let mut bytes = vec![0u8; length];
                bytes[bit / 8] |= 1 << (bit % 8);
                bytes
            });
            std::iter::once(zeros).chain(changed)
        });
        let hashes: Vec<u64> =
            all.clone().map(|bytes| hash(SEED, &bytes)).chain(all.map(|bytes| hash([SEED[0], !SEED[1]], &bytes))).collect();
        let different = |bits: fn(u64) -> u64| hashes.iter().map(|&hash| bits(hash)).collect::<HashSet<_>>().len();
        assert_eq!(different(|hash| hash), hashes.len());
        assert_eq!((different(|hash| hash & 0xff), different(|hash| hash >> 57)), (256, 128), "a table uses low and high bits");
    }
}
