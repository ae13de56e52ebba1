//! An argument that is the same for all rows: with what is made of it kept for the batch, and made for each row.

use arroyo_udf_plugin::sdk::types::Constant;
use arroyo_udf_plugin::udf;
use std::collections::HashSet;

#[udf(volatility = "immutable")]
fn among(word: &str, list: Constant<&str>) -> bool {
    list.prepared(|list| list.split(',').map(str::to_string).collect::<HashSet<_>>()).contains(word)
}

#[udf(volatility = "immutable")]
fn among_by_row(word: &str, list: &str) -> bool {
    list.split(',').map(str::to_string).collect::<HashSet<_>>().contains(word)
}

#[udf(volatility = "immutable")]
fn same(one: &str, other: &str) -> bool {
    one == other
}
