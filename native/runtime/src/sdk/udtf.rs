//! Table functions (F9): the rows that a row of arguments gives, as a list of structs.

use super::arguments::Arguments;
use super::builders::Builder;
use super::function::{Function, Type};
use super::types::{ResultType, Return};
use crate::arrow::Batch;
use crate::panics;
use crate::value::Value;
use std::fmt::Display;

/// What `#[udtf]` may return: rows, or a `Result` of them, whose error has `Display`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a table function",
    label = "these are no rows",
    note = "write `Vec<(String, i64)>` with a type for each column, `Vec<String>` for one column, or a Result of it, whose error has Display"
)]
pub trait Rows {
    type Row;

    fn rows(self) -> Result<Vec<Self::Row>, String>;
}

impl<R> Rows for Vec<R> {
    type Row = R;

    fn rows(self) -> Result<Vec<R>, String> {
        Ok(self)
    }
}

impl<R, E: Display> Rows for Result<Vec<R>, E> {
    type Row = R;

    fn rows(self) -> Result<Vec<R>, String> {
        self.map_err(|error| error.to_string())
    }
}

/// A tuple of up to 8 columns.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a row of a table function",
    note = "a row is a tuple with a value for each column: types that `#[udf]` can return, up to 8"
)]
pub trait Row {
    const TYPES: &'static [Type];

    /// A value for each column, or the text of the error.
    fn values(self) -> Result<Box<[Value]>, String>;
}

/// The type of a table function's value. names: of the columns.
pub const fn returned<R: Row>(names: &'static [&'static str]) -> Type {
    assert!(names.len() == R::TYPES.len(), "a table function has a name in `columns(...)` for each column of its rows");
    Type { format: c"+l", nullable: false, item: Some(c"+s"), columns: Some((names, R::TYPES)) }
}

fn value<R: Return>(column: R) -> Result<Value, String> {
    Ok(match column.into_result()? {
        Some(value) => <R::Value as ResultType>::Builder::value(value.into_item()?),
        None => Value::Null,
    })
}

macro_rules! tuple {
    ($($column:ident $number:tt),*) => {
        impl<$($column: Return),*> Row for ($($column,)*) {
            const TYPES: &'static [Type] = &[$(Type::returned::<$column>()),*];

            fn values(self) -> Result<Box<[Value]>, String> {
                Ok(Box::new([$(value(self.$number)?),*]))
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

/// Calls `call` for each row of the batch, except where an argument is null that cannot be (F3). The answer has a list of
/// rows, null, or an error for each.
pub fn run<'a, A, R, T>(
    function: &Function,
    batch: &'a Batch,
    call: impl Fn(A) -> R,
    row: impl Fn(R::Row) -> T,
) -> Vec<Result<Value, String>>
where
    A: Arguments<'a>,
    R: Rows,
    T: Row,
{
    let (columns, rows) = (batch.columns(), batch.rows());
    let views = A::views(columns);
    let mut answers = Vec::with_capacity(rows);
    for word in (0..rows).step_by(64) {
        let callable = A::callable(columns, word, rows);
        for at in word..rows.min(word + 64) {
            if callable >> (at - word) & 1 == 0 {
                answers.push(Ok(Value::Null));
                continue;
            }
            let caught = panics::catch(|| {
                // SAFETY: the row is below `rows`, its bit is set in `callable`, and the batch was checked against the
                // signature that `function` describes.
                let arguments = unsafe { A::read(views, at) }.map_err(|(number, text)| function.unreadable(number, &text))?;
                let found = call(arguments).rows()?;
                let values = found.into_iter().map(|one| row(one).values().map(Value::Nested));
                Ok(Value::Nested(values.collect::<Result<Box<[_]>, String>>()?))
            });
            answers.push(caught.unwrap_or_else(Err));
        }
    }
    answers
}
