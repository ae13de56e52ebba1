//! Async functions whose calls share a Context, or borrow their arguments, through the C table.
#![cfg(feature = "tokio")]

mod host;

use arroyo_udf_plugin::sdk::context::Pending;
use arroyo_udf_plugin::value::Value;
use arroyo_udf_plugin::{abi, tokio, udf, UdfContext};
use host::started::{numbers, options, Started};
use host::{batch, declared, error, no_error, number, taken, text, value, Row, NULL, TABLE};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

/// Reports its drop.
struct Dropped(Sender<&'static str>, &'static str);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(self.1);
    }
}

/// Events of the Contexts of `shared`; the test takes the receiver.
static EVENTS: Mutex<Option<Sender<&'static str>>> = Mutex::new(None);

fn events() -> Sender<&'static str> {
    EVENTS.lock().unwrap_or_else(PoisonError::into_inner).clone().expect("a test listens")
}

struct Context {
    calls: AtomicI64,
    _dropped: Dropped,
}

impl Context {
    fn new() -> Self {
        let _ = events().send("new");
        Context { calls: AtomicI64::new(0), _dropped: Dropped(events(), "dropped") }
    }
}

impl UdfContext for Context {
    fn init<'life0, 'async_trait>(&'life0 self) -> Pending<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async {
            tokio::task::yield_now().await;
            let _ = events().send("init");
            let background = Dropped(events(), "background");
            tokio::spawn(async move {
                std::future::pending::<()>().await;
                drop(background);
            });
        })
    }

    fn close<'life0, 'async_trait>(&'life0 self) -> Pending<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async {
            tokio::task::yield_now().await;
            let _ = events().send("close");
        })
    }
}

#[udf]
async fn shared(context: Arc<Context>, x: i64) -> Result<i64, String> {
    tokio::task::yield_now().await;
    let _ = events().send("call");
    match x {
        -1 => Err("an error".to_string()),
        x => Ok(x + 1000 * context.calls.fetch_add(1, Ordering::SeqCst)),
    }
}

