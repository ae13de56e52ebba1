//! For starved.c: a function of each kind, which returns its argument plus one.

use arroyo_udf_plugin::{tokio, udf};

#[udf]
fn now(x: i64) -> i64 {
    x + 1
}

#[udf]
async fn soon(x: i64) -> i64 {
    if x % 2 == 1 {
        tokio::task::yield_now().await;
    }
    x + 1
}

#[udf(blocking)]
fn aside(x: i64) -> i64 {
    x + 1
}
