//! A home: a subinterpreter, and the thread that made it, runs tasks in it and ends it.
//!
//! An interpreter that has ended leaves megabytes behind (CPython keeps the memory that its objects came from as long as
//! one of them is left, and some always are). So homes are kept for the next plugin: memory grows with the most that are in
//! use at once, and not with time.

use super::creation;
use super::halting::halt;
use crate::function::PythonFunction;
use crate::interpreter::Interpreter;
use crate::modules::SUBINTERPRETER;
use crate::object::{self, exception_text};
use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::panics::catch_own;
use arroyo_udf_plugin::sync::Unpoisoned;
use arroyo_udf_plugin::threads::{self, AUTHORS_STACK};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// The functions of the plugin that is at home. They stay in the thread, because they must not be dropped elsewhere.
pub type Functions = Vec<Arc<PythonFunction>>;
type Task = Box<dyn FnOnce(&Arc<Interpreter>, &mut Functions) + Send>;

pub struct Home {
    interpreter: Arc<Interpreter>,
    tasks: Sender<Task>,
    ended: Mutex<Receiver<()>>,
    /// Its process. In one that was forked from it there is neither the interpreter nor the thread.
    process: u32,
}

/// Those that wait for a plugin.
static IDLE: Mutex<Vec<Home>> = Mutex::new(Vec::new());

/// How long the end of a plugin's runtimes may take, and then that of its workers.
const END_TIME: Duration = Duration::from_secs(2);
/// How long threads may take to leave a plugin that ends.
const LEAVE_TIME: Duration = Duration::from_secs(1);
/// The process ends: nothing is waited for after this.
static LAST: OnceLock<Instant> = OnceLock::new();

/// Until when the end of a plugin's runtimes, or of its workers, is waited for.
pub fn end_until() -> Instant {
    let until = Instant::now() + END_TIME;
    LAST.get().map_or(until, |last| until.min(*last))
}

pub fn time_until(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

/// How long threads may take now to leave a plugin that ends.
pub fn leave_time() -> Duration {
    time_until(end_until()).min(LEAVE_TIME)
}

/// Whether the process ends: nothing starts any more.
pub fn is_exit() -> bool {
    LAST.get().is_some()
}

/// The process ends: all plugins and interpreters together have so long from now on.
pub fn begin_exit(patience: Duration) {
    LAST.get_or_init(|| Instant::now() + patience);
}

impl Home {
    /// An idle one, or a new one.
    pub fn find() -> Result<Home, Failure> {
        loop {
            match IDLE.lock().unpoisoned().pop() {
                Some(home) if home.is_here() => return Ok(home),
                Some(home) => std::mem::forget(home),
                None => break,
            }
        }
        Home::new()
    }

    fn new() -> Result<Home, Failure> {
        let (made, answer) = channel();
        let (tasks, waiting) = channel::<Task>();
        let (end, ended) = channel();
        let live = move || {
            let created = catch_own(creation::create).unwrap_or_else(|text| Err(Failure::internal(text)));
            let interpreter = created.as_ref().ok().map(Arc::clone);
            drop(made.send(created));
            let Some(interpreter) = interpreter else { return };
            let mut functions = Functions::new();
            while let Ok(task) = waiting.recv() {
                drop(catch_own(|| task(&interpreter, &mut functions))); // who waits for its answer finds the channel closed
            }
            finish(&interpreter, functions);
            let _ = end.send(());
        };
        let spawned = threads::spawn("udf-python", AUTHORS_STACK, live);
        spawned.map_err(|error| Failure::for_now(abi::ENVIRONMENT, format!("no thread for a subinterpreter: {error}")))?;
        let interpreter = answer.recv().unwrap_or_else(|_| Err(Failure::internal("the thread of a subinterpreter has ended")))?;
        Ok(Home { interpreter, tasks, ended: Mutex::new(ended), process: std::process::id() })
    }

    /// Whether this is not a process that was forked from its own.
    pub fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    pub fn interpreter(&self) -> &Arc<Interpreter> {
        &self.interpreter
    }

    /// Runs a task after those that it has, without the GIL.
    pub fn run(&self, task: impl FnOnce(&Arc<Interpreter>, &mut Functions) + Send + 'static) {
        drop(self.tasks.send(Box::new(task))); // it fails only without a thread, and then drops the task
    }

    /// Keeps it for the next plugin. Nothing of the former one is left in it.
    pub fn keep(self) {
        IDLE.lock().unpoisoned().push(self);
    }

    /// Ends it after the tasks that it has. A home in which something does not end stays. None: it is not of this process.
    pub fn end(self) -> Option<Ending> {
        if !self.is_here() {
            std::mem::forget(self);
            return None;
        }
        drop(self.tasks);
        Some(Ending(self.ended.into_inner().unpoisoned()))
    }
}

/// The end of a home, which its thread brings about.
pub struct Ending(Receiver<()>);

impl Ending {
    /// Waits for it until then.
    pub fn wait(self, until: Instant) {
        let _ = self.0.recv_timeout(time_until(until));
    }
}

/// Ends all interpreters, before the main one ends: those that wait for a plugin, and by force those that did not end with
/// theirs.
pub fn end_all() {
    creation::settle(end_until()); // a start that asks for the main interpreter's GIL later would be unwound
    let idle = std::mem::take(&mut *IDLE.lock().unpoisoned());
    let ending: Vec<_> = idle.into_iter().filter_map(Home::end).collect();
    ending.into_iter().for_each(|ending| ending.wait(end_until()));
    halt(Interpreter::left());
}

/// The end, in the home's thread.
fn finish(interpreter: &Arc<Interpreter>, functions: Functions) {
    let mut functions = Some(functions);
    // SAFETY: the GIL is held inside. The functions go where they came from.
    let left = interpreter.enter(|| unsafe {
        drop(functions.take());
        object::call(SUBINTERPRETER, c"leave", &[]).map(drop).ok_or_else(|| exception_text())
    });
    std::mem::forget(functions);
    if let (Ok(Ok(())), true) = (left, interpreter.close(leave_time())) {
        let _alone = creation::one_at_a_time();
        drop(interpreter.end(leave_time())); // what does not end stays
    }
}
