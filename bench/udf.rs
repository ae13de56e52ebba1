//! The function of references.py as a plugin in Rust, and others.
use arroyo_udf_plugin::udf;

#[udf]
fn mph(distance: i64, air_time: i64) -> f64 {
    distance as f64 * 60.0 / air_time as f64
}

/// FNV-1a, for what checking texts costs.
#[udf]
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
}

/// What an async call costs that has nothing to wait for.
#[udf]
async fn at_once(x: i64) -> i64 {
    x + 1
}

/// Waits until it is cancelled.
#[udf]
async fn parked(x: i64) -> i64 {
    std::future::pending::<()>().await;
    x
}
