//! The Context that the calls of an async function share: its first argument, `Arc<Context>` (R12).
//!
//! Guarantees: one Context for each start, made and `init`-ed before the first row, `close`d after the last attempt ended.

use crate::abi;
use crate::failure::Failure;
use crate::forks;
use crate::limits::{close_took_too_long, init_took_too_long, GRACE};
use crate::panics::catch_future;
use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::Arc;
use std::time::Duration;

pub type Pending<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The trait of a Context, whose type also needs a function `new()`. Arroyo's sources know it as `types::UdfContext`. With
/// the attribute of the crate async-trait it reads
///
/// ```ignore
/// #[async_trait]
/// impl UdfContext for Context {
///     async fn init(&self) { /* connect; a panic is the failure of the start */ }
///     async fn close(&self) {}
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no Context of a UDF",
    label = "the first argument is an Arc of this",
    note = "write `impl types::UdfContext for {Self}`, with `#[async_trait]` above it if it has an `init` or `close`"
)]
pub trait UdfContext: Send + Sync + 'static {
    // The lifetimes that async-trait writes: with others, that attribute could not implement it.
    fn init<'life0, 'async_trait>(&'life0 self) -> Pending<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(std::future::ready(()))
    }

    fn close<'life0, 'async_trait>(&'life0 self) -> Pending<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(std::future::ready(()))
    }
}

/// Makes a Context on `tokio` and waits for its `init`, at most `limit` and [`GRACE`]: an `init` that does not await cannot
/// be interrupted. `name` is the function's.
pub fn open<X: UdfContext>(name: &str, tokio: &tokio::runtime::Handle, new: fn() -> X, limit: Duration) -> Result<Arc<X>, Failure> {
    let (opened, answer) = mpsc::sync_channel(1);
    tokio.spawn(async move {
        let opening = async {
            let context = Arc::new(new());
            context.init().await;
            context
        };
        let end = match tokio::time::timeout(limit, forks::within(catch_future(opening))).await {
            Ok(end) => end.map_err(|text| format!("init of the Context {text}")),
            Err(_) => Err(init_took_too_long(limit)),
        };
        let _ = opened.send(end); // fails if the start no longer waits
    });
    let end = match answer.recv_timeout(limit + GRACE) {
        Ok(end) => end,
        Err(RecvTimeoutError::Timeout) => {
            Err(format!("not started within {} s: init of the Context neither ends nor awaits", (limit + GRACE).as_secs()))
        }
        Err(RecvTimeoutError::Disconnected) => Err("init of the Context panicked when its future was dropped".to_string()),
    };
    end.map_err(|text| Failure::new(abi::USER_CODE, format!("{name}: {text}")))
}

/// Closes a Context within `limit`; the error is why that failed. A `close` that does not await cannot be interrupted.
pub async fn close<X: UdfContext>(context: Arc<X>, limit: Duration) -> Result<(), String> {
    let closing = catch_future(async {
        context.close().await;
        drop(context);
    });
    tokio::time::timeout(limit, forks::within(closing)).await.unwrap_or_else(|_| Err(close_took_too_long(limit)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn failure<X: UdfContext>(new: fn() -> X) -> String {
        let tokio = tokio::runtime::Runtime::new().expect("a runtime");
        let failure = open("p.f", tokio.handle(), new, Duration::ZERO).err().expect("a failure");
        assert_eq!(failure.status, abi::USER_CODE);
        tokio.shutdown_background();
        failure.text
    }

    struct Forever;

    impl UdfContext for Forever {
        fn init<'life0, 'async_trait>(&'life0 self) -> Pending<'async_trait>
        where
            'life0: 'async_trait,
            Self: 'async_trait,
        {
            Box::pin(std::future::pending())
        }

        fn close<'life0, 'async_trait>(&'life0 self) -> Pending<'async_trait>
        where
            'life0: 'async_trait,
            Self: 'async_trait,
        {
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn an_init_that_does_not_end_is_given_up() {
        assert_eq!(failure(|| Forever), "p.f: init of the Context took more than 0 s");
    }

    #[test]
    fn a_close_that_does_not_end_is_given_up() {
        let tokio = tokio::runtime::Runtime::new().expect("a runtime");
        let closed = tokio.block_on(close(Arc::new(Forever), Duration::ZERO));
        assert_eq!(closed, Err("close of the Context took more than 0 s".to_string()));
    }

    static HELD: Mutex<()> = Mutex::new(());

    #[test]
    fn an_init_that_blocks_is_given_up() {
        let held = HELD.lock();
        let text = failure(|| {
            drop(HELD.lock());
            Forever
        });
        drop(held);
        assert_eq!(text, "p.f: not started within 1 s: init of the Context neither ends nor awaits");
    }
}
