//! A function that waits for the disk. The host sees an async function; each call has a thread while it runs.

use arroyo_udf_plugin::udf;

/// The size of a file in bytes. A missing file is the error of its row.
#[udf(blocking, allowed_in_flight = 20, timeout = "5s")]
fn size(path: &str) -> Result<u64, std::io::Error> {
    Ok(std::fs::metadata(path)?.len())
}
