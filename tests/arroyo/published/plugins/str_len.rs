use arroyo_udf_plugin::udf;

#[udf]
fn str_len(text: &str) -> i64 {
    text.len() as i64
}
