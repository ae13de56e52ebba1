//! Functions that misbehave for rows 3, 13, 23, ... and return x + 1 for all others, like `udf.py` beside this file.

use arroyo_udf_plugin::{tokio, udf};
use std::time::Duration;

fn is_bad(x: i64) -> bool {
    x % 10 == 3
}

#[udf]
fn fails(x: i64) -> Result<i64, String> {
    if is_bad(x) {
        return Err(format!("{x} is not to my taste"));
    }
    Ok(x + 1)
}

#[udf]
fn panics(x: i64) -> i64 {
    assert!(!is_bad(x), "no");
    x + 1
}

#[udf]
async fn panics_later(x: i64) -> i64 {
    tokio::task::yield_now().await;
    assert!(!is_bad(x), "no");
    x + 1
}

#[udf(timeout = "50ms")]
async fn never_ends(x: i64) -> i64 {
    if is_bad(x) {
        std::future::pending::<()>().await;
    }
    x + 1
}

/// All futures share a thread, and a blocked one delays all others. So only one runs at a time.
#[udf(timeout = "50ms", allowed_in_flight = 1)]
async fn blocks_the_thread(x: i64) -> i64 {
    if is_bad(x) {
        std::thread::sleep(Duration::from_millis(200));
    }
    x + 1
}

/// A future that panics when it is dropped, which cancelling does.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[udf(timeout = "50ms")]
async fn panics_when_cancelled(x: i64) -> i64 {
    if is_bad(x) {
        let _bomb = Bomb;
        std::future::pending::<()>().await;
    }
    x + 1
}

#[udf]
async fn panics_in_a_task(x: i64) -> Result<i64, String> {
    if is_bad(x) {
        let task = tokio::spawn(async move { panic!("no {x}") });
        return task.await.map_err(|error| error.to_string());
    }
    Ok(x + 1)
}

#[udf]
async fn leaves_a_task_behind(x: i64) -> i64 {
    if is_bad(x) {
        drop(tokio::spawn(std::future::pending::<()>()));
    }
    x + 1
}
