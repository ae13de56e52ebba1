use arroyo_udf_plugin::async_udf::tokio;
use arroyo_udf_plugin::udf;
use std::time::Duration;

#[udf]
async fn echo(x: Option<i64>, text: &str) -> Option<String> {
    tokio::time::sleep(Duration::from_micros(500)).await;
    x.map(|x| format!("{text} {x}"))
}
