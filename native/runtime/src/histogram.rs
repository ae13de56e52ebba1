//! How long rows took, counted in buckets (R16): those of one octave are a quarter of it apart, so that a bucket's bounds
//! differ by at most a quarter of the lower one. A count costs a few instructions, and the whole a kilobyte.

/// Octaves, the first of which is everything below four units.
pub const OCTAVES: usize = 32;
/// 1,024 nanoseconds, as a power of two.
const UNIT: u32 = 10;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Histogram {
    /// `[octave][quarter]`: the header says which times.
    pub counts: [[u64; 4]; OCTAVES],
    /// Nanoseconds.
    pub longest: u64,
}

impl Histogram {
    /// Counts a row that took so many nanoseconds.
    #[inline]
    pub fn count(&mut self, nanoseconds: u64) {
        let units = nanoseconds >> UNIT;
        // Below four, a unit is a quarter; above, the two bits below the highest one tell which quarter it is.
        let octave = (units | 2).ilog2() as usize - 1;
        let quarter = (units >> octave.saturating_sub(1)) as usize & 3;
        match self.counts.get_mut(octave) {
            Some(quarters) => quarters[quarter] += 1,
            None => self.counts[OCTAVES - 1][3] += 1,
        }
        self.longest = self.longest.max(nanoseconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As the header says it.
    fn from(octave: usize, quarter: usize) -> u64 {
        let units = if octave == 0 { quarter as u64 } else { (4 + quarter as u64) << (octave - 1) };
        units * 1024
    }

    fn bucket(nanoseconds: u64) -> (usize, usize) {
        let mut histogram = Histogram::default();
        histogram.count(nanoseconds);
        assert_eq!(histogram.longest, nanoseconds);
        let all = (0..OCTAVES).flat_map(|octave| (0..4).map(move |quarter| (octave, quarter)));
        let hit: Vec<_> = all.filter(|&(octave, quarter)| histogram.counts[octave][quarter] == 1).collect();
        assert_eq!(hit.len(), 1);
        hit[0]
    }

    #[test]
    fn r16_each_bucket_begins_where_the_header_says() {
        let mut former = None;
        for octave in 0..OCTAVES {
            for quarter in 0..4 {
                let from = from(octave, quarter);
                assert_eq!(bucket(from), (octave, quarter));
                assert_eq!(from.checked_sub(1).map(bucket), former);
                former = Some((octave, quarter));
            }
        }
    }

    #[test]
    fn what_is_beyond_the_last_bucket_is_in_it() {
        assert_eq!(bucket(from(OCTAVES, 0)), (OCTAVES - 1, 3));
        assert_eq!(bucket(u64::MAX), (OCTAVES - 1, 3));
    }

    #[test]
    fn the_longest_stays() {
        let mut histogram = Histogram::default();
        [5, 9, 7].into_iter().for_each(|time| histogram.count(time));
        assert_eq!((histogram.longest, histogram.counts[0][0]), (9, 3));
    }

    proptest! {
        #[test]
        fn r16_a_time_is_within_a_quarter_of_its_bucket(nanoseconds in 4096..1u64 << 42) {
            let (octave, quarter) = bucket(nanoseconds);
            let from = from(octave, quarter);
            prop_assert!(from <= nanoseconds && nanoseconds < from + from.div_ceil(4), "{octave} {quarter}");
        }
    }
}
