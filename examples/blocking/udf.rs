//! A function that waits for the disk: for the host it is async, and each call has a thread while it runs.

use arroyo_udf_plugin::udf;

/// How many bytes a file has. A file that is not there is the error of its row.
#[udf(blocking, allowed_in_flight = 20, timeout = "5s")]
fn size(path: &str) -> Result<u64, std::io::Error> {
    Ok(std::fs::metadata(path)?.len())
}
