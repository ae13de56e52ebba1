//! The function of references.py as a plugin in Rust.
use arroyo_udf_plugin::udf;

#[udf]
fn mph(distance: i64, air_time: i64) -> f64 {
    distance as f64 * 60.0 / air_time as f64
}
