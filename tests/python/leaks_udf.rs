//! The functions that leaks.py calls, as far as Rust has their types.
use arroyo_udf_plugin::udf;

#[udf]
async fn mixed(x: i64) -> Result<i64, String> {
    match x % 10 {
        1 => Err(format!("no {x}")),
        2 => std::future::pending().await,
        _ => Ok(x),
    }
}

#[udf]
fn fussy(x: i64, text: &str) -> Result<String, String> {
    if x % 10 == 1 {
        Err(text.to_string())
    } else {
        Ok(text.to_string())
    }
}

#[udf]
async fn exclaimed(x: String) -> String {
    x + "!"
}
