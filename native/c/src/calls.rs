//! Tokens: which calls of an author's function have not been completed, and of which runtime.
//!
//! A token is a number: the runtime's in its top 20 bits, below it one that no other call of this library has had. So it
//! can be kept where a library has room for 64 bits, and one that is stale is recognised, not followed.

use crate::executor::Executing;
use arroyo_udf_plugin::arrow::Batch;
use arroyo_udf_plugin::handles;
use arroyo_udf_plugin::machine::Token;
use arroyo_udf_plugin::runtime::Attempt;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

const RUNTIME_BITS: u32 = 20;
const CALL_BITS: u32 = 64 - RUNTIME_BITS;

/// A call that has not been completed.
pub struct Open {
    pub attempt: Token,
    pub row: u64,
    /// Its texts point into it.
    _batch: Arc<Batch>,
    pub cancelled: bool,
}

/// The open calls of one runtime.
#[derive(Default)]
pub struct Calls {
    by_token: HashMap<u64, Open>,
    /// By [`Token::index`]: the token of the latest call.
    tokens: Vec<u64>,
}

impl Calls {
    /// A token for an attempt of runtime number `runtime`.
    pub fn open(&mut self, runtime: u32, attempt: &Attempt) -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let call = LAST.fetch_add(1, Ordering::Relaxed) & ((1 << CALL_BITS) - 1);
        let token = u64::from(runtime) << CALL_BITS | call;
        let index = attempt.token.index();
        if index >= self.tokens.len() {
            self.tokens.resize(index + 1, 0);
        }
        self.tokens[index] = token;
        let open = Open { attempt: attempt.token, row: attempt.id, _batch: Arc::clone(&attempt.batch), cancelled: false };
        self.by_token.insert(token, open);
        token
    }

    pub fn take(&mut self, token: u64) -> Option<Open> {
        self.by_token.remove(&token)
    }

    /// The token of an attempt that is to be cancelled. None: it has been completed.
    pub fn cancel(&mut self, attempt: Token) -> Option<u64> {
        let token = *self.tokens.get(attempt.index())?;
        let open = self.by_token.get_mut(&token).filter(|open| open.attempt == attempt)?;
        open.cancelled = true;
        Some(token)
    }

    pub fn is_empty(&self) -> bool {
        self.by_token.is_empty()
    }
}

/// Runtimes whose calls may be completed, by number.
struct Runtimes {
    known: HashMap<u32, Arc<Executing>>,
    last: u32,
}

static RUNTIMES: RwLock<Option<Runtimes>> = RwLock::new(None);

/// Adds a runtime, which is made of its number.
pub fn enter(make: impl FnOnce(u32) -> Executing) -> Arc<Executing> {
    let mut runtimes = RUNTIMES.write().unwrap_or_else(PoisonError::into_inner);
    let runtimes = runtimes.get_or_insert_with(|| Runtimes { known: HashMap::new(), last: 0 });
    // A runtime's number comes again after a million starts, a call's after 17 million million calls.
    let next = |number: u32| (number + 1) % (1 << RUNTIME_BITS);
    let mut number = next(runtimes.last);
    while number == 0 || runtimes.known.contains_key(&number) {
        number = next(number);
    }
    runtimes.last = number;
    let executing = Arc::new(make(number));
    runtimes.known.insert(number, Arc::clone(&executing));
    executing
}

/// The runtime has gone: its tokens are stale.
pub fn leave(number: u32) {
    let mut runtimes = RUNTIMES.write().unwrap_or_else(PoisonError::into_inner);
    let left = runtimes.as_mut().and_then(|runtimes| runtimes.known.remove(&number));
    drop(runtimes);
    drop(left);
}

/// The runtime of a token. None: it has been released, or is another process's.
pub fn runtime_of(token: u64) -> Option<Arc<Executing>> {
    // Asked before any lock is taken: after a fork a lock may never be free again.
    handles::check_process().ok()?;
    let runtimes = RUNTIMES.read().unwrap_or_else(PoisonError::into_inner);
    runtimes.as_ref()?.known.get(&((token >> CALL_BITS) as u32)).cloned()
}
