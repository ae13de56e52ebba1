//! Functions of libraries built for the Arroyo engine, called through our table: `run` is one call of the library, and
//! the attempts of this executor are rows of a runtime that the library starts.
//!
//! Our machine keeps order, timeouts, retries and limits; the library's runtime is started so that it does none of them.
//! Failures of the library become outcomes:
//!
//! * A batch that fails as a whole is called again row by row, so that only rows that fail are errors (R2).
//! * A value that its type does not allow, such as text that is not UTF-8, is its row's error (F4).
//! * A runtime dies of a panic, and does not report it: the next send or drain finds out. The rows that it held become
//!   errors, and another runtime is started. A row that never comes back times out like any other.
//! * The library cannot cancel a row. Once all rows that its runtime holds are cancelled, the runtime is stopped, which ends
//!   them, and another is started. A cancelled row left behind among others is stuck (R8).

use super::theirs::{arguments, checked, AsyncFunctions, Library, Theirs, ThreadWaker};
use crate::arrow::{build_with_room, check_rows, Batch, Column, Layout, NoRoom, Owned};
use crate::exports::Ran;
use crate::failure::Failure;
use crate::machine::{Outcome, Stuck, Token};
use crate::results;
use crate::runtime::{After, Attempt, Executor, Orders, Runtime, Seat, Turn};
use crate::signature::{field, Signature};
use crate::threads::{self, AUTHORS_STACK};
use crate::value::Value;
use arroyo_udf_abi as abi;
use std::collections::{HashMap, HashSet};
use std::sync::{mpsc, Arc, OnceLock};
use std::time::Duration;

/// Longer than any row, because a timeout kills the library's runtime.
const NO_TIMEOUT_MICROS: u64 = 365 * 24 * 3_600 * 1_000_000;
/// How long to wait before asking for results again: the library cannot announce them.
const SHORTEST_NAP: Duration = Duration::from_micros(20);
const LONGEST_NAP: Duration = Duration::from_millis(1);

/// Calls a sync function for a batch.
pub fn run(library: Library, signature: &Signature, batch: &Batch) -> Result<Ran, Failure> {
    let Library::Sync(function) = library else {
        return Err(Failure::new(abi::NOT_IMPLEMENTED, format!("{}: not for this kind of function", signature.name)));
    };
    let call = |rows: std::ops::Range<usize>| {
        let count = rows.len();
        let arguments = arguments(signature, batch.columns(), rows)?;
        // SAFETY: the interface: the arguments are given away.
        let answer = unsafe { function(arguments) };
        if answer.tag != super::layout::RunResult::OK {
            return Err("the function panicked; the library does not say why".to_string());
        }
        checked(answer.value, signature.return_schema, &signature.returns, count)
    };
    let rows = batch.rows();
    let whole = if rows == 0 { Ok(Owned(build_with_room(&signature.returns, [].iter()).0.export())) } else { call(0..rows) };
    // SAFETY: the answer has this type and these rows; the schema is a constant.
    let is_sound = |values: &Owned| unsafe { check_rows(&values.0, signature.return_schema, 0..rows, true) }.is_ok();
    let whole = match whole {
        Ok(values) if is_sound(&values) => {
            let (results, with_outcomes) = results::ran(&signature.name, values.into_array(), &[]);
            return Ok(Ran { results, with_outcomes });
        }
        whole => whole.ok(),
    };
    let one = |row: usize| match &whole {
        // It has values that its type does not allow: those are errors, the others count.
        Some(values) => value(values, signature.return_schema, &signature.returns, row),
        None => value(&call(row..row + 1)?, signature.return_schema, &signature.returns, 0),
    };
    let mut failed = Vec::new();
    let values: Vec<Value> = (0..rows)
        .map(|row| {
            one(row).unwrap_or_else(|text| {
                failed.push((row, text));
                Value::Null
            })
        })
        .collect();
    let (column, without_room) = build_with_room(&signature.returns, values.iter());
    failed.extend(NoRoom::errors(without_room));
    failed.sort_unstable_by_key(|(row, _)| *row);
    let (results, with_outcomes) = results::ran(&signature.name, column.export(), &failed);
    Ok(Ran { results, with_outcomes })
}

