//! What the fuzzer calls in Rust: functions that answer what they got. Their names say what (tests/fuzz/plugin_host.py).

use arroyo_udf_plugin::udf;

#[udf]
fn same_bool(x: bool) -> bool {
    x
}

#[udf]
fn same_u8(x: u8) -> u8 {
    x
}

#[udf]
fn same_i32(x: i32) -> i32 {
    x
}

#[udf]
fn same_i64(x: i64) -> i64 {
    x
}

#[udf]
fn same_f64(x: f64) -> f64 {
    x
}

#[udf]
fn same_str(x: &str) -> String {
    x.to_string()
}

#[udf]
fn same_bytes(x: &[u8]) -> Vec<u8> {
    x.to_vec()
}

#[udf]
fn same_option(x: Option<String>) -> Option<String> {
    x
}

#[udf]
fn joined_texts(x: Vec<Option<String>>) -> String {
    x.into_iter().map(|item| item.unwrap_or("~".into())).collect::<Vec<_>>().join(",")
}

/// Nulls are left out.
#[udf]
fn joined_numbers(x: Vec<i64>) -> String {
    x.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(",")
}

#[udf]
fn last(_a: i64, _b: Option<&str>, _c: bool, d: &str) -> String {
    d.to_string()
}

#[udf(ordered)]
async fn async_same_i64(x: i64) -> i64 {
    x
}

#[udf(ordered)]
async fn async_same_str(x: String) -> String {
    x
}

#[udf(ordered)]
async fn async_joined_texts(x: Vec<Option<String>>) -> String {
    joined_texts(x)
}

#[udf(blocking, ordered)]
fn async_same_option(x: Option<String>) -> Option<String> {
    x
}
