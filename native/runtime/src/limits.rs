//! Time limits that no option changes.

use std::time::Duration;

/// How long a Context may take to be made and initialised (R12).
pub const INIT_TIME: Duration = Duration::from_secs(10);

/// How much longer to wait for what has been asked to end: at a stop (R13), and for an init past its limit.
pub const GRACE: Duration = Duration::from_secs(1);

/// Why a start failed whose init took more than `limit`.
pub fn init_took_too_long(limit: Duration) -> String {
    format!("init of the Context took more than {} s", limit.as_secs())
}
