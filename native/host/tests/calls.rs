//! Calls of real plugins in three languages, in the folder `$PLUGINS`: `tests/rust_host/test_rust_crate.py` builds them, and runs
//! this.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc};
use std::time::Duration;

use arroyo_udf_host::arrow_array::cast::AsArray;
use arroyo_udf_host::arrow_array::types::{Float64Type, Int64Type};
use arroyo_udf_host::arrow_array::{Array, ArrayRef, Datum, Int32Array, Int64Array, RecordBatch, Scalar, StringArray};
use arroyo_udf_host::arrow_schema::DataType;
use arroyo_udf_host::{
    BatchContext, Caller, Condition, Drained, ErrorKind, Function, FunctionKind, Isolation, Options, Outcome, Plugin, Sent, StopMode,
    Stopped, Volatility, Worker,
};
use futures::executor::{block_on, ThreadPool};
use futures::future::{join_all, select, Either};
use futures::task::SpawnExt;

const LANGUAGES: [&str; 3] = ["c", "rs", "py"];
const ASYNC: [&str; 2] = ["rs", "py"];
const PATIENCE: Duration = Duration::from_secs(30);

fn plugin(language: &str) -> Plugin {
    let folder = std::env::var_os("PLUGINS").expect("PLUGINS names the folder of the built plugins");
    Plugin::open(PathBuf::from(folder).join(format!("{language}.so"))).unwrap()
}

fn function(language: &str, name: &str) -> Function {
    plugin(language).function(name).unwrap()
}

fn integers(values: impl IntoIterator<Item = impl Into<Option<i64>>>) -> ArrayRef {
    Arc::new(values.into_iter().map(Into::into).collect::<Int64Array>())
}

fn integers_of(array: &ArrayRef) -> Vec<Option<i64>> {
    array.as_primitive::<Int64Type>().iter().collect()
}

/// All rows that come out until a stop's end: id, value, outcome.
fn drained(runtime: &arroyo_udf_host::Runtime) -> Vec<(u64, Option<i64>, Outcome)> {
    let mut all = Vec::new();
    while let Drained::Rows(results) = runtime.drain(0).unwrap() {
        let rows = results.into_rows().unwrap();
        let (ids, values) = (rows.ids().unwrap(), integers_of(rows.values()));
        all.extend((0..rows.len()).map(|row| (ids.value(row), values[row], rows.outcome(row))));
    }
    all
}

#[test]
fn plugins_describe_themselves() {
    for (language, long) in LANGUAGES.into_iter().zip(["c", "rust", "python"]) {
        let plugin = plugin(language);
        assert_eq!((plugin.name(), plugin.language()), ("one", long));
        let mph = plugin.function("mph").unwrap();
        assert_eq!((mph.kind(), mph.volatility(), mph.is_isolated()), (FunctionKind::Sync, Some(Volatility::Immutable), false));
        let arguments: Vec<_> = mph.arguments().unwrap().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect();
        assert_eq!(arguments, [("distance".into(), DataType::Int64), ("air_time".into(), DataType::Int64)]);
        assert_eq!(mph.returns().unwrap().data_type(), &DataType::Float64);
        let error = plugin.function("nope").err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().starts_with("plugin one has no function nope: it has mph, "), "{error}");
    }
}

#[test]
fn sync_functions_answer_each_row() {
    for language in LANGUAGES {
        let mph = function(language, "mph");
        let rows = RecordBatch::try_from_iter([("a", integers([Some(10), None, Some(30)])), ("b", integers([2, 2, 2]))]).unwrap();
        for _ in 0..3 {
            let values = mph.call(&rows).unwrap().into_values().unwrap();
            assert_eq!(values.as_primitive::<Float64Type>().iter().collect::<Vec<_>>(), [Some(300.0), None, Some(900.0)]);
        }
        let sliced = mph.call(&rows.slice(2, 1)).unwrap();
        assert_eq!((sliced.len(), sliced.values().as_primitive::<Float64Type>().value(0)), (1, 900.0));
        assert!(mph.call(&rows.slice(0, 0)).unwrap().is_empty());
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
        // The plugin is opened once more here: its functions are the same.
        let batch = function(language, "shout").batch_of(&[texts], 2).unwrap();
        let shouted = function(language, "shout").run(batch).unwrap().into_rows().unwrap().into_values().unwrap();
        assert_eq!(shouted.as_string::<i32>().iter().collect::<Vec<_>>(), [Some("a!"), None]);
    }
}

