//! A panic of the author's code -> the text of a row's error (R2), with its location in the source.
//!
//! Only the panic hook knows the location, so this library's hook is extended once. A plugin has its own copy of the
//! standard library: neither the host nor another plugin sees that hook. Other panics, such as in a task that the author
//! spawned, go to the previous hook.

use crate::failure::panic_text;
use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, set_hook, take_hook, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static LOCATION: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The result of `body`, or the text of its panic. The caller ensures that a panic leaves what `body` changed usable.
pub fn catch<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    static EXTENDED: Once = Once::new();
    EXTENDED.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |panic: &PanicHookInfo<'_>| match panic.location() {
            Some(location) if CATCHING.get() => LOCATION.set(format!(" at {location}")),
            _ => previous(panic),
        }));
    });
    let outer = CATCHING.replace(true);
    let caught = catch_unwind(AssertUnwindSafe(body));
    CATCHING.set(outer);
    caught.map_err(|payload| format!("panicked{}: {}", LOCATION.take(), panic_text(&*payload)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_gives_its_text_and_location() {
        let text = catch(|| -> () { panic!("so {}", "far") }).unwrap_err();
        assert!(text.starts_with("panicked at ") && text.contains("panics.rs:") && text.ends_with(": so far"), "{text}");
    }

    #[test]
    fn a_panic_without_text_is_still_a_panic() {
        assert_eq!(catch(|| -> () { std::panic::resume_unwind(Box::new(7)) }).unwrap_err(), "panicked: panic");
    }

    #[test]
    fn a_result_is_returned() {
        assert_eq!(catch(|| 7), Ok(7));
    }
}
