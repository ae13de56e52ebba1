//! For exact.c and storm.c: functions with the results that those hosts expect.

use arroyo_udf_plugin::{tokio, udf};

#[udf]
fn seen(a: i64, b: Option<i64>, c: &str) -> String {
    format!("{a} {} {c}", b.map_or("null".into(), |b| b.to_string()))
}

#[udf]
fn fussy(x: i64) -> Result<String, String> {
    if x % 5 == 0 { Ok("fine".into()) } else { Err(x.to_string()) }
}

#[udf]
fn same_bool(x: bool) -> bool {
    x
}

#[udf]
async fn plus(x: i64) -> i64 {
    if x % 3 == 0 {
        tokio::task::yield_now().await;
    }
    x + 1
}
