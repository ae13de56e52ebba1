//! The place of a worker: there is one worker in it at a time, and the next one after its death.
//!
//! A worker that ends before it is ready is followed by another, a few times: something may have killed it that has nothing
//! to do with it. What says itself why it cannot start is believed at once.

use super::message::Start;
use super::worker::{Further, Spec, Stopped, Unready, Worker, TICK};
use crate::sync::Unpoisoned;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The pause before a worker starts after one that answered nothing, doubled with each further one.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How many workers a call starts, one after another, that all end before they do anything for it.
pub const TRIES: u32 = 5;

pub struct Seat {
    /// Whether a thread uses the place.
    used: Mutex<bool>,
    free: Condvar,
    waiting: AtomicUsize,
    place: Mutex<Place>,
}

/// A place while one thread uses it.
pub struct Seated<'a> {
    place: MutexGuard<'a, Place>,
    /// Dropped last.
    _use: Use<'a>,
}

struct Use<'a>(&'a Seat);

pub struct Place {
    spec: Arc<Spec>,
    worker: Option<Worker>,
    /// How many workers in a row have ended without an answer; and when the next one may start.
    failures: u32,
    not_before: Option<Instant>,
}

/// Why there is no worker.
pub enum NoWorker {
    Because(String),
    /// The host waits no longer.
    Stopped(Stopped),
}

impl Seat {
    pub fn new(spec: Arc<Spec>) -> Seat {
        let place = Mutex::new(Place { spec, worker: None, failures: 0, not_before: None });
        Seat { used: Mutex::new(false), free: Condvar::new(), waiting: AtomicUsize::new(0), place }
    }

    /// None: another thread uses it.
    pub fn try_take(&self) -> Option<Seated<'_>> {
        let was_used = std::mem::replace(&mut *self.used.lock().unpoisoned(), true);
        (!was_used).then(|| self.seated())
    }

    /// Waits until no other thread uses it.
    pub fn take(&self) -> Seated<'_> {
        loop {
            if let Ok(seated) = self.take_unless(|| None) {
                return seated;
            }
        }
    }

    /// As [`Seat::take`], until the host waits no longer.
    pub fn take_unless(&self, stopped: impl Fn() -> Option<Stopped>) -> Result<Seated<'_>, Stopped> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let taken = loop {
            let used = self.used.lock().unpoisoned();
            let (mut used, _) = self.free.wait_timeout_while(used, TICK, |used| *used).unpoisoned();
            if !std::mem::replace(&mut *used, true) {
                drop(used);
                break Ok(self.seated());
            }
            drop(used); // the host may run a handler of a signal, which uses this plugin
            if let Some(why) = stopped() {
                break Err(why);
            }
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        taken
    }

    /// This thread uses the place.
    fn seated(&self) -> Seated<'_> {
        let _use = Use(self);
        Seated { place: self.place.lock().unpoisoned(), _use }
    }

    /// How many threads wait for it.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

impl Drop for Use<'_> {
    fn drop(&mut self) {
        *self.0.used.lock().unpoisoned() = false;
        self.0.free.notify_one();
    }
}

impl Deref for Seated<'_> {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.place
    }
}

impl DerefMut for Seated<'_> {
    fn deref_mut(&mut self) -> &mut Place {
        &mut self.place
    }
}

impl Place {
    /// Gives up the worker. The plugin is closed, so no other starts.
    pub fn close(&mut self) -> Option<Worker> {
        self.worker.take()
    }

    pub fn is_closed(&self) -> bool {
        self.spec.is_closed()
    }

