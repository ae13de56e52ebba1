//! A home: a subinterpreter, and the thread that made it, runs tasks in it and ends it.
//!
//! An interpreter that has ended leaves megabytes behind (CPython keeps the memory that its objects came from as long as
//! one of them is left, and some always are). So homes are kept for the next plugin: memory grows with the most that are in
//! use at once, and not with time.

use super::creation;
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
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The functions of the plugin that is at home. They stay in the thread, because they must not be dropped elsewhere.
pub type Functions = Vec<Arc<PythonFunction>>;
type Task = Box<dyn FnOnce(&Arc<Interpreter>, &mut Functions) + Send>;

pub struct Home {
    interpreter: Arc<Interpreter>,
    tasks: Sender<Task>,
    ended: Mutex<Receiver<()>>,
}

/// Those that wait for a plugin.
static IDLE: Mutex<Vec<Home>> = Mutex::new(Vec::new());

/// How long threads may take to leave an interpreter that ends.
const LEAVE_TIME: Duration = Duration::from_secs(1);

impl Home {
    /// An idle one, or a new one.
    pub fn find() -> Result<Home, Failure> {
        let idle = IDLE.lock().unpoisoned().pop();
        idle.map_or_else(Home::new, Ok)
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
        Ok(Home { interpreter, tasks, ended: Mutex::new(ended) })
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

    /// Ends it after the tasks that it has, and waits for that until then. A home in which something does not end stays.
    pub fn end(self, until: Instant) {
        drop(self.tasks);
        let ended = self.ended.into_inner().unpoisoned();
        let _ = ended.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

/// Ends those that wait for a plugin: before the main interpreter ends.
pub fn end_idle(patience: Duration) {
    let idle = std::mem::take(&mut *IDLE.lock().unpoisoned());
    let until = Instant::now() + patience;
    idle.into_iter().for_each(|home| home.end(until));
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
    if let Ok(Ok(())) = left {
        drop(interpreter.end(LEAVE_TIME)); // what does not end stays
    }
}
