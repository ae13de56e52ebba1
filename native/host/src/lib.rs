//! Loads UDF plugins and calls their functions, for engines in Rust: a safe API over `arroyo_udf.h`.
//!
//! ```no_run
//! use arroyo_udf_host::{Drained, Options, Plugin, Condition};
//! # fn example(batch: arrow_array::RecordBatch) -> Result<(), Box<dyn std::error::Error>> {
//! let geo = Plugin::open("libgeo.so")?;
//!
//! let distance = geo.function("distance")?;                               // sync
//! let values = distance.call(&batch)?.into_values()?;
//!
//! let town = geo.function("town")?.start(&Options::default())?;           // async
//! town.send(0, town.function().batch(&batch)?)?;
//! loop {
//!     match town.drain(0)? {
//!         Drained::Rows(results) => println!("{:?}", results.into_rows()?.values()),
//!         Drained::NoneYet => { town.wait(Condition::Results, std::time::Duration::MAX)?; }
//!         Drained::End => break,
//!     }
//! }
//! # Ok(()) }
//! ```
//!
//! `Runtime::ready` is `wait` for any executor of futures; [`Caller`] sends batches from many tasks and gives each its own
//! values. With the feature `datafusion`, functions become those of a DataFusion session.
//!
//! Without the feature `arrow` (on by default), arrays come from another library of Arrow: `Function::batch_from_raw`.
//!
//! **Guarantees.** No call is unsafe but that one. Arrays are released once; a batch is the plugin's only if it was accepted,
//! and can be sent to no function that has other types. A runtime that is dropped is stopped and released; workers end with
//! the last of their functions. What a plugin says of itself, and the shape of its results, is checked before it is believed.
//!
//! **Assumes** that a plugin keeps the contract in what no check can tell: its code runs in this process.
//!
//! | file             | what it holds                                                                        |
//! |------------------|--------------------------------------------------------------------------------------|
//! | `plugin.rs`      | plugins; `table.rs`: how one is loaded; `described.rs`: what it says of its functions |
//! | `function.rs`    | functions, and calls of sync ones; `workers.rs`: the same in processes               |
//! | `runtime.rs`     | started async functions; `options.rs`: how they run                                  |
//! | `batch.rs`       | owners of arrays; `checks.rs`: what is checked before a plugin is believed           |
//! | `rows.rs`        | Arrow columns in and out; `arrow_types.rs`: their types                              |
//! | `caller.rs`      | one runtime for many tasks; `datafusion.rs`: functions of DataFusion                 |

mod batch;
mod checks;
mod described;
mod error;
mod function;
mod options;
mod plugin;
mod runtime;
mod table;
mod workers;

#[cfg(feature = "arrow")]
mod arrow_types;
#[cfg(feature = "arrow")]
mod caller;
#[cfg(feature = "arrow")]
mod nested;
#[cfg(feature = "arrow")]
mod rows;

#[cfg(feature = "datafusion")]
pub mod datafusion;

#[cfg(feature = "arrow")]
pub use {arrow_array, arrow_schema};

pub use arroyo_udf_abi as abi;
pub use batch::{Batch, Results};
pub use described::{FunctionKind, OnError, Volatility};
pub use error::{Error, ErrorKind, Result};
pub use function::Function;
pub use options::{BatchContext, Options, Order, RetryOn};
pub use plugin::Plugin;
pub use runtime::{Condition, Drained, Runtime, Sent, StopMode, Stopped};
pub use workers::{Isolation, Worker};

#[cfg(feature = "arrow")]
pub use caller::Caller;
#[cfg(feature = "arrow")]
pub use rows::{Outcome, Rows};
