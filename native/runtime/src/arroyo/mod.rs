//! Arroyo's own binary interface for UDFs, so that a plugin of ours is a library that the Arroyo engine loads, and a
//! library built for that engine is one that our host loads.
//!
//! | module         | what it does                                                                        |
//! |----------------|-------------------------------------------------------------------------------------|
//! | [`layout`]     | the structs that cross, and who frees what                                            |
//! | [`arguments`]  | arrays that came in -> a checked batch                                                |
//! | [`on_error`]   | what happens to a row that failed                                                     |
//! | [`sync`]       | `__run`                                                                               |
//! | [`started`]    | `__start`, `__drain_results`, `__stop_runtime`                                        |
//! | [`sending`]    | `__send`: the future that hands over one row                                          |
//! | [`theirs`]     | the other direction: a library of that interface, and a runtime of it                 |
//! | [`import`]     | such a library's function behind our table                                            |
//!
//! That interface has rows where ours has batches, and no place for a row that failed: [`OnError`] is the policy for
//! one. The [`crate::runtime`] below every plugin does the rest (order, limit, timeout, retries, stop).
//!
//! Guarantees: nothing unwinds into the host; no call of the host waits for user code, except `__run`; arrays that came in are
//! released in a thread of the host (R19).

pub mod arguments;
pub mod import;
pub mod layout;
pub mod on_error;
pub mod sending;
pub mod started;
pub mod sync;
pub mod theirs;

pub use on_error::OnError;
pub use sending::send;
pub use started::{drain_results, start, stop_runtime};
pub use sync::run;

use crate::exports::Plugin;
use layout::{Arrays, DrainResult, Future, Handle, RunResult};

/// The functions behind Arroyo's symbols, for all functions of a [`Plugin`]; another library exports the symbols.
#[repr(C)]
pub struct Symbols {
    pub run: unsafe extern "C" fn(u32, OnError, Arrays) -> RunResult,
    pub start: extern "C" fn(u32, OnError, bool, u64, u32) -> Handle,
    pub send: unsafe extern "C" fn(Handle, u64, Arrays) -> Future,
    pub drain_results: unsafe extern "C" fn(Handle) -> DrainResult,
    pub stop_runtime: unsafe extern "C" fn(Handle),
}

pub const fn symbols<P: Plugin>() -> Symbols {
    Symbols { run: run::<P>, start: start::<P>, send, drain_results, stop_runtime }
}
