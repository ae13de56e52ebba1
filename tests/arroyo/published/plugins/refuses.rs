use arroyo_udf_plugin::udf;

#[udf]
fn refuses(x: i64) -> i64 {
    if x == 3 {
        panic!("three");
    }
    x
}
