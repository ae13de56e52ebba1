//! The runtime below every plugin, and the SDK for authors in Rust. Free of Python.
//!
//! The way of a batch, module by module:
//!
//! | module      | what it does                                                                                  |
//! |-------------|-----------------------------------------------------------------------------------------------|
//! | [`exports`] | the slots of the C table: guards, checks, status and text; calls an [`exports::Plugin`]        |
//! | [`handles`] | handle -> started function, checked by generation and process                                 |
//! | [`batch_context`] | what a host says of all rows of a batch                                                 |
//! | [`sending`] | how a batch enters a started function                                                       |
//! | [`inbox`]   | where `send` leaves batches, without waiting for the machine                                  |
//! | [`runtime`] | one started function: the machine under its mutex; the host's side, the executor's side, wake-ups |
//! | [`machine`] | rows, order, cap, budget, deadlines, cancel, stop: no I/O, time is an argument                 |
//! | [`histogram`] | how long rows took                                                                          |
//! | [`rates`]   | budgets of rate that started functions of one name share                                      |
//! | [`options`] | options of host and author, and defaults -> the machine's settings                             |
//! | [`limits`]  | time limits that no option changes                                                            |
//! | [`log`]     | where a runtime reports what belongs to no row                                                |
//! | [`call_info`] | what a call can ask about itself                                                            |
//! | [`pool`]    | the executor of blocking functions: threads                                                   |
//! | [`panics`]  | caught panics, as texts                                                                      |
//! | [`timer`]   | the one thread that gives machines the time                                                   |
//! | [`threads`] | how the toolkit starts threads                                                                |
//! | [`forks`]   | what a child of this process must not do                                                      |
//! | [`sync`]    | locks that loom can replace; poisoned locks                                                   |
//! | [`arrow`]   | checked views of Arrow C Data arrays that came in; arrays that go out                          |
//! | [`results`] | rows that ended -> the struct array that crosses                                              |
//! | [`sized`]   | structs of the contract that may be smaller or larger than they are here                      |
//! | [`memory`]  | memory for results: asked for before it is needed                                             |
//! | [`retired`] | input arrays that wait to be released in a thread of the host                                 |
//! | [`isolation`] | plugins whose functions run in workers: processes, subinterpreters                           |
//! | [`arroyo`]  | the same functions behind Arroyo's own symbols                                                |
//! | [`sdk`]     | the code that `#[udf]` expands to: types, the sync loop, the tokio executor                    |
//!
//! An *executor* runs the author's function: tokio or threads here, asyncio in the Python extension, a thread below functions
//! in C. It takes turns of a [`runtime::Runtime`]: pulls attempts, and reports how they ended. It has no rules of its own.

pub mod arrow;
pub mod arroyo;
pub mod batch_context;
pub mod calendar;
pub mod call_info;
pub mod engines;
pub mod exports;
pub mod failure;
pub mod forks;
pub mod handles;
pub mod histogram;
pub mod inbox;
#[cfg(all(test, loom))]
mod interleavings;
pub mod isolation;
pub mod limits;
pub mod log;
pub mod machine;
pub mod memory;
pub mod options;
pub mod panics;
pub mod pool;
pub mod rates;
pub mod results;
pub mod retired;
pub mod runtime;
pub mod sdk;
pub mod sending;
pub mod signature;
pub mod sized;
pub mod sync;
pub mod threads;
pub mod timer;
pub mod value;

pub use arroyo_udf_abi as abi;
pub use arroyo_udf_plugin_macros::{udaf, udf, udtf, State};
pub use call_info::{call_info, CallInfo};
#[cfg(feature = "tokio")]
pub use sdk::context::UdfContext;
pub use sdk::udaf::State;
#[cfg(feature = "tokio")]
pub use tokio;
