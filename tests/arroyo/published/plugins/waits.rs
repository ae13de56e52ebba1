use arroyo_udf_plugin::udf;

/// Does not end for one number in four.
#[udf]
async fn waits(x: i64) -> i64 {
    if x % 4 == 1 {
        std::future::pending::<()>().await;
    }
    x
}
