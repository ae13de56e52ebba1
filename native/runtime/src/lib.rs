//! The runtime below every plugin, and the SDK that Rust authors use. Free of Python.
//!
//! Where a batch goes, module by module:
//!
//! | module      | what it does                                                                                  |
//! |-------------|-----------------------------------------------------------------------------------------------|
//! | [`exports`] | the slots of the C table: guards, checks, status and text; calls a [`exports::Plugin`]         |
//! | [`handles`] | handle -> started function, checked by generation and process                                 |
//! | [`inbox`]   | where `send` leaves batches, without waiting for the machine                                  |
//! | [`runtime`] | one started function: the machine under its mutex, wake-ups, stop; serves an executor          |
//! | [`machine`] | rows, order, cap, budget, deadlines, cancel, stop: no I/O, time is an argument                 |
//! | [`histogram`] | how long rows took                                                                          |
//! | [`options`] | what host, author and defaults say -> the machine's settings                                   |
//! | [`call_info`] | what a call can ask about itself                                                            |
//! | [`pool`]    | the executor of blocking functions: threads                                                   |
//! | [`timer`]   | the one thread that tells machines the time                                                   |
//! | [`turn`]    | how long an executor starts rows before it does what else there is to do                      |
//! | [`arrow`]   | views of Arrow C Data arrays that came in, checked; arrays that go out                         |
//! | [`results`] | rows that ended -> the struct array that crosses                                              |
//! | [`retired`] | input arrays waiting to be released in a thread of the host                                   |
//! | [`arroyo`]    | the same functions behind Arroyo's own symbols                                                 |
//! | [`sdk`]     | what `#[udf]` expands to: types, the sync loop, the tokio driver                               |
//!
//! Who executes the user's function (tokio or threads here, asyncio in the Python extension, a thread below functions in C)
//! is an *executor*: it pulls attempts from a [`runtime::Runtime`] and tells it how they ended. It has no rules of its own.

pub mod arrow;
pub mod arroyo;
pub mod calendar;
pub mod call_info;
pub mod exports;
pub mod failure;
pub mod handles;
pub mod histogram;
pub mod inbox;
#[cfg(all(test, loom))]
mod interleavings;
pub mod machine;
pub mod options;
pub mod pool;
pub mod results;
pub mod retired;
pub mod runtime;
pub mod sdk;
pub mod signature;
mod sync;
pub mod timer;
pub mod turn;
pub mod value;

pub use arroyo_udf_abi as abi;
pub use arroyo_udf_plugin_macros::udf;
pub use call_info::{call_info, CallInfo};
#[cfg(feature = "tokio")]
pub use sdk::context::UdfContext;
#[cfg(feature = "tokio")]
pub use tokio;
