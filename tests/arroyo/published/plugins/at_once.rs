use arroyo_udf_plugin::udf;

#[udf(unordered, timeout = "10s", allowed_in_flight = 1000)]
async fn at_once(x: i64) -> i64 {
    x + 1
}