/// Texts that are scalars, as arrays; and what `made` of `plugins/constants.*` says of the word.
fn made(function: &Function, word: &'static str) -> Vec<Option<i64>> {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"; 100]));
    let batch = function.batch_of_datums(&[&texts, &StringArray::new_scalar(word)], 100).unwrap();
    assert_eq!(batch.len(), 100);
    integers_of(&function.run(batch).unwrap().into_rows().unwrap().into_values().unwrap())
}

#[test]
fn a_scalar_text_comes_as_one_value() {
    for language in LANGUAGES {
        let made_here = function(&format!("constants/{language}"), "made");
        assert_eq!((made(&made_here, "one"), made(&made_here, "two")), (vec![Some(1); 100], vec![Some(1); 100]));
        let joined = function(&format!("constants/{language}"), "joined");
        let nothing = Scalar::new(StringArray::new_null(1));
        let batch = joined.batch_of_datums(&[&nothing, &StringArray::from(vec!["x", "y"])], 2).unwrap();
        let values = joined.run(batch).unwrap().into_rows().unwrap().into_values().unwrap();
        assert_eq!(values.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["None x", "None y"]);
    }
}

#[test]
fn other_scalars_are_repeated() {
    for language in LANGUAGES {
        let (mph, ten) = (function(language, "mph"), Int64Array::new_scalar(10));
        let values =
            mph.run(mph.batch_of_datums(&[&integers([1, 2]), &ten], 2).unwrap()).unwrap().into_rows().unwrap().into_values().unwrap();
        assert_eq!(values.as_primitive::<Float64Type>().values(), &[6.0, 12.0]);
        let refused = |array: &dyn Datum| mph.batch_of_datums(&[&integers([1, 2]), array], 2).err().unwrap().to_string();
        assert_eq!(refused(&Scalar::new(StringArray::from(vec!["x"]))), "mph: argument air_time is Int64, not Utf8: cast the column");
        assert_eq!(refused(&integers([1])), "mph: a column has 1 rows, not 2");
    }
    // Workers get whole columns.
    let isolation = Isolation { worker: Worker::Process { memory_limit: None, cpu_limit: None }, workers: 1 };
    let isolated = plugin("constants/py").isolated(&isolation).unwrap().function("made").unwrap();
    assert!(made(&isolated, "three").last().unwrap().unwrap() > 1);
}

#[test]
fn a_failed_row_is_no_failed_call() {
    for language in LANGUAGES {
        let mph = function(language, "mph");
        let batch = mph.batch_of(&[integers([1, 2, 3]), integers([1, 0, 1])], 3).unwrap();
        let rows = mph.run(batch).unwrap().into_rows().unwrap();
        assert_eq!((rows.outcome(0), rows.outcome(1), rows.outcome(2)), (Outcome::Value, Outcome::Error, Outcome::Value));
        assert_eq!((rows.values().is_null(1), rows.error(0), rows.first_failure()), (true, None, Some(1)));
        let error = rows.into_values().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Row);
        assert!(error.to_string().starts_with("one.mph, row 1: ") && error.to_string().contains("no time"), "{error}");
    }
}

#[test]
fn wrong_batches_are_refused_before_the_plugin_sees_them() {
    let (mph, shout) = (function("c", "mph"), function("c", "shout"));
    let refused = |columns: &[ArrayRef]| mph.batch_of(columns, 1).err().unwrap().to_string();
    assert_eq!(refused(&[integers([1])]), "mph takes 2 arguments, not 1");
    let narrow: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    assert_eq!(refused(&[integers([1]), narrow]), "mph: argument air_time is Int64, not Int32: cast the column");
    assert!(refused(&[integers([1]), integers([1, 2])]).starts_with("mph: "));
    let error = shout.run(mph.batch_of(&[integers([1]), integers([1])], 1).unwrap()).err().unwrap();
    assert_eq!(error.to_string(), "the batch was made for another function than shout");
    let keys = BatchContext { idempotency_keys: Some(vec![[0; 24]; 2]), ..Default::default() };
    let error = mph.run_with(mph.batch_of(&[integers([1]), integers([1])], 1).unwrap(), &keys).err().unwrap();
    assert_eq!(error.to_string(), "2 idempotency keys for 1 rows");
    assert_eq!(mph.start(&Options::default()).err().unwrap().kind(), ErrorKind::NotImplemented);
    assert_eq!(Plugin::open("/nowhere/libnone.so").err().unwrap().kind(), ErrorKind::Load);
}

