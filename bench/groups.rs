//! An aggregate in Rust, to be measured beside an engine's own.

use arroyo_udf_plugin::{udaf, State};

#[derive(Default, State)]
struct OwnSum {
    sum: i64,
    count: i64,
}

#[udaf]
impl OwnSum {
    fn update(&mut self, value: i64) {
        self.sum += value;
        self.count += 1;
    }

    fn merge(&mut self, other: Self) {
        self.sum += other.sum;
        self.count += other.count;
    }

    fn finish(&self) -> Option<i64> {
        (self.count > 0).then_some(self.sum)
    }
}
