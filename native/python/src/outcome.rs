//! From an object that an async or blocking function returned to the outcome of its row. (`calls.rs` is the way there;
//! `run` writes its results into columns instead.)

use crate::function::PythonFunction;
use crate::pyarrow;
use crate::values::conversion::Conversion;
use crate::values::write::Scalar;
use arroyo_udf_plugin::machine::Outcome;
use arroyo_udf_plugin::results;
use arroyo_udf_plugin::value::Value;
use pyo3_ffi::{PyObject, Py_None};

/// The outcome of a row that failed.
pub fn error_of(text: impl Into<String>) -> Outcome<Value> {
    Outcome::Error(results::error_text(text.into()).into())
}

/// The outcome of a row: its value, or the error that the object is no value of the function's type (F4).
///
/// # Safety
/// The GIL is held; `result` is valid.
pub unsafe fn outcome_of(function: &PythonFunction, result: *mut PyObject) -> Outcome<Value> {
    // SAFETY: the GIL is held; the caller keeps the result meanwhile.
    let value = unsafe {
        if result == Py_None() {
            function.refuse_none().map_or(Ok(Value::Null), |text| Err(text.to_string()))
        } else if matches!(function.returns, Conversion::Pyarrow) {
            pyarrow::object_to_value(function, result)
        } else {
            match function.returns.write(result) {
                Ok(Scalar::Fixed(x)) => return Outcome::Value(Value::Fixed(x)),
                Ok(Scalar::Bytes(bytes)) => Ok(Value::Bytes(bytes.into())),
                Err(text) => Err(text),
            }
        }
    };
    let fitting = value.and_then(|value| results::fits(&function.signature.returns, &value).map(|()| value));
    fitting.map_or_else(error_of, Outcome::Value)
}
