//! A slow service, asked once for each different tail number and not once for each row.

use arroyo_udf_plugin::tokio::time::{sleep, Duration};
use arroyo_udf_plugin::udf;

/// The service. It knows where planes are registered.
async fn ask(tailnum: &str) -> &'static str {
    sleep(Duration::from_millis(10)).await;
    match tailnum.chars().next() {
        Some('N') => "United States",
        Some('C') => "Canada",
        Some('G') => "United Kingdom",
        _ => "unknown",
    }
}

/// The country of a plane. Equal tail numbers share a call, and later rows get what it returned, for an hour.
#[udf(deterministic, cache = 100000, cache_ttl = "1h")]
async fn country(tailnum: String) -> String {
    ask(&tailnum).await.to_string()
}
