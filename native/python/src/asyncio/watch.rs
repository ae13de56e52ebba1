//! Asks the event loop, while rows wait or run, whether it goes on. With its answer the loop [gives way](super::giving_way)
//! to threads that wait for the GIL. A loop that does not answer is blocked (R9): something in it runs and never awaits.
//!
//! The timer's thread asks through an eventfd, which takes no GIL: while the loop is busy, three times in the time that Python
//! lets a thread wait for the GIL (`sys.getswitchinterval()`), but every [`BUSY`] at most; else every [`IDLE`]. Each question
//! costs all threads together some 60 microseconds. Without rows there are no ticks, so nothing wakes up. Only a report of a
//! blocked loop takes the GIL, in a thread of its own, so that the timer's thread keeps deadlines meanwhile.

use super::giving_way::{switch_interval, GivingWay};
use crate::eventfd::EventFd;
use crate::interpreter::Interpreter;
use crate::modules::EXECUTOR;
use crate::object;
use crate::traceback::raised_text;
use arroyo_udf_plugin::runtime::Runtime;
use arroyo_udf_plugin::sync::Unpoisoned;
use arroyo_udf_plugin::threads;
use arroyo_udf_plugin::timer::{now, Alarm, Ticking};
use pyo3_ffi::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, Weak};

/// A loop that has not answered for this long is blocked, in nanoseconds.
const PATIENCE: u64 = 500_000_000;
/// The least time between two questions to a busy loop, and the time between those to one that sleeps at times, in nanoseconds.
const BUSY: u64 = 1_000_000;
const IDLE: u64 = 20_000_000;

pub struct Watch {
    /// For the loop to watch, and to answer with [`Watch::answer`].
    eventfd: EventFd,
    interpreter: Arc<Interpreter>,
    me: Weak<Watch>,
    /// Those that the loop executes.
    runtimes: Mutex<Vec<Weak<Runtime>>>,
    /// The timer will call.
    ticking: AtomicBool,
    alarm: Mutex<Alarm>,
    /// The time until the next tick.
    pace: AtomicU64,
    giving_way: GivingWay,
    asked: AtomicU64,
    asked_at: AtomicU64,
    answered: AtomicU64,
    /// This blockage has been reported.
    reported: AtomicBool,
}

impl Watch {
    /// Of the loop of an interpreter. None: errno says why the system refuses it.
    pub fn new(interpreter: Arc<Interpreter>) -> Option<Arc<Watch>> {
        let eventfd = EventFd::new()?;
        Some(Arc::new_cyclic(|me| Watch {
            eventfd,
            interpreter,
            me: me.clone(),
            runtimes: Mutex::new(Vec::new()),
            ticking: AtomicBool::new(false),
            alarm: Mutex::new(Alarm::new()),
            pace: AtomicU64::new(IDLE),
            giving_way: GivingWay::default(),
            asked: AtomicU64::new(0),
            asked_at: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            reported: AtomicBool::new(false),
        }))
    }

    pub fn descriptor(&self) -> i32 {
        self.eventfd.descriptor()
    }

    /// The loop runs. It gives way, once for each question.
    ///
    /// # Safety
    /// The GIL is held, on the loop's thread.
    pub unsafe fn answer(&self) {
        self.eventfd.clear(); // first: the next question comes as soon as this one is answered, and wakes the loop again
        let asked = self.asked.load(SeqCst);
        if self.answered.swap(asked, SeqCst) == asked {
            return; // the descriptor stays readable until the loop gets to its answer, and so makes it answer twice
        }
        // SAFETY: passed on.
        let pace = unsafe {
            if self.giving_way.turn() {
                (switch_interval() / 3).clamp(BUSY, IDLE)
            } else {
                IDLE
            }
        };
        self.pace.store(pace, SeqCst);
    }

    /// The loop executes this runtime from now on.
    pub fn add(&self, runtime: &Arc<Runtime>) {
        let mut runtimes = self.runtimes.lock().unpoisoned();
        runtimes.retain(|runtime| runtime.strong_count() > 0);
        runtimes.push(Arc::downgrade(runtime));
    }

    /// A runtime has work for the loop. Called with no lock held, from any thread.
    pub fn begin(&self) {
        if !self.ticking.swap(true, SeqCst) {
            self.tick_at(now() + self.pace.load(SeqCst));
        }
    }

    /// The runtimes with rows to run.
    fn at_work(&self) -> Vec<Arc<Runtime>> {
        let runtimes = self.runtimes.lock().unpoisoned();
        let is_at_work = |runtime: &Arc<Runtime>| {
            let counts = runtime.counts();
            counts.queued + counts.running > 0
        };
        runtimes.iter().filter_map(Weak::upgrade).filter(is_at_work).collect()
    }

    fn is_answered(&self) -> bool {
        self.asked.load(SeqCst) == self.answered.load(SeqCst)
    }

    fn tick_at(&self, moment: u64) {
        self.alarm.lock().unpoisoned().set(moment, || self.me.clone());
    }

    /// Reports where the loop is blocked, unless it has gone on meanwhile. An interpreter that ends needs no report.
    fn report(&self) {
        let text = self.interpreter.enter(|| {
            if self.is_answered() {
                return None;
            }
            // SAFETY: the GIL is held.
            unsafe {
                match object::call(EXECUTOR, c"blocked", &[]) {
                    Some(text) => (text.ptr() != Py_None()).then(|| object::text(text.ptr())),
                    None => Some(raised_text()),
                }
            }
        });
        if let Ok(Some(text)) = text {
            self.at_work().iter().for_each(|runtime| runtime.log().warn(&format!("{}: {text}", runtime.signature().name)));
        }
    }
}

impl Ticking for Watch {
    fn tick(&self, now: u64) {
        self.alarm.lock().unpoisoned().withdraw();
        let at_work = self.at_work();
        if !self.is_answered() {
            let late_at = self.asked_at.load(SeqCst) + PATIENCE;
            if now < late_at {
                return self.tick_at(late_at.min(now + self.pace.load(SeqCst)));
            }
            if !self.reported.swap(true, SeqCst) {
                for runtime in at_work {
                    runtime.count_blocked();
                }
                if let Some(watch) = self.me.upgrade() {
                    drop(threads::spawn("udf-watch", threads::AUTHORS_STACK, move || watch.report()));
                    // without a thread there is no report
                }
            }
            return self.tick_at(now + PATIENCE);
        }
        self.reported.store(false, SeqCst);
        if at_work.is_empty() {
            self.ticking.store(false, SeqCst);
            // `begin` requested no tick for rows that came before the line above.
            if self.at_work().is_empty() || self.ticking.swap(true, SeqCst) {
                return;
            }
        }
        self.asked_at.store(now, SeqCst);
        self.asked.fetch_add(1, SeqCst);
        self.eventfd.wake();
        self.tick_at(now + self.pace.load(SeqCst));
    }
}
