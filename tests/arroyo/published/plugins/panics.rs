use arroyo_udf_plugin::udf;

#[udf]
async fn panics(x: i64) -> i64 {
    if x == 3 {
        panic!("three");
    }
    x
}
