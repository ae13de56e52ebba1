//! The open calls of a runtime (made, and not completed yet), and the tokens that name them.
//!
//! A token is a number: the runtime's in its top 20 bits, below it one that no other call of this library has had. So it
//! fits where a library has room for 64 bits.
//!
//! Guarantees: a stale token is recognised, not followed.

use arroyo_udf_plugin::arrow::Batch;
use arroyo_udf_plugin::machine::Token;
use arroyo_udf_plugin::runtime::Attempt;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

pub const RUNTIME_BITS: u32 = 20;
const CALL_BITS: u32 = 64 - RUNTIME_BITS;

/// A call that has not been completed.
pub struct OpenCall {
    pub attempt: Token,
    /// The texts of the call point into it.
    _batch: Arc<Batch>,
    pub cancelled: bool,
}

/// The open calls of one runtime.
#[derive(Default)]
pub struct OpenCalls {
    by_token: HashMap<u64, OpenCall>,
    /// The token of the latest call of each [`Token::index`].
    tokens: Vec<u64>,
}

impl OpenCalls {
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
        let open = OpenCall { attempt: attempt.token, _batch: Arc::clone(&attempt.batch), cancelled: false };
        self.by_token.insert(token, open);
        token
    }

    pub fn take(&mut self, token: u64) -> Option<OpenCall> {
        self.by_token.remove(&token)
    }

    /// Marks a call as cancelled, and returns its token. None: it has been completed.
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

/// The number of the runtime that a token belongs to.
pub fn runtime_of(token: u64) -> u32 {
    (token >> CALL_BITS) as u32
}
