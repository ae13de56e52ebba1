//! A SQL shell over Parquet, in Rust, with the functions of plugins in Python, Rust or C.
//!
//!     cargo run -- libusers.so people.parquet < queries.sql
//!     SELECT user_name(id) FROM people;
//!
//! Each plugin is opened, and each Parquet file is a table of its name. Statements end with a semicolon. An async function
//! answers the rows of all partitions at its concurrency.

use std::error::Error;
use std::io::{stdin, BufRead};
use std::path::Path;
use std::process::ExitCode;

use arroyo_udf_host::datafusion::scalar_udf;
use arroyo_udf_host::{FunctionKind, Plugin};
use datafusion::prelude::{ParquetReadOptions, SessionContext};

async fn open(session: &SessionContext, path: &str) -> Result<(), Box<dyn Error>> {
    if let Some(table) = path.strip_suffix(".parquet") {
        let name = Path::new(table).file_name().and_then(|name| name.to_str()).ok_or("a table has no name")?;
        return Ok(session.register_parquet(name, path, ParquetReadOptions::default()).await?);
    }
    let plugin = Plugin::open(path)?;
    for function in plugin.functions().filter(|function| !matches!(function.kind(), FunctionKind::Unknown(_))) {
        session.register_udf(scalar_udf(&function, function.on_error())?);
    }
    Ok(())
}

/// Runs statements. False: one failed.
async fn run(session: &SessionContext) -> Result<bool, Box<dyn Error>> {
    let mut all_passed = true;
    for statement in stdin().lock().split(b';') {
        let statement = String::from_utf8(statement?)?;
        if statement.trim().is_empty() {
            continue;
        }
        let shown = match session.sql(&statement).await {
            Ok(frame) => frame.show().await,
            Err(error) => Err(error),
        };
        if let Err(error) = shown {
            eprintln!("{error}");
            all_passed = false;
        }
    }
    Ok(all_passed)
}

async fn serve() -> Result<bool, Box<dyn Error>> {
    let session = SessionContext::new();
    for file in std::env::args().skip(1) {
        open(&session, &file).await?;
    }
    run(&session).await
}

#[tokio::main]
async fn main() -> ExitCode {
    match serve().await {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => {}
        Err(error) => eprintln!("{error}"),
    }
    ExitCode::FAILURE
}
