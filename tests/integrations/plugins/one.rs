//! The functions of one.py that Rust has.
use arroyo_udf_plugin::udf;
use std::time::Duration;

/// Miles per hour.
#[udf(volatility = "immutable")]
fn mph(distance: i64, air_time: i64) -> Result<f64, &'static str> {
    if air_time == 0 {
        return Err("no time");
    }
    Ok(distance as f64 * 60.0 / air_time as f64)
}

#[udf]
fn shout(text: &str) -> String {
    format!("{text}!")
}

#[udf]
fn or_zero(value: Option<i64>) -> i64 {
    value.unwrap_or(0)
}

macro_rules! same {
    ($($name:ident: $type:ty),*) => { $(#[udf] fn $name(value: $type) -> $type { value })* };
}
same!(same_bool: bool, same_int8: i8, same_int16: i16, same_int32: i32, same_int64: i64, same_uint8: u8, same_uint16: u16,
    same_uint32: u32, same_uint64: u64, same_float32: f32, same_float64: f64);

#[udf(allowed_in_flight = 500)]
async fn later(n: i64) -> Result<i64, String> {
    arroyo_udf_plugin::tokio::time::sleep(Duration::from_millis((n % 7) as u64)).await;
    if n == 13 {
        return Err("thirteen".into());
    }
    Ok(n + 1)
}

#[udf(timeout = "50ms", max_attempts = 1)]
async fn late(n: i64) -> i64 {
    if n == 13 {
        std::future::pending::<()>().await;
    }
    n + 1
}
