//! How long rows took, counted in buckets (R16). Each octave has four buckets of equal width, so a bucket is at most a
//! quarter of its lower bound wide. Counting takes a few instructions; a histogram takes one kilobyte.

/// Octaves; the first holds everything below four units.
pub const OCTAVES: usize = 32;
/// The exponent of a unit: 2^10 = 1,024 nanoseconds.
const UNIT: u32 = 10;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Histogram {
    /// `[octave][quarter]`, with the bounds that the header states.
    pub counts: [[u64; 4]; OCTAVES],
    /// Nanoseconds.
    pub longest: u64,
}

impl Histogram {
    /// Counts a row that took this time.
    #[inline]
    pub fn count(&mut self, nanoseconds: u64) {
        let units = nanoseconds >> UNIT;
        // Below four units, each unit is a quarter. Above, the two bits below the highest one are the quarter.
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

    /// The lower bound, with the header's formula.
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
    fn longer_times_are_in_the_last_bucket() {
        assert_eq!(bucket(from(OCTAVES, 0)), (OCTAVES - 1, 3));
        assert_eq!(bucket(u64::MAX), (OCTAVES - 1, 3));
    }

    #[test]
    fn the_longest_is_kept() {
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