#[test]
fn async_functions_keep_the_order() {
    for language in ASYNC {
        let later = function(language, "later");
        let runtime = later.start(&Options { allowed_in_flight: Some(50), ..Default::default() }).unwrap();
        let numbers = (14..514).collect::<Vec<i64>>();
        let batch = later.batch_of(&[integers(numbers.clone())], numbers.len()).unwrap();
        assert!(matches!(runtime.send(7, batch).unwrap(), Sent::Accepted));
        assert_eq!(runtime.stop(StopMode::Drain, PATIENCE).unwrap(), Stopped::Clean);
        let rows = drained(&runtime);
        let expected = (7u64..).zip(numbers).map(|(id, n)| (id, Some(n + 1), Outcome::Value));
        assert_eq!(rows, expected.collect::<Vec<_>>());
        assert!(matches!(runtime.drain(0).unwrap(), Drained::End));
        assert_eq!(runtime.statistics().unwrap().values, 500);
        assert_eq!(runtime.release().unwrap(), Stopped::Clean);
    }
}

#[test]
fn a_full_runtime_gives_the_batch_back() {
    let later = function("rs", "later");
    let runtime = later.start(&Options { max_rows: Some(1), ..Default::default() }).unwrap();
    let batch = || later.batch_of(&[integers([20, 21])], 2).unwrap();
    assert!(matches!(runtime.send(0, batch()).unwrap(), Sent::Accepted));
    let Sent::Full(again) = runtime.send(2, batch()).unwrap() else { panic!("two rows are held, where one may be") };
    while !runtime.wait(Condition::Room, Duration::ZERO).unwrap() {
        runtime.wait(Condition::Results, PATIENCE).unwrap();
        drained(&runtime);
    }
    assert!(matches!(runtime.send(2, again).unwrap(), Sent::Accepted));
    assert_eq!(runtime.send(1, batch()).err().unwrap().kind(), ErrorKind::InvalidArgument, "ids rise");
}

#[test]
fn timeouts_and_cancelled_rows_have_their_outcomes() {
    for language in ASYNC {
        let late = function(language, "late");
        let runtime = late.start(&Options::default()).unwrap();
        let _ = runtime.send(0, late.batch_of(&[integers([12, 13])], 2).unwrap()).unwrap();
        runtime.stop(StopMode::Drain, PATIENCE).unwrap();
        assert_eq!(drained(&runtime), [(0, Some(13), Outcome::Value), (1, None, Outcome::TimedOut)]);
        let runtime = late.start(&Options { timeout: Some(Duration::MAX), ..Default::default() }).unwrap();
        let _ = runtime.send(0, late.batch_of(&[integers([13])], 1).unwrap()).unwrap();
        runtime.cancel(0, 1).unwrap();
        assert!(runtime.wait(Condition::Results, PATIENCE).unwrap());
        assert_eq!(drained(&runtime), [(0, None, Outcome::Cancelled)]);
    }
}

/// One waits for room and one for results: a request of one does not replace that of the other.
#[test]
fn tasks_wait_for_different_conditions_at_once() {
    let late = function("rs", "late");
    let runtime = Arc::new(late.start(&Options { max_rows: Some(1), timeout: Some(Duration::MAX), ..Default::default() }).unwrap());
    let _ = runtime.send(0, late.batch_of(&[integers([13])], 1).unwrap()).unwrap();
    let pool = ThreadPool::new().unwrap();
    let (ended, ends) = mpsc::channel();
    for condition in [Condition::Room, Condition::Results, Condition::ResultsOrRoom, Condition::Results] {
        let (runtime, ended) = (runtime.clone(), ended.clone());
        pool.spawn(async move {
            runtime.ready(condition).await.unwrap();
            ended.send(condition).unwrap();
        })
        .unwrap();
    }
    runtime.cancel(0, 1).unwrap();
    for _ in 0..3 {
        assert_ne!(ends.recv_timeout(PATIENCE).unwrap(), Condition::Room, "the row is held until it is drained");
    }
    drained(&runtime);
    assert_eq!(ends.recv_timeout(PATIENCE).unwrap(), Condition::Room);
}