/// A row's value, if its type allows it: [`Column::value`] looks at texts, but not at the precision of decimals.
fn value(array: &Owned, schema: &abi::ArrowSchema, layout: &Layout, row: usize) -> Result<Value, String> {
    // SAFETY: the array is valid, was checked against this type, and lives as long as the view.
    unsafe {
        let value = Column::new(&array.0, layout, "the library's answer")?.value(layout, row)?;
        check_rows(&array.0, schema, row..row + 1, true)?;
        Ok(value)
    }
}

/// Starts the executor of `runtime`, in a thread of its own.
pub fn start(library: Library, runtime: &Arc<Runtime>) -> Result<(), Failure> {
    let name = &runtime.signature().name;
    let Library::Async(functions) = library else {
        return Err(Failure::new(abi::NOT_IMPLEMENTED, format!("{name}: not for this kind of function")));
    };
    let (tell, told) = mpsc::channel();
    let seat = Seat::take(runtime);
    let of_thread = seat.clone();
    let serve = move || {
        let waker = ThreadWaker::of_this_thread();
        if tell.send(waker.clone()).is_ok() {
            RowSender::new(of_thread, functions, waker).live();
        }
    };
    let failed = |text: String| Failure::for_now(abi::ENVIRONMENT, format!("{name}: no thread to call it: {text}"));
    threads::spawn("udf-arroyo", AUTHORS_STACK, serve).map_err(|error| failed(error.to_string()))?;
    let waker = told.recv().map_err(|error| failed(error.to_string()))?;
    seat.serve(Box::new(ArroyoExecutor(waker.clone())));
    waker.wake();
    Ok(())
}

/// The runtime's end of the thread.
struct ArroyoExecutor(ThreadWaker);

impl Executor for ArroyoExecutor {
    fn wake(&self) {
        self.0.wake();
    }
}

/// The thread's end: sends rows to a runtime of the library.
struct RowSender {
    runtime: Seat,
    functions: AsyncFunctions,
    waker: ThreadWaker,
    theirs: Option<Theirs>,
    /// The rows that `theirs` has, by the id that it knows.
    running: HashMap<u64, Token>,
    /// Those of them that are cancelled.
    cancelled: HashSet<Token>,
    next_id: u64,
    /// How long to wait before the next turn while rows run.
    nap: Duration,
}

impl Turn for RowSender {
    fn cancel(&mut self, attempt: Token) {
        self.cancelled.insert(attempt);
    }

    fn stuck(&mut self, attempt: &Stuck) {
        self.runtime.report_stuck(attempt.id, "");
    }

    fn work(&mut self) {
        let worked = self.begin_rows() | self.take_results();
        self.cancel_rows();
        self.nap = if worked { SHORTEST_NAP } else { (self.nap * 2).min(LONGEST_NAP) };
    }
}

impl RowSender {
    fn new(runtime: Seat, functions: AsyncFunctions, waker: ThreadWaker) -> RowSender {
        let (running, cancelled) = (HashMap::new(), HashSet::new());
        RowSender { runtime, functions, waker, theirs: None, running, cancelled, next_id: 0, nap: SHORTEST_NAP }
    }

    /// The thread's life. A panic of ours poisons the runtime; then the library's runtime ends, and with it the rows in it.
    fn live(mut self) {
        let runtime = self.runtime.clone();
        runtime.guard(|| self.serve());
        runtime.guard(|| self.theirs = None);
        runtime.guard(|| runtime.closed(Ok(())));
    }

    fn serve(&mut self) {
        let runtime = self.runtime.clone();
        let mut orders = Orders::default();
        loop {
            match runtime.turn(&mut orders, self) {
                After::Settled => return,
                After::Again if !self.is_sending() => {}
                _ if self.running.is_empty() => std::thread::park(),
                _ => std::thread::park_timeout(self.nap),
            }
        }
    }

    fn is_sending(&self) -> bool {
        self.theirs.as_ref().is_some_and(Theirs::is_sending)
    }

    /// Starts the attempts that may start. Returns whether there were any.
    fn begin_rows(&mut self) -> bool {
        let mut worked = false;
        loop {
            if self.theirs.as_mut().is_some_and(|theirs| theirs.go_on_sending(&self.waker).is_err()) {
                self.bury();
            }
            if self.is_sending() {
                return worked;
            }
            let Some(attempt) = self.runtime.next() else { return worked };
            worked = true;
            self.begin(attempt);
        }
    }

