//! Loads UDF plugins and calls their functions, for engines in Rust: a safe API over `arroyo_udf.h`.
//!
//! ```no_run
//! use arroyo_udf_host::{Drained, Options, Plugin, Condition};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let batch: arrow_array::RecordBatch = todo!();
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
//! **Guarantees.** No call is unsafe but that one. Arrays are released once; a batch is the plugin's only if it was accepted, and can be
//! sent to no function that has other types. A runtime that is dropped is stopped and released; workers end with the last
//! function of their instance. What a plugin says of itself, and the shape of its results, is checked before it is believed.
//!
//! **Assumes** that a plugin keeps the contract in what no check can tell: its code runs in this process.

mod batch;
mod checks;
mod error;
mod instance;
mod options;
mod plugin;
mod runtime;

#[cfg(feature = "arrow")]
mod caller;
#[cfg(feature = "arrow")]
mod rows;

#[cfg(feature = "datafusion")]
pub mod datafusion;

#[cfg(feature = "arrow")]
pub use {arrow_array, arrow_schema};

pub use arroyo_udf_abi as abi;
pub use batch::{Batch, Results};
pub use error::{Error, ErrorKind, Result};
pub use instance::{Instance, Isolation, Worker};
pub use options::{BatchContext, Options, Order, RetryOn};
pub use plugin::{Function, FunctionKind, OnError, Plugin, Volatility};
pub use runtime::{Condition, Drained, Runtime, Sent, StopMode, Stopped};

#[cfg(feature = "arrow")]
pub use caller::Caller;
#[cfg(feature = "arrow")]
pub use rows::{Outcome, Rows};
