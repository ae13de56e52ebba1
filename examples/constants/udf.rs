//! Arguments that are the same for all rows.

use arroyo_udf_plugin::sdk::types::Constant;
use arroyo_udf_plugin::udf;
use std::collections::HashSet;

/// Whether a word is in a list such as "sea,lake".
#[udf(volatility = "immutable")]
fn among(word: &str, list: Constant<&str>) -> bool {
    let words = list.prepared(|list| list.split(',').map(str::to_string).collect::<HashSet<_>>());
    words.contains(word)
}
