use arroyo_udf_plugin::udf;

#[udf]
fn add_one(x: i64) -> i64 {
    x + 1
}