    fn begin(&mut self, attempt: Attempt) {
        let signature = self.runtime.signature();
        let columns = attempt.batch.columns();
        let is_null = |(column, nullable): (&Column, &bool)| !nullable && !column.is_valid(attempt.row);
        if columns.iter().zip(&signature.nullable).any(is_null) {
            self.runtime.end(attempt.token, Outcome::Value(Value::Null)); // F3
            return;
        }
        let arguments = match arguments(signature, columns, attempt.row..attempt.row + 1) {
            Ok(arguments) => arguments,
            Err(text) => {
                self.runtime.end(attempt.token, Outcome::Error(text.into()));
                return;
            }
        };
        let (functions, settings) = (self.functions, self.runtime.settings());
        let theirs = self.theirs.get_or_insert_with(|| {
            // Room for stuck rows as well, which our own limit does not count.
            let allowed = settings.allowed_in_flight.saturating_add(settings.max_stuck);
            Theirs::start(functions, false, NO_TIMEOUT_MICROS, allowed)
        });
        self.running.insert(self.next_id, attempt.token);
        let sent = theirs.send(self.next_id, arguments, &self.waker);
        self.next_id += 1;
        if sent.is_err() {
            self.bury();
        }
    }

    /// The library's runtime has died, and with it the rows that it had.
    fn bury(&mut self) {
        self.theirs = None;
        self.cancelled.clear();
        for (_, token) in self.running.drain() {
            let text = "the library's runtime died with this row in flight: this row or another panicked";
            self.runtime.end(token, Outcome::Error(text.into()));
        }
    }

    /// Takes the rows that have ended. Returns whether there were any.
    fn take_results(&mut self) -> bool {
        let Some(theirs) = &mut self.theirs else { return false };
        let arrays = match theirs.drain() {
            Ok(None) => return false,
            Ok(Some(arrays)) => arrays,
            Err(_) => {
                self.bury();
                return true;
            }
        };
        static IDS: OnceLock<abi::ArrowSchema> = OnceLock::new();
        let mut arrays = arrays.into_iter();
        let (Some(ids), Some(values)) = (arrays.next(), arrays.next()) else {
            self.bury();
            return true;
        };
        let rows = ids.array.length as usize;
        let Ok(ids) = checked(ids, IDS.get_or_init(|| field(c"", c"L", 0)), &Layout::Fixed(8), rows) else {
            self.bury();
            return true;
        };
        let signature = self.runtime.signature();
        let values = checked(values, signature.return_schema, &signature.returns, rows);
        // SAFETY: the array was checked, and lives as long as the view.
        let Ok(ids) = (unsafe { Column::new(&ids.0, &Layout::Fixed(8), "the library's answer") }) else {
            self.bury();
            return true;
        };
        for row in 0..rows {
            let Ok(Value::Fixed(id)) = ids.value(&Layout::Fixed(8), row) else { continue };
            let Some(token) = self.running.remove(&id) else { continue };
            self.cancelled.remove(&token);
            let outcome = match values
                .as_ref()
                .map_err(String::clone)
                .and_then(|values| value(values, signature.return_schema, &signature.returns, row))
            {
                Ok(value) => Outcome::Value(value),
                Err(text) => Outcome::Error(text.into()),
            };
            self.runtime.end(token, outcome);
        }
        true
    }

    /// Stops the library's runtime if all rows that it has are cancelled: it cannot cancel single rows.
    fn cancel_rows(&mut self) {
        if !self.running.is_empty() && self.running.values().all(|token| self.cancelled.contains(token)) {
            self.theirs = None;
            self.cancelled.clear();
            for (_, token) in self.running.drain() {
                self.runtime.end(token, Outcome::Cancelled);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f4_a_decimal_beyond_its_precision_is_the_error_of_its_row() {
        let schema = field(c"", c"d:3,1", abi::ARROW_FLAG_NULLABLE);
        let values = [Value::Wide([999, 0]), Value::Wide([1000, 0]), Value::Null];
        let answer = Owned(build_with_room(&Layout::Fixed(16), values.iter()).0.export());
        let value = |row| value(&answer, &schema, &Layout::Fixed(16), row);
        assert!(matches!(value(0), Ok(Value::Wide([999, 0]))));
        assert_eq!(value(1).err().as_deref(), Some("row 1 has more than 3 digits"));
        assert!(matches!(value(2), Ok(Value::Null)));
    }
}