fn next(events: &Receiver<&'static str>) -> &'static str {
    events.recv().expect("an event")
}

/// R12: new and init once per start, before its rows; close after the last row, even if one failed; tasks that init spawned
/// live longer.
#[test]
fn a_context_lives_from_start_to_stop() {
    let (sender, events) = channel();
    *EVENTS.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
    assert_eq!(declared("shared"), (vec![("x", "l", 0)], ("l", 0)), "the Context is no column");
    for _ in 0..2 {
        let started = Started::new("shared", abi::Options { allowed_in_flight: 1, ..options() });
        assert_eq!([next(&events), next(&events)], ["new", "init"]);
        let column = [1, -1, 3].map(|x: i64| Value::Fixed(x as u64));
        assert_eq!(started.send("shared", 0, &[column.into()]), abi::OK);
        assert_eq!(started.stop(abi::DRAIN, 60), abi::OK);
        assert_eq!(started.drain(3), [(0, value(1)), (1, error("shared", 1, "an error")), (2, value(1003))]);
        assert_eq!([(); 4].map(|()| next(&events)), ["call", "call", "call", "close"]);
        let mut last = [next(&events), next(&events)];
        last.sort_unstable();
        assert_eq!(last, ["background", "dropped"]);
    }
}

struct Bad(&'static str);

static WHERE: Mutex<&str> = Mutex::new("");

impl Bad {
    fn new() -> Self {
        let place = *WHERE.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(place != "new", "bad {place}");
        Bad(place)
    }

    fn at(&self, place: &str) -> Pending<'_> {
        assert!(self.0 != place, "bad {place}");
        Box::pin(std::future::ready(()))
    }
}

impl UdfContext for Bad {
    fn init<'life0, 'async_trait>(&'life0 self) -> Pending<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        self.at("init")
    }

    fn close<'life0, 'async_trait>(&'life0 self) -> Pending<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        self.at("close")
    }
}

#[udf]
async fn unlucky(_context: Arc<Bad>) -> i64 {
    7
}

/// R12: the text of a failing Context is the error of start or stop; rows that have ended still come out.
#[test]
fn a_context_that_fails_says_so() {
    for place in ["new", "init"] {
        *WHERE.lock().unwrap_or_else(PoisonError::into_inner) = place;
        let (mut handle, mut error) = (0, no_error());
        // SAFETY: all pointers are valid.
        let status = unsafe { (TABLE.start)(number("unlucky"), &options(), &mut handle, &mut error) };
        let said = taken(&mut error);
        assert_eq!((status, handle), (abi::USER_CODE, 0));
        assert!(
            said.starts_with("this_test.unlucky: init of the Context panicked at ") && said.ends_with(&format!(": bad {place}")),
            "{said}"
        );
    }
    *WHERE.lock().unwrap_or_else(PoisonError::into_inner) = "close";
    let started = Started::new("unlucky", options());
    let (mut arguments, mut error) = (batch("unlucky", &[], 0), no_error());
    arguments.length = 2;
    // SAFETY: all pointers are valid.
    assert_eq!(unsafe { (TABLE.send)(started.0, 0, &mut arguments, std::ptr::null(), &mut error) }, abi::OK);
    // SAFETY: as above.
    let status = unsafe { (TABLE.stop_runtime)(started.0, abi::DRAIN, 60_000_000_000, &mut error) };
    let said = taken(&mut error);
    assert_eq!(status, abi::USER_CODE);
    assert!(said.starts_with("this_test.unlucky: close failed: panicked at ") && said.ends_with(": bad close"), "{said}");
    assert_eq!(started.drain(2), [(0, value(7)), (1, value(7))]);
}

static GATE: Mutex<()> = Mutex::new(());
static STUCK: Mutex<Option<Sender<&'static str>>> = Mutex::new(None);

struct Stuck(Dropped);

impl Stuck {
    fn new() -> Self {
        let sender = STUCK.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Stuck(Dropped(sender.expect("a test listens"), "dropped"))
    }
}

impl UdfContext for Stuck {
    fn close<'life0, 'async_trait>(&'life0 self) -> Pending<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        let _ = self.0 .0.send("close");
        Box::pin(std::future::ready(()))
    }
}

/// Blocks its thread, and so cannot be cancelled.
#[udf]
async fn stuck(context: Arc<Stuck>, x: i64) -> i64 {
    let _ = context.0 .0.send("call");
    drop(GATE.lock());
    x
}

/// R13: STUCK told the host that calls may still use it, so it is not closed later, unseen by the host.
#[test]
fn a_context_is_not_closed_after_a_stop_that_was_stuck() {
    let (sender, events) = channel();
    *STUCK.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
    let started = Started::new("stuck", options());
    let gate = GATE.lock();
    assert_eq!(started.send("stuck", 0, &[numbers(0..1)]), abi::OK);
    assert_eq!(next(&events), "call");
    assert_eq!(started.stop(abi::CANCEL, 0), abi::STUCK);
    drop(gate);
    assert_eq!(next(&events), "dropped");
}

#[udf]
async fn borrowing(name: &str, kind: Option<&[u8]>, times: i64) -> Result<Option<String>, String> {
    tokio::task::yield_now().await;
    match kind {
        None if name.is_empty() => Ok(None),
        None => Ok(Some(name.repeat(times as usize))),
        Some(kind) => Err(format!("{name} {}", kind.len())),
    }
}

/// F3, F4: borrowed arguments outlive their batch.
#[test]
fn an_async_function_may_borrow() {
    let nullable = abi::ARROW_FLAG_NULLABLE;
    let columns = vec![("name", "u", 0), ("kind", "z", nullable), ("times", "l", 0)];
    assert_eq!(declared("borrowing"), (columns, ("u", nullable)));
    let started = Started::new("borrowing", options());
    let names = vec![text("ab"), text("c"), Value::Null, text(""), Value::Bytes([0xff].into())];
    let kinds = vec![Value::Null, text("four"), Value::Null, Value::Null, Value::Null];
    assert_eq!(started.send("borrowing", 0, &[names, kinds, numbers(2..7)]), abi::OK);
    let rows: Vec<Row> = started.drain(5).into_iter().map(|(_, row)| row).collect();
    assert_eq!(rows[..4], [Row::Value(text("abab")), error("borrowing", 1, "c 4"), NULL, NULL]);
    assert!(matches!(&rows[4], Row::Error(text) if text.contains("argument name: the text is not UTF-8")), "{rows:?}");
}
