use arroyo_udf_plugin::udf;

#[udf]
fn maybe(x: Option<i64>, text: &str) -> Option<String> {
    x.map(|x| format!("{text} {x}"))
}