    /// Waits until a worker of these places answers or ends, or for some time, at most until then. Some: the host waits no
    /// longer.
    pub fn wait<'a>(places: impl Iterator<Item = &'a Place>, until: Option<Instant>) -> Option<Stopped> {
        let places: Vec<&Place> = places.collect();
        let spec = Arc::clone(&places.first()?.spec);
        // The host is not asked if there is something to do, because that may take the GIL.
        let something = Worker::wait_for_any(places.into_iter().filter_map(|place| place.worker.as_ref()), until);
        if something {
            None
        } else {
            spec.stopped()
        }
    }

    pub fn worker(&mut self) -> Option<&mut Worker> {
        self.worker.as_mut()
    }

    /// Makes sure that there is a worker, which may not be ready yet.
    pub fn occupy(&mut self) -> Result<(), NoWorker> {
        // One that ended between two calls: no row is lost. One that ended before it was ready is a try, which `ready` counts.
        if self.worker.as_ref().is_some_and(|worker| worker.is_ready() && !worker.lives()) {
            self.clear();
        }
        if self.is_closed() {
            return Err(NoWorker::Stopped(Stopped::Closed));
        }
        if self.worker.is_none() {
            if let Some(at) = self.not_before.take() {
                self.pause(at)?;
            }
            let started = Worker::start(&self.spec);
            if started.is_err() {
                self.count_failure();
            }
            self.worker = Some(started.map_err(NoWorker::Because)?);
        }
        Ok(())
    }

    fn pause(&mut self, until: Instant) -> Result<(), NoWorker> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            if let Some(why) = self.spec.stopped() {
                self.not_before = Some(until);
                return Err(NoWorker::Stopped(why));
            }
            std::thread::sleep(left.min(PAUSE)); // what the pause is; between two looks at the host
        }
    }

    /// The worker, ready for work.
    pub fn ready(&mut self) -> Result<&mut Worker, NoWorker> {
        let mut tries = 0;
        while let Err(unready) = self.occupy().and_then(|()| self.wait_for_it())? {
            let how = self.clear();
            tries += 1;
            match unready {
                Unready::Ended(_) if tries < TRIES => {}
                Unready::Ended(why) | Unready::Refused(why) => return Err(NoWorker::Because(format!("{how}: {why}{}", self.limited()))),
            }
        }
        self.worker.as_mut().ok_or_else(|| NoWorker::Because("there is none".into()))
    }

    /// What may be the reason why no worker starts.
    fn limited(&self) -> String {
        match self.spec.limits().memory {
            0 => String::new(),
            bytes => format!("; its memory_limit is {bytes} bytes"),
        }
    }

    fn wait_for_it(&mut self) -> Result<Result<(), Unready>, NoWorker> {
        let Some(worker) = &mut self.worker else { return Ok(Ok(())) };
        worker.ready(&self.spec).map_err(NoWorker::Stopped)
    }

    /// A lane for a started function, in a worker that is ready.
    pub fn further(&mut self, start: &Start) -> Result<Further, NoWorker> {
        let mut tries = 0;
        loop {
            let error = match self.ready()?.add_lane(start) {
                Ok(further) => return Ok(further),
                Err(error) => error,
            };
            return Err(NoWorker::Because(match error.kind() {
                // It has ended since it was ready.
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                    let how = self.clear();
                    tries += 1;
                    if tries < TRIES {
                        continue;
                    }
                    how
                }
                io::ErrorKind::WouldBlock => "it takes no further functions: is it stopped?".into(),
                _ => format!("no shared memory for its calls: {error}"),
            }));
        }
    }

    /// How the worker of a lane ended, which has ended.
    pub fn obituary(&mut self, further: &Further) -> String {
        if self.worker.as_ref().is_some_and(|worker| worker.has(further)) {
            return self.clear();
        }
        further.life.obituary().unwrap_or("the worker process has ended").to_string()
    }

    /// Removes the worker, and says how it ended.
    pub fn clear(&mut self) -> String {
        let Some(worker) = self.worker.take() else { return "there is no worker process".to_string() };
        if !worker.life().has_answered() {
            self.count_failure();
        } else {
            (self.failures, self.not_before) = (0, None);
        }
        worker.bury()
    }

    fn count_failure(&mut self) {
        let pause = PAUSE.saturating_mul(1 << self.failures.min(10)).min(LONGEST_PAUSE);
        self.failures += 1;
        self.not_before = Some(Instant::now() + pause);
    }
}
