//! Time limits that no option changes.

use std::time::Duration;

/// How long a Context may take to be made and initialised (R12).
pub const INIT_TIME: Duration = Duration::from_secs(10);

/// How long a Context's `close` may take (R12).
pub const CLOSE_TIME: Duration = Duration::from_secs(10);

/// How long to wait past a deadline: for calls that a stop has cancelled (R13), and for an init that does not await.
pub const GRACE: Duration = Duration::from_secs(1);

/// Why a start failed whose init took more than `limit`.
pub fn init_took_too_long(limit: Duration) -> String {
    format!("init of the Context took more than {} s", limit.as_secs())
}

/// Why a Context is not closed whose `close` took more than `limit`.
pub fn close_took_too_long(limit: Duration) -> String {
    format!("close of the Context took more than {} s", limit.as_secs())
}
