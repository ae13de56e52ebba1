//! An aggregate and a table function, for engines and queries: docs/functions.md.

use arroyo_udf_plugin::{udaf, udtf, State};

#[derive(Default, State)]
struct GeometricMean {
    logs: f64,
    count: i64,
}

/// The n-th root of the product of n values.
#[udaf]
impl GeometricMean {
    fn update(&mut self, value: f64) {
        self.logs += value.ln();
        self.count += 1;
    }

    fn merge(&mut self, other: Self) {
        self.logs += other.logs;
        self.count += other.count;
    }

    fn finish(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.logs / self.count as f64).exp())
    }
}

#[udtf(columns(word, place))]
fn words(text: &str) -> Vec<(String, i64)> {
    text.split_whitespace().map(str::to_string).zip(0..).collect()
}
