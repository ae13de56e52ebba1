//! Functions over flights, in Rust. A row with a null argument gives null; the function is not called.

use arroyo_udf_plugin::{tokio, udf};

/// Miles and minutes to miles per hour.
#[udf]
fn mph(distance: i64, air_time: i64) -> f64 {
    distance as f64 * 60.0 / air_time as f64
}

/// A tail number as this report shows it: UA-14228 for N14228, capitals for American Airlines, otherwise with a mark.
#[udf]
fn tail(carrier: &str, tailnum: &str) -> String {
    match tailnum.strip_prefix('N') {
        Some(rest) => format!("{carrier}-{rest}"),
        None if carrier == "AA" => tailnum.to_ascii_uppercase(),
        None => format!("{tailnum}?"),
    }
}

/// The same speed from a slow service: a thousand calls run at once, each with its own timeout, and results come out in the
/// order of the flights.
#[udf(ordered, timeout = "5s", allowed_in_flight = 1000)]
async fn mph_async(distance: i64, air_time: i64) -> Result<f64, String> {
    tokio::task::yield_now().await;
    match air_time {
        0 => Err(format!("{distance} miles in no time")),
        _ => Ok(mph(distance, air_time)),
    }
}
