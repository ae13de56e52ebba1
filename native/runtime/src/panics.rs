//! Caught panics: the author's become the text of a row's error (R2), with its location in the source; the toolkit's own
//! become the text of a poisoning or of a failed call (R17).
//!
//! Guarantees: nothing of a panic leaves here except a text. Its payload is dropped inside another catch, because an author
//! may panic with a value whose drop panics as well.
//!
//! Only the panic hook knows the location, so this library's hook is extended once. A plugin has its own copy of the
//! standard library: neither the host nor another plugin sees that hook. Other panics, such as in a task that the author
//! spawned, go to the previous hook.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{catch_unwind, set_hook, take_hook, AssertUnwindSafe, PanicHookInfo};
use std::pin::pin;
use std::sync::Once;
use std::task::Poll;

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static LOCATION: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The result of the author's code in `body`, or the text of its panic. The caller ensures that a panic leaves what `body`
/// changed usable.
pub fn catch<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    extend_hook();
    let outer = CATCHING.replace(true);
    let caught = catch_unwind(AssertUnwindSafe(body)).map_err(|payload| {
        let location = LOCATION.take();
        let text = format!("panicked{location}: {}", text(payload));
        LOCATION.take(); // of a panic of the payload's drop
        text
    });
    CATCHING.set(outer);
    caught
}

/// The result of the toolkit's code in `body`, or the text of its panic. The caller ensures that what `body` changed is not
/// relied on after a panic: mostly, it poisons the runtime.
pub fn catch_own<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|payload| format!("internal error: {}", text(payload)))
}

/// As [`catch`], for a future, which is dropped inside the catch if it panics.
pub async fn catch_future<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let mut future = pin!(Some(future));
    std::future::poll_fn(|context| {
        let polled = catch(|| match future.as_mut().as_pin_mut() {
            Some(future) => future.poll(context),
            None => Poll::Pending, // it has ended: nobody polls it again
        });
        match polled {
            Ok(poll) => poll.map(Ok),
            Err(text) => {
                drop(catch(|| future.set(None)));
                Poll::Ready(Err(text))
            }
        }
    })
    .await
}

/// The text of a caught panic.
fn text(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("panic").to_string();
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another); // its drop might panic, and so on
    }
    text
}

fn extend_hook() {
    static EXTENDED: Once = Once::new();
    // A thread that panics must not set a hook; then this panic has no location.
    if EXTENDED.is_completed() || std::thread::panicking() {
        return;
    }
    EXTENDED.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |panic: &PanicHookInfo<'_>| match panic.location() {
            Some(location) if CATCHING.get() => LOCATION.set(format!(" at {location}")),
            _ => previous(panic),
        }));
    });
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::panic::{panic_any, resume_unwind};

    #[test]
    fn a_panic_gives_its_text_and_location() {
        let text = catch(|| -> () { panic!("so {}", "far") }).unwrap_err();
        assert!(text.starts_with("panicked at ") && text.contains("panics.rs:") && text.ends_with(": so far"), "{text}");
    }

    #[test]
    fn a_panic_without_text_is_still_a_panic() {
        assert_eq!(catch(|| -> () { resume_unwind(Box::new(7)) }).unwrap_err(), "panicked: panic");
    }

    #[test]
    fn a_result_is_returned() {
        assert_eq!(catch(|| 7), Ok(7));
    }

    /// Panics when it is dropped, with another one of its kind.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic_any(Bomb);
        }
    }

    #[test]
    fn a_payload_whose_drop_panics_is_a_text_as_well() {
        let text = catch(|| -> () { panic_any(Bomb) }).unwrap_err();
        assert!(text.starts_with("panicked at ") && text.ends_with(": panic"), "{text}");
        assert_eq!(catch(|| -> () { resume_unwind(Box::new(7)) }).unwrap_err(), "panicked: panic", "no location is left over");
        assert_eq!(catch_own(|| -> () { resume_unwind(Box::new(Bomb)) }).unwrap_err(), "internal error: panic");
    }

    /// Panics when it is polled, and when it is dropped.
    struct Broken(#[allow(dead_code, reason = "its drop counts")] Bomb);

    impl Future for Broken {
        type Output = ();

        fn poll(self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>) -> Poll<()> {
            panic!("here")
        }
    }

    struct NoWaker;

    impl std::task::Wake for NoWaker {
        fn wake(self: std::sync::Arc<Self>) {}
    }

    #[test]
    fn a_future_that_panics_is_dropped_within_the_catch() {
        let mut caught = pin!(catch_future(Broken(Bomb)));
        let waker = std::sync::Arc::new(NoWaker).into();
        let Poll::Ready(Err(text)) = caught.as_mut().poll(&mut std::task::Context::from_waker(&waker)) else { panic!("it ends") };
        assert!(text.starts_with("panicked at ") && text.ends_with(": here"), "{text}");
    }
}
