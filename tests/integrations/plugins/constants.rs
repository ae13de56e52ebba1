//! How often a text that is the same in all rows was prepared, so that a test sees whether it came as one value.
use arroyo_udf_plugin::sdk::types::Constant;
use arroyo_udf_plugin::udf;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

static PREPARED: LazyLock<Mutex<HashMap<String, i64>>> = LazyLock::new(Mutex::default);

fn prepare(word: &&str) -> i64 {
    let mut prepared = PREPARED.lock().unwrap();
    let count = prepared.entry(word.to_string()).or_default();
    *count += 1;
    *count
}

/// How often this word has been prepared so far.
#[udf]
fn made(_text: &str, word: Constant<&str>) -> i64 {
    *word.prepared(prepare)
}

#[udf]
fn joined(text: Option<&str>, word: Option<Constant<&str>>) -> String {
    let shown = |text: Option<&str>| text.unwrap_or("None").to_owned();
    format!("{} {}", shown(text), shown(word.map(|word| *word)))
}
