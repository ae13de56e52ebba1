//! The commands.

use crate::interface::{open, Async, Sync};
use crate::rows::{lent, texts, Plan};
use crate::Task;
use arrow::array::{Array, UInt64Array};
use arroyo_udf_common::async_udf::{DrainResult, SendableFfiAsyncUdfHandle};
use arroyo_udf_common::{FfiArraySchema, FfiArrays, RunResult};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// How long a test waits for results that should come at once.
const SILENCE: Duration = Duration::from_secs(20);

pub fn perform(command: &str, task: &Task) {
    match command {
        "call" => call(task),
        "stream" => everywhere(task, stream),
        "accepted" => accepted(task),
        "unpolled" => unpolled(task),
        "abandon" => abandon(task),
        "bench" => bench(task),
        "bench_call" => bench_call(task),
        other => panic!("no command {other}"),
    }
}

fn call(task: &Task) {
    let (rows, batch) = (task.number("rows", 10), task.number("batch", 1 << 20));
    let library: &Sync = open(&task.libraries[0]);
    std::thread::scope(|scope| {
        for thread in 0..task.number("threads", 1) {
            scope.spawn(move || {
                let plan = Plan::of(task);
                let mut first = 0;
                while first < rows {
                    let length = batch.min(rows - first);
                    let arrays = FfiArrays::from_vec(plan.arguments(first, length as usize));
                    // SAFETY: the interface, as its crates have it.
                    match unsafe { library.__run(arrays) } {
                        RunResult::Ok(FfiArraySchema(array, schema)) => {
                            // SAFETY: the library gave a valid array away.
                            let data = unsafe { arrow::ffi::from_ffi(array, &schema) }.expect("an array");
                            assert_eq!(data.len() as u64, length);
                            let lines: Vec<String> =
                                texts(data).iter().enumerate().map(|(i, text)| format!("{} {text}", first + i as u64)).collect();
                            if thread == 0 {
                                println!("{}", lines.join("\n"));
                            }
                        }
                        RunResult::Err => println!("batch failed"),
                    }
                    first += length;
                }
            });
        }
    });
    println!("lent {}", lent());
}

/// A started function. As in the engine, one task makes all calls of a handle.
struct Runtime {
    plan: Plan,
    library: &'static Async,
    handle: SendableFfiAsyncUdfHandle,
    received: Vec<(u64, String)>,
    refused: u64,
    dead: bool,
}

impl Runtime {
    fn start(task: &Task, path: &str) -> Runtime {
        let library: &Async = open(path);
        let ordered = task.number("ordered", 1) == 1;
        let (timeout, cap) = (task.number("timeout_ms", 60_000) * 1_000, task.number("cap", 1_000) as u32);
        // SAFETY: the interface, as its crates have it.
        let handle = unsafe { library.__start(ordered, timeout, cap) };
        Runtime { plan: Plan::of(task), library, handle, received: Vec::new(), refused: 0, dead: false }
    }

    fn send(&self, row: u64) -> async_ffi::FfiFuture<bool> {
        let arrays = FfiArrays::from_vec(self.plan.arguments(row, 1));
        let id = if self.plan.ids_fall { u64::MAX - row } else { row };
        // SAFETY: as above.
        unsafe { self.library.__send(self.handle, id, arrays) }
    }

    /// Whether something came.
    fn drain(&mut self, keep: bool) -> usize {
        // SAFETY: as above.
        match unsafe { self.library.__drain_results(self.handle) } {
            DrainResult::Data(arrays) => {
                let mut columns = arrays.into_vec().into_iter();
                let ids = UInt64Array::from(columns.next().expect("ids"));
                let values = columns.next().expect("values");
                assert!(columns.next().is_none() && ids.len() == values.len() && ids.null_count() == 0);
                let count = ids.len();
                if keep {
                    self.received.extend(ids.values().iter().copied().zip(texts(values)));
                }
                count
            }
            DrainResult::None => 0,
            DrainResult::Error => {
                self.dead = true;
                0
            }
        }
    }

    fn stop(self) {
        // SAFETY: as above; no future is alive.
        unsafe { self.library.__stop_runtime(self.handle) };
    }
}

fn everywhere(task: &Task, work: fn(&Task, &str)) {
    std::thread::scope(|scope| {
        for path in &task.libraries {
            for _ in 0..task.number("handles", 1) {
                scope.spawn(move || work(task, path));
            }
        }
    });
    println!("lent {}", lent());
}

fn tokio(task: &Task) -> tokio::runtime::Runtime {
    let mut builder = match task.number("workers", 0) {
        0 => tokio::runtime::Builder::new_current_thread(),
        workers => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(workers as usize);
            builder
        }
    };
    builder.enable_all().build().expect("tokio")
}

