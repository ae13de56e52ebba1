//! A panic of the author's code -> the text of a row's error (R2), with its place in the source.
//!
//! The place is known only to the panic hook, so this library's hook is extended once. A plugin has its own copy of the
//! standard library: neither the host nor another plugin sees that hook. Panics elsewhere, say in a task that the author
//! spawned, go to the former hook.

use crate::failure::panic_text;
use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, set_hook, take_hook, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What `body` answers, or the text of its panic. The caller sees to it that what `body` changed is still sound.
pub fn catch<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    static EXTENDED: Once = Once::new();
    EXTENDED.call_once(|| {
        let former = take_hook();
        set_hook(Box::new(move |panic: &PanicHookInfo<'_>| match panic.location() {
            Some(place) if CATCHING.get() => PLACE.set(format!(" at {place}")),
            _ => former(panic),
        }));
    });
    let outer = CATCHING.replace(true);
    let caught = catch_unwind(AssertUnwindSafe(body));
    CATCHING.set(outer);
    caught.map_err(|payload| format!("panicked{}: {}", PLACE.take(), panic_text(&*payload)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_its_text_and_place() {
        let text = catch(|| -> () { panic!("so {}", "far") }).unwrap_err();
        assert!(text.starts_with("panicked at ") && text.contains("panics.rs:") && text.ends_with(": so far"), "{text}");
    }

    #[test]
    fn a_payload_that_is_no_text_is_a_panic_all_the_same() {
        assert_eq!(catch(|| -> () { std::panic::resume_unwind(Box::new(7)) }).unwrap_err(), "panicked: panic");
    }

    #[test]
    fn what_does_not_panic_is_answered() {
        assert_eq!(catch(|| 7), Ok(7));
    }
}
