//! `PythonFunction`: a user's function, ready to be called.

use crate::gil::Entry;
use crate::object::Owned;
use crate::state::State;
use crate::values::conversion::Conversion;
use arroyo_udf_plugin::signature::Signature;
use pyo3_ffi::{PyObject, Py_None};
use std::sync::Arc;

/// The maximum number of arguments, so that a call needs no allocation.
pub const MOST_ARGUMENTS: usize = 64;

/// Belongs to one interpreter, and is dropped inside it.
pub struct PythonFunction {
    pub state: Arc<State>,
    pub signature: &'static Signature,
    pub callable: Owned,
    pub entry: Entry,
    /// The class of the Context, if the function takes one.
    pub context: Option<Owned>,
    /// Called in a thread of the pool, not on the event loop.
    pub blocking: bool,
    /// A call of a vectorized function that raises is repeated with each half of its rows.
    pub split: bool,
    pub arguments: Vec<Conversion>,
    pub returns: Conversion,
}

impl PythonFunction {
    /// `context`: the class of the Context, or None. Answers None with an exception set if Python lacks a timestamp's zone.
    ///
    /// # Safety
    /// The GIL is held, in the interpreter of this state; both objects are valid.
    pub unsafe fn new(
        state: &Arc<State>,
        signature: &'static Signature,
        callable: *mut PyObject,
        context: *mut PyObject,
        blocking: bool,
        split: bool,
    ) -> Option<PythonFunction> {
        // SAFETY: the GIL is held; a checked signature's schema has a child for each argument.
        unsafe {
            let fields = 0..signature.arguments.len();
            let schemas = fields.map(|i| &**signature.argument_schema.children.add(i));
            Some(PythonFunction {
                state: Arc::clone(state),
                signature,
                callable: Owned::borrowed(callable),
                entry: Entry::of(callable),
                context: (context != Py_None()).then(|| Owned::borrowed(context)),
                blocking,
                split,
                arguments: schemas.map(|schema| Conversion::of(schema)).collect::<Option<_>>()?,
                returns: Conversion::of(signature.return_schema)?,
            })
        }
    }

    /// Whether a call takes several rows: a list for each argument, and a list of results.
    pub fn takes_micro_batches(&self) -> bool {
        self.signature.options.batch_size > 0
    }

    /// The error text if a result is None. None: null is allowed.
    pub fn refuse_none(&self) -> Option<&'static str> {
        (!self.signature.returns_nullable).then_some("returned None, but the result is not nullable; annotate it with `| None`")
    }
}