fn stream(task: &Task, path: &str) {
    let rows = task.number("rows", 10);
    let mut runtime = Runtime::start(task, path);
    tokio(task).block_on(async {
        for row in 0..rows {
            if !runtime.send(row).await {
                runtime.refused += 1;
            }
            if task.text("drain", "each") == "each" {
                runtime.drain(true);
            }
        }
        let (mut since, mut count) = (Instant::now(), runtime.received.len());
        while runtime.received.len() < rows as usize && !runtime.dead && since.elapsed() < SILENCE {
            runtime.drain(true);
            tokio::time::sleep(Duration::from_micros(100)).await;
            if runtime.received.len() != count {
                (since, count) = (Instant::now(), runtime.received.len());
            }
        }
        if task.text("after", "") == "send" {
            println!("later send {}", runtime.send(rows).await);
        }
    });
    let lines: Vec<String> = runtime.received.iter().map(|(id, text)| format!("{id} {text}")).collect();
    let state = if runtime.dead { "dead" } else { "alive" };
    println!("{}\n{state}, {} sends refused", lines.join("\n"), runtime.refused);
    runtime.stop();
}

/// Sends with a waker that does nothing, until a send is pending. The first row may have to wait for the library.
fn accepted(task: &Task) {
    let runtime = Runtime::start(task, &task.libraries[0]);
    let mut count = u64::from(tokio(task).block_on(runtime.send(0)));
    for row in 1..task.number("rows", 10) {
        let mut future = pin!(runtime.send(row));
        match future.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop())) {
            Poll::Ready(true) => count += 1,
            Poll::Ready(false) => break,
            Poll::Pending => {
                println!("pending");
                break;
            }
        }
    }
    println!("accepted {count}");
    runtime.stop();
}

fn unpolled(task: &Task) {
    let runtime = Runtime::start(task, &task.libraries[0]);
    (0..task.number("rows", 10)).for_each(|row| drop(runtime.send(row)));
    println!("lent {}", lent());
    runtime.stop();
}

fn abandon(task: &Task) {
    let mut runtime = Runtime::start(task, &task.libraries[0]);
    let tokio = tokio(task);
    tokio.block_on(async {
        for row in 0..task.number("rows", 10) {
            assert!(runtime.send(row).await);
        }
        // The first row ends, so the others run.
        while runtime.received.is_empty() && !runtime.dead {
            runtime.drain(true);
            tokio::time::sleep(Duration::from_micros(100)).await;
        }
    });
    println!("busy");
    match task.text("how", "stop") {
        "stop" => runtime.stop(),
        _ => std::process::exit(0),
    }
    let since = Instant::now();
    while lent() > 0 && since.elapsed() < SILENCE {
        std::thread::yield_now();
    }
    println!("lent {}", lent());
}

fn cpu() -> Duration {
    // SAFETY: the struct is written before it is read.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1_000);
        time(usage.ru_utime) + time(usage.ru_stime)
    }
}

/// Sends `rows` rows and drains after each, as fast as it goes; a first round is not counted.
fn bench(task: &Task) {
    let rows = task.number("rows", 100_000);
    let mut runtime = Runtime::start(task, &task.libraries[0]);
    tokio(task).block_on(async {
        let mut sent = 0;
        for round in [rows / 10 + 1, rows] {
            let (wall, cpu_before) = (Instant::now(), cpu());
            let mut received = 0;
            for _ in 0..round {
                assert!(runtime.send(sent).await);
                sent += 1;
                received += runtime.drain(false);
            }
            while received < round as usize {
                assert!(!runtime.dead);
                received += runtime.drain(false);
                tokio::task::yield_now().await;
            }
            if round == rows {
                let of_a_row = |time: Duration| time.as_secs_f64() * 1e9 / rows as f64;
                println!("cpu_ns {:.0}\nwall_ns {:.0}", of_a_row(cpu() - cpu_before), of_a_row(wall.elapsed()));
            }
        }
    });
    runtime.stop();
}

/// A sync function over `rows` rows in batches.
fn bench_call(task: &Task) {
    let (rows, batch) = (task.number("rows", 1_000_000), task.number("batch", 1_024));
    let library: &Sync = open(&task.libraries[0]);
    let data = Plan::of(task).arguments(0, batch as usize);
    let (wall, cpu_before) = (Instant::now(), cpu());
    for _ in 0..rows / batch {
        // SAFETY: the interface, as its crates have it.
        match unsafe { library.__run(FfiArrays::from_vec(data.clone())) } {
            // SAFETY: the library gave a valid array away.
            RunResult::Ok(FfiArraySchema(array, schema)) => drop(unsafe { arrow::ffi::from_ffi(array, &schema) }.expect("an array")),
            RunResult::Err => panic!("failed"),
        }
    }
    let of_a_row = |time: Duration| time.as_secs_f64() * 1e9 / rows as f64;
    println!("cpu_ns {:.1}\nwall_ns {:.1}", of_a_row(cpu() - cpu_before), of_a_row(wall.elapsed()));
}
