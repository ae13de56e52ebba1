//! Started functions, by the number that is in the tokens of their calls.
//!
//! Guarantees: the number of a released runtime, or one of another process, finds nothing. A number comes again only after
//! a million starts.

use crate::calls::{OpenCalls, RUNTIME_BITS};
use arroyo_udf_plugin::forks;
use arroyo_udf_plugin::runtime::Runtime;
use arroyo_udf_plugin::sync::Unpoisoned;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, RwLock, Weak};

thread_local! {
    /// The number of the function whose thread this is; 0: of none.
    static MINE: Cell<u32> = const { Cell::new(0) };
}

/// A started function.
pub struct Started {
    pub number: u32,
    pub runtime: Weak<Runtime>,
    calls: Mutex<OpenCalls>,
}

impl Started {
    pub fn calls(&self) -> MutexGuard<'_, OpenCalls> {
        self.calls.lock().unpoisoned()
    }

    /// The thread that calls this becomes the function's own.
    pub fn take_thread(&self) {
        MINE.set(self.number);
    }

    /// Whether the calling thread is the function's own, which tells the host of results once a turn.
    pub fn is_mine(&self) -> bool {
        MINE.get() == self.number
    }
}

struct Numbers {
    known: HashMap<u32, Arc<Started>>,
    last: u32,
}

static NUMBERS: RwLock<Option<Numbers>> = RwLock::new(None);

/// Gives a runtime a number.
pub fn enter(runtime: &Arc<Runtime>) -> Arc<Started> {
    let mut numbers = NUMBERS.write().unpoisoned();
    let numbers = numbers.get_or_insert_with(|| Numbers { known: HashMap::new(), last: 0 });
    let next = |number: u32| (number + 1) % (1 << RUNTIME_BITS);
    let mut number = next(numbers.last);
    while number == 0 || numbers.known.contains_key(&number) {
        number = next(number);
    }
    numbers.last = number;
    let started = Arc::new(Started { number, runtime: Arc::downgrade(runtime), calls: Mutex::default() });
    numbers.known.insert(number, Arc::clone(&started));
    started
}

/// The runtime is released: its tokens are stale from now on.
pub fn leave(number: u32) {
    let mut numbers = NUMBERS.write().unpoisoned();
    let left = numbers.as_mut().and_then(|numbers| numbers.known.remove(&number));
    drop(numbers);
    drop(left);
}

/// The started function of this number. None: it has been released, or is another process's.
pub fn find(number: u32) -> Option<Arc<Started>> {
    // Checked before any lock is taken: after a fork a lock may never be free again.
    if forks::was_forked() {
        return None;
    }
    NUMBERS.read().unpoisoned().as_ref()?.known.get(&number).cloned()
}
