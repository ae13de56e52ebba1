use arroyo_udf_plugin::udf;

/// Miles and minutes to miles per hour. If an argument is null, so is the result; the function is not called.
#[udf]
fn mph(distance: i64, air_time: i64) -> f64 {
    distance as f64 * 60.0 / air_time as f64
}