#[test]
fn many_tasks_share_a_runtime() {
    for language in ASYNC {
        let caller = Arc::new(Caller::start(&function(language, "later"), &Options { max_rows: Some(64), ..Default::default() }).unwrap());
        let pool = ThreadPool::new().unwrap();
        let tasks = (0..100i64).map(|task| {
            let caller = caller.clone();
            let call = async move {
                let numbers = (0..task % 40).map(|n| 1000 * task + n + 14).collect::<Vec<_>>();
                let batch = caller.function().batch_of(&[integers(numbers.clone())], numbers.len()).unwrap();
                let values = integers_of(&caller.values(batch).await.unwrap());
                assert_eq!(values, numbers.into_iter().map(|n| Some(n + 1)).collect::<Vec<_>>());
            };
            pool.spawn_with_handle(call).unwrap()
        });
        block_on(join_all(tasks.collect::<Vec<_>>()));
    }
}

#[test]
fn a_call_that_is_dropped_cancels_its_rows_and_only_those() {
    for language in ASYNC {
        let late = function(language, "late");
        let options = Options { timeout: Some(Duration::MAX), allowed_in_flight: Some(1), ..Default::default() };
        let caller = Caller::start(&late, &options).unwrap();
        let batch = |n| late.batch_of(&[integers([n])], 1).unwrap();
        block_on(async {
            let never = Box::pin(caller.call(batch(13)));
            let Either::Right(((), never)) = select(never, std::future::ready(())).await else { panic!("row 13 never ends") };
            drop(never);
            // The only place for a call is free again.
            assert_eq!(integers_of(&caller.values(batch(20)).await.unwrap()), [Some(21)]);
        });
    }
}

#[test]
fn a_failed_row_of_an_async_function_is_its_calls_alone() {
    for language in ASYNC {
        let later = function(language, "later");
        let caller = Caller::start(&later, &Options::default()).unwrap();
        let batch = |numbers: Vec<i64>| later.batch_of(&[integers(numbers.clone())], numbers.len()).unwrap();
        let error = block_on(caller.values(batch(vec![12, 13]))).unwrap_err();
        assert!(error.kind() == ErrorKind::Row && error.to_string().contains("thirteen"), "{error}");
        assert_eq!(integers_of(&block_on(caller.values_or_null(batch(vec![13, 14]))).unwrap()), [None, Some(15)]);
    }
}

#[test]
fn functions_run_in_worker_processes() {
    for name in ["mph", "later"] {
        let function = {
            let isolation = Isolation { worker: Worker::Process { memory_limit: None, cpu_limit: None }, workers: 2 };
            plugin("py").isolated(&isolation).unwrap().function(name).unwrap()
        }; // the function keeps its workers
        assert!(function.is_isolated());
        if name == "mph" {
            let batch = function.batch_of(&[integers([10]), integers([2])], 1).unwrap();
            let values = function.run(batch).unwrap().into_rows().unwrap().into_values().unwrap();
            assert_eq!(values.as_primitive::<Float64Type>().value(0), 300.0);
        } else {
            let caller = Caller::start(&function, &Options::default()).unwrap();
            drop(function);
            let batch = caller.function().batch_of(&[integers([20, 21])], 2).unwrap();
            assert_eq!(integers_of(&block_on(caller.values(batch)).unwrap()), [Some(21), Some(22)]);
        }
    }
}

#[test]
fn a_runtime_reports_what_belongs_to_no_row() {
    let stubborn = function("stubborn", "stubborn");
    let runtime =
        stubborn.start(&Options { timeout: Some(Duration::from_millis(10)), max_attempts: Some(1), ..Default::default() }).unwrap();
    let (report, reports) = mpsc::channel();
    runtime.set_log(|_| panic!("the first log is replaced")).unwrap();
    let is_dropped = Arc::new(AtomicBool::new(false));
    let guard = OnDrop(is_dropped.clone());
    runtime
        .set_log(move |text| {
            let _ = &guard;
            report.send(text.to_string()).unwrap();
        })
        .unwrap();
    let _ = runtime.send(0, stubborn.batch_of(&[integers([1])], 1).unwrap()).unwrap();
    let text = reports.recv_timeout(PATIENCE).unwrap();
    assert!(text.contains("stubborn"), "{text}");
    drop(runtime);
    assert!(is_dropped.load(Ordering::Acquire));
}

struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
