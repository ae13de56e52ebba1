//! Functions of plugins as functions of DataFusion.
//!
//! ```no_run
//! # use arroyo_udf_host::{datafusion::scalar_udf, Plugin};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # trait Registers { fn register_udf(&self, udf: datafusion_expr::ScalarUDF); }
//! # struct Context; impl Registers for Context { fn register_udf(&self, _: datafusion_expr::ScalarUDF) {} }
//! # let session = Context;
//! for function in Plugin::open("libusers.so")?.functions() {
//!     session.register_udf(scalar_udf(&function, function.on_error())?);
//! }
//! # Ok(()) }
//! ```
//!
//! DataFusion casts arguments to the types that a function states. A literal text is not repeated for each row, where the
//! function takes it as a constant. An async function has one runtime for each registration,
//! which starts with the first call and is released with it; batches of several partitions run in it at once, at its
//! concurrency. It is volatile, so no call of it is left out or merged.

use std::sync::{Arc, Mutex};

use arrow_array::Datum;
use arrow_schema::{DataType, FieldRef};
use async_trait::async_trait;
use datafusion_common::{DataFusionError, Result as DataFusionResult};
use datafusion_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature};

use crate::{Batch, Caller, Error, ErrorKind, Function, FunctionKind, OnError, Options, Result, Volatility};

/// A function of a plugin, to be registered in a session.
pub fn scalar_udf(function: &Function, on_error: OnError) -> Result<ScalarUDF> {
    let types: Vec<DataType> = function.arguments()?.iter().map(|field| field.data_type().clone()).collect();
    let types = if types.is_empty() { TypeSignature::Nullary } else { TypeSignature::Exact(types) };
    let volatility = match (function.kind(), function.volatility()) {
        (FunctionKind::Sync, Some(Volatility::Immutable)) => datafusion_expr::Volatility::Immutable,
        (FunctionKind::Sync, Some(Volatility::Stable)) => datafusion_expr::Volatility::Stable,
        _ => datafusion_expr::Volatility::Volatile,
    };
    let udf = PluginUdf {
        returns: Arc::new(function.returns()?.as_ref().clone().with_name(function.name()).with_nullable(true)),
        signature: Signature::new(types, volatility),
        function: function.clone(),
        on_error,
        caller: Mutex::new(None),
    };
    match function.kind() {
        FunctionKind::Sync => Ok(ScalarUDF::new_from_impl(udf)),
        FunctionKind::Async => Ok(AsyncScalarUDF::new(Arc::new(udf)).into_scalar_udf()),
        FunctionKind::Unknown(_) => unreachable!("its types are refused above"),
    }
}

struct PluginUdf {
    function: Function,
    returns: FieldRef,
    signature: Signature,
    on_error: OnError,
    /// Of an async function that has been called.
    caller: Mutex<Option<Arc<Caller>>>,
}

impl PluginUdf {
    fn batch(&self, arguments: &ScalarFunctionArgs) -> DataFusionResult<Batch> {
        let datums = arguments.args.iter().map(|argument| {
            Ok(match argument {
                ColumnarValue::Array(column) => Box::new(column.clone()) as Box<dyn Datum>,
                ColumnarValue::Scalar(value) => Box::new(value.to_scalar()?),
            })
        });
        let datums = datums.collect::<DataFusionResult<Vec<_>>>()?;
        let datums: Vec<&dyn Datum> = datums.iter().map(AsRef::as_ref).collect();
        self.function.batch_of_datums(&datums, arguments.number_rows).map_err(external)
    }

    /// The runtime of this registration.
    fn caller(&self) -> DataFusionResult<Arc<Caller>> {
        let mut caller = self.caller.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(started) = caller.as_ref() {
            return Ok(started.clone());
        }
        let started = Arc::new(Caller::start(&self.function, &Options::default()).map_err(external)?);
        *caller = Some(started.clone());
        Ok(started)
    }
}

impl ScalarUDFImpl for PluginUdf {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(self.returns.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> DataFusionResult<FieldRef> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let rows = self.function.run(self.batch(&arguments)?).and_then(|results| results.into_rows()).map_err(external)?;
        let values = match self.on_error {
            OnError::Fail => rows.into_values().map_err(external)?,
            OnError::Null => rows.values().clone(),
        };
        Ok(ColumnarValue::Array(values))
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for PluginUdf {
    async fn invoke_async_with_args(&self, arguments: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let (caller, batch) = (self.caller()?, self.batch(&arguments)?);
        let values = match self.on_error {
            OnError::Fail => caller.values(batch).await,
            OnError::Null => caller.values_or_null(batch).await,
        };
        Ok(ColumnarValue::Array(values.map_err(external)?))
    }
}

fn external(error: Error) -> DataFusionError {
    match error.kind() {
        ErrorKind::OutOfMemory => DataFusionError::ResourcesExhausted(error.to_string()),
        _ => DataFusionError::External(Box::new(error)),
    }
}

// Functions are the same if they are the same registration.
impl PartialEq for PluginUdf {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for PluginUdf {}

impl std::hash::Hash for PluginUdf {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.function.name().hash(state);
    }
}

impl std::fmt::Debug for PluginUdf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.function.plugin(), self.function.name())
    }
}
