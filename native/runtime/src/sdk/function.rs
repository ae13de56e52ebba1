//! A function as `#[udf]` describes it: a constant of the author's library; and the outcomes of its calls.

use super::builders::Builder;
use super::types;
use crate::abi;
use crate::arrow::{ArrayData, Batch, Layout};
use crate::failure::Failure;
use crate::machine::Outcome;
use crate::results;
use crate::runtime::Runtime;
use crate::value;
use std::ffi::CStr;
use std::sync::Arc;

/// One function as `#[udf]` describes it.
pub struct Function {
    pub name: &'static str,
    /// File, line, column, number of a step: the order of functions in the descriptor.
    pub place: (&'static str, u32, u32, u32),
    pub arguments: &'static [Argument],
    pub returns: Type,
    pub body: Body,
    /// The author's text for users; empty: none.
    pub documentation: &'static str,
    /// What the result depends on, as in the header; 0: not said.
    pub volatility: u32,
}

/// The item of a result column that a type goes into.
type Item<R> = <<<R as types::Return>::Value as types::ResultType>::Builder as Builder>::Item;

impl Function {
    /// The returned value as an item of the result column. The error is the row's: the author's, or that the value does not fit
    /// (F4).
    #[inline]
    pub(super) fn item<R: types::Return>(&self, returned: R) -> Result<Option<Item<R>>, String> {
        match returned.into_result()? {
            Some(value) => types::ResultType::into_item(value).map(Some),
            None => Ok(None),
        }
    }

    /// How a row of an async or blocking function ended.
    pub(super) fn outcome<R: types::Return>(&self, returned: R) -> Outcome<value::Value> {
        match self.item(returned) {
            Ok(Some(item)) => {
                let value = <<R::Value as types::ResultType>::Builder as Builder>::value(item);
                let narrow = matches!(self.returns.format.to_bytes(), b"u" | b"z");
                match results::fits(if narrow { &Layout::Bytes } else { &Layout::Null }, &value) {
                    Ok(()) => Outcome::Value(value),
                    Err(text) => Outcome::Error(text.into()),
                }
            }
            Ok(None) => Outcome::Value(value::Value::Null),
            Err(text) => Outcome::Error(text.into()),
        }
    }

    /// The error text of a row whose argument does not match its type (F4).
    #[cold]
    pub(super) fn unreadable(&self, argument: usize, text: &str) -> String {
        let argument = self.arguments.get(argument).map_or("", |argument| argument.name);
        format!("argument {argument}: {text}")
    }
}

pub struct Argument {
    pub name: &'static str,
    pub ty: Type,
}

impl Argument {
    pub const fn new<T: types::ArgumentType<'static>>(name: &'static str) -> Self {
        Argument { name, ty: Type { format: T::FORMAT, nullable: T::NULLABLE, item: T::ITEM, columns: None } }
    }
}

/// An Arrow type by its format string, and whether its values can be null.
pub struct Type {
    pub format: &'static CStr,
    pub nullable: bool,
    /// For a list: the format of its items.
    pub item: Option<&'static CStr>,
    /// For a list of structs: the names of their fields, and the types.
    pub columns: Option<(&'static [&'static str], &'static [Type])>,
}

impl Type {
    pub const fn returned<R: types::Return>() -> Self {
        Type { format: <R::Value as types::ResultType>::FORMAT, nullable: R::NULLABLE, item: None, columns: None }
    }
}

/// How a function is called.
pub enum Body {
    Sync(fn(&Batch) -> Results),
    /// Not called: its steps are the next three functions.
    Aggregate,
    /// Of an aggregate.
    Step(fn(&Batch) -> Results),
    /// For each row of the batch a list of rows, null, or an error.
    Table(fn(&Batch) -> Vec<Result<value::Value, String>>),
    /// `start` gives the runtime its executor.
    Async {
        options: abi::Options,
        start: fn(&Arc<Runtime>) -> Result<(), Failure>,
    },
    /// Async for the host; each call runs in a thread.
    Blocking {
        options: abi::Options,
        call: CallRow,
    },
}

/// The code that the attribute generates for a function: a call for row `row` of a batch.
pub type CallRow = fn(batch: &Batch, row: usize) -> Outcome<value::Value>;

/// The results of a batch.
pub struct Results {
    pub values: ArrayData,
    /// Rows that ended as errors, in rising order, with their texts. Their values are null.
    pub failed: Vec<(usize, String)>,
}
