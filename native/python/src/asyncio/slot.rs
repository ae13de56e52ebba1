//! `Slot`: one long-lived Task takes attempt after attempt through it.
//!
//! The slot is the Task's coroutine. Each time the Task is resumed, the slot resumes the call of its attempt; if the call
//! ends, the slot reports it and starts the next ones, until a call suspends: then the slot yields what the call has yielded.
//! When there is nothing to start in this turn, it yields its Parker; when it is spent, or the runtime settled, it ends. So
//! no Python code of ours runs for a row.
//!
//! Guarantees: a call that leaves a mark on its Task (a context variable, a reference) spends the slot, so no later call sees
//! the mark (R11). What the Task is sent or is thrown reaches the call, as if the Task awaited it.
//! Assumes: as `executor`; only its own Task resumes a slot.

use super::coroutine::{coroutine_of, send, throw, Came, Ended};
use super::executor::AsyncioExecutor;
use super::parker;
use crate::call_info::{self, CurrentCall};
use crate::calls::{call_row, Called};
use crate::forked::came_back;
use crate::function::PythonFunction;
use crate::gil;
use crate::heap::{method, Body, Method};
use crate::micro_batch::MicroBatch;
use crate::object::{none, take_exception, Owned};
use crate::outcome::{error_of, outcome_of};
use crate::state;
use crate::traceback::raised_text;
use arroyo_udf_plugin::call_info::CallInfo;
use arroyo_udf_plugin::machine::{Outcome, Token};
use arroyo_udf_plugin::runtime::{Attempt, Next, Stretch};
use arroyo_udf_plugin::value::Value;
use pyo3_ffi::*;
use std::ffi::{c_void, CStr};
use std::ptr::{null, null_mut};

pub struct Slot {
    executor: Owned,
    /// That of the Task.
    context: Owned,
    /// A copy of `context` from the beginning of the call, if calls can ask about themselves (R10): it then differs from the
    /// clean one.
    context_at_start: Option<Owned>,
    task: Option<Owned>,
    /// To the Task, while no call keeps one.
    references: Py_ssize_t,
    /// The attempt that runs in this slot.
    token: Option<Token>,
    /// A call has left a mark on the Task, which therefore takes no further attempt.
    spent: bool,
    micro_batch: MicroBatch,
    /// The coroutine of a call that has suspended.
    call: Option<Owned>,
    /// What the Task waits for while there is no attempt.
    parker: Option<Owned>,
}

impl Slot {
    #[inline]
    unsafe fn executor(this: *mut Slot) -> *mut AsyncioExecutor {
        // SAFETY: the owner is an AsyncioExecutor, see `new_slot`.
        unsafe { AsyncioExecutor::of((*this).executor.ptr()) }
    }
}

// The functions below take bodies of objects that are alive, on the loop's thread with the GIL held. `go_on` calls the
// user's function, which may reach other slots and the executor: no reference to a body is alive across that call.

/// Whether the slot may start an attempt in this turn.
#[inline]
unsafe fn takes_more(executor: *mut AsyncioExecutor, slot: *mut Slot) -> bool {
    // SAFETY: see above.
    unsafe { !(*slot).spent && (*executor).has_time_for(Body::object(slot)) }
}

/// Takes the slot's attempt off, because it is over. None: there was none.
#[inline]
unsafe fn take_ended(executor: *mut AsyncioExecutor, slot: *mut Slot) -> Option<Token> {
    // SAFETY: see above.
    unsafe {
        let token = (*slot).token.take()?;
        (*executor).attempt_ends(token);
        (*executor).schedule_turn();
        Some(token)
    }
}

/// Reports the attempt that is over, of one row or of a micro-batch as a whole. Answers the next one, if one was taken.
#[inline]
unsafe fn end(executor: *mut AsyncioExecutor, slot: *mut Slot, outcome: Outcome<Value>) -> Option<Attempt> {
    // SAFETY: see above.
    unsafe {
        match take_ended(executor, slot) {
            Some(token) if takes_more(executor, slot) => (*executor).runtime.end_and_next(token, outcome),
            Some(token) => {
                (*executor).runtime.end(token, outcome);
                None
            }
            None => None,
        }
    }
}

/// As `end`, of a micro-batch with an outcome for each row.
unsafe fn end_rows(executor: *mut AsyncioExecutor, slot: *mut Slot, outcomes: Vec<Outcome<Value>>) -> Option<Attempt> {
    // SAFETY: see above.
    unsafe {
        if let Some(token) = take_ended(executor, slot) {
            (*executor).runtime.end_rows(token, outcomes);
        }
        None
    }
}

/// Starts calls until one suspends, of the attempt `next` first. Answers what that call has yielded, or null without an
/// exception: there is nothing to start in this turn.
#[inline]
unsafe fn go_on(executor: *mut AsyncioExecutor, slot: *mut Slot, mut next: Option<Attempt>) -> *mut PyObject {
    // SAFETY: see above.
    unsafe {
        loop {
            while let Some(attempt) = &next {
                attempt_starts(executor, slot, attempt.token);
                next = match start(executor, slot, attempt).map(|called| begin(slot, called)) {
                    Some(Came::Suspended(yielded)) => return yielded,
                    Some(Came::Ended(how)) => {
                        (*executor).runtime.ended_at_once();
                        ended(executor, slot, how)
                    }
                    None => end_rows(executor, slot, (*slot).micro_batch.outcomes_without_call()),
                };
            }
            if !takes_more(executor, slot) {
                return null_mut();
            }
            match (*executor).runtime.take_next() {
                Some(Next::Attempt(attempt)) => next = Some(attempt),
                Some(Next::Stretch(stretch)) => {
                    let yielded = run_stretch(executor, slot, stretch);
                    if !yielded.is_null() {
                        return yielded;
                    }
                }
                None => return null_mut(),
            }
        }
    }
}

/// Notes that an attempt starts, or goes on, in the slot.
#[inline]
unsafe fn attempt_starts(executor: *mut AsyncioExecutor, slot: *mut Slot, token: Token) {
    // SAFETY: see above.
    unsafe {
        (*slot).token = Some(token);
        let task = (*slot).task.as_ref().map_or(null_mut(), Owned::ptr);
        (*executor).attempt_starts(token, Body::object(slot), task);
    }
}

/// Starts the calls of a stretch, until one suspends or the slot may start no more; as `go_on`.
unsafe fn run_stretch(executor: *mut AsyncioExecutor, slot: *mut Slot, mut stretch: Stretch) -> *mut PyObject {
    // SAFETY: see above.
    unsafe {
        (*executor).schedule_turn();
        let function = AsyncioExecutor::function(executor);
        let converted = AsyncioExecutor::converted(executor, &stretch.batch);
        while let Some(row) = stretch.row().filter(|_| takes_more(executor, slot)) {
            (*executor).row_starts(Body::object(slot));
            let info = || CurrentCall::Row((*executor).runtime.call_info(&stretch));
            let called = match &converted {
                _ if !set_current_call(function, slot, info) => Called::Raised,
                Ok(converted) => call_row(function, &stretch.batch, converted, row, (*executor).context()),
                Err(text) => Called::Failed(text.clone()),
            };
            match begin(slot, called) {
                Came::Suspended(yielded) => {
                    if let Some(token) = (*executor).runtime.end_stretch(&stretch, true) {
                        attempt_starts(executor, slot, token);
                    }
                    return yielded;
                }
                Came::Ended(how) => {
                    let outcome = outcome(executor, slot, how);
                    (*executor).runtime.end_in_stretch(&mut stretch, outcome);
                }
            }
        }
        (*executor).runtime.end_stretch(&stretch, false);
        null_mut()
    }
}

/// Resumes the call that has suspended, by `resume`, and goes on with further calls if it ends; as `go_on`.
#[inline]
unsafe fn resume(slot: *mut Slot, resume: impl FnOnce(*mut PyObject) -> Came) -> *mut PyObject {
    // SAFETY: see above.
    unsafe {
        let executor = Slot::executor(slot);
        let Some(call) = (*slot).call.take() else {
            came_back(null_mut());
            if (*slot).references == 0 {
                (*slot).references = (*slot).task.as_ref().map_or(0, |task| Py_REFCNT(task.ptr()));
            }
            return go_on(executor, slot, None);
        };
        match resume(call.ptr()) {
            Came::Suspended(yielded) => {
                (*slot).call = Some(call);
                yielded
            }
            Came::Ended(how) => {
                drop(call); // its frame may keep a reference to the Task
                go_on(executor, slot, ended(executor, slot, how))
            }
        }
    }
}

/// Runs a call that has just been made until it ends or suspends.
#[inline]
unsafe fn begin(slot: *mut Slot, called: Called) -> Came {
    // SAFETY: see above.
    unsafe {
        let awaitable = match called {
            Called::Returned(awaitable) => awaitable,
            Called::Null => return Came::Ended(Ended::NotCalled(Outcome::Value(Value::Null))),
            Called::Raised => return Came::Ended(Ended::Raised),
            Called::Failed(text) => return Came::Ended(Ended::NotCalled(error_of(text))),
        };
        let Some(call) = Owned::new(awaitable).and_then(|awaitable| coroutine_of(awaitable)) else {
            return Came::Ended(Ended::Raised);
        };
        let came = send(call.ptr(), Py_None());
        if let Came::Suspended(_) = came {
            (*slot).call = Some(call);
        }
        came
    }
}

/// The call of the attempt has ended. Answers the next attempt, if one was taken.
#[inline]
unsafe fn ended(executor: *mut AsyncioExecutor, slot: *mut Slot, how: Ended) -> Option<Attempt> {
    // SAFETY: see above.
    unsafe {
        let function = AsyncioExecutor::function(executor);
        match &how {
            Ended::Returned(result) if function.takes_micro_batches() => {
                inspect(slot);
                match (*slot).micro_batch.outcomes(function, result.ptr()) {
                    Ok(outcomes) => end_rows(executor, slot, outcomes),
                    Err(text) => end(executor, slot, error_of(text)),
                }
            }
            _ => end(executor, slot, outcome(executor, slot, how)),
        }
    }
}

/// The outcome of a call for one row.
#[inline]
unsafe fn outcome(executor: *mut AsyncioExecutor, slot: *mut Slot, how: Ended) -> Outcome<Value> {
    // SAFETY: see above.
    unsafe {
        inspect(slot);
        match how {
            Ended::Returned(result) => outcome_of(AsyncioExecutor::function(executor), result.ptr()),
            Ended::NotCalled(outcome) => outcome,
            // The row of a cancelled attempt has ended: no text is needed.
            Ended::Raised if (*slot).token.is_some_and(|token| (*executor).is_cancelled(token)) => {
                drop(take_exception());
                Outcome::Cancelled
            }
            Ended::Raised => error_of(raised_text()),
        }
    }
}

/// Calls the function. None: a micro-batch of which no row needs a call.
unsafe fn start(executor: *mut AsyncioExecutor, slot: *mut Slot, attempt: &Attempt) -> Option<Called> {
    // SAFETY: see above.
    unsafe {
        let function = AsyncioExecutor::function(executor);
        let context = (*executor).context();
        if function.takes_micro_batches() {
            let before_call = |micro_batch: &MicroBatch| {
                let rows = || CallInfo::of_rows(&(*executor).runtime, attempt).enumerate();
                let called = || rows().filter(|(i, _)| micro_batch.calls(*i)).map(|(_, info)| info).collect();
                set_current_call(function, slot, || CurrentCall::MicroBatch(called()))
            };
            let converted = |batch: &_| AsyncioExecutor::converted(executor, batch);
            return (*slot).micro_batch.call(function, attempt, context, converted, before_call);
        }
        if !set_current_call(function, slot, || CurrentCall::Row((*executor).runtime.call_info_of(attempt))) {
            return Some(Called::Raised);
        }
        Some(match AsyncioExecutor::converted(executor, &attempt.batch) {
            Ok(converted) => call_row(function, &attempt.batch, &converted, attempt.row, context),
            Err(text) => Called::Failed(text),
        })
    }
}

/// Lets the call that is about to begin ask about itself, if any code asks (R10). False: an exception is set.
#[inline]
unsafe fn set_current_call(function: &PythonFunction, slot: *mut Slot, call: impl FnOnce() -> CurrentCall) -> bool {
    // SAFETY: see above. The Task's context is entered.
    unsafe {
        if !call_info::is_asked_for(&function.state) {
            return true;
        }
        let is_set = call_info::set(&function.state, call());
        (*slot).context_at_start = if is_set { Owned::new(PyContext_Copy((*slot).context.ptr())) } else { None };
        (*slot).context_at_start.is_some()
    }
}

/// Spends the slot if the call that ended has left a mark on the Task: if its context variables have changed (R11), or if
/// some code keeps a reference to it and so might cancel it later. `touch()` reports the other marks that a call can leave.
#[inline]
unsafe fn inspect(slot: *mut Slot) {
    // SAFETY: see above. Comparing contexts runs no user code where the values are identical.
    unsafe {
        let kept = (*slot).task.as_ref().is_none_or(|task| Py_REFCNT(task.ptr()) > (*slot).references);
        let at_start = (*slot).context_at_start.as_ref().map_or_else(|| (*Slot::executor(slot)).clean(), Owned::ptr);
        (*slot).spent |= kept || at_start.is_null() || !are_equal((*slot).context.ptr(), at_start);
    }
}

/// Whether two contexts, neither of them null, have the same variables. Mostly they share them all, and then
/// PyObject_RichCompare would take twice as long around the comparison as the comparison itself.
#[inline]
unsafe fn are_equal(one: *mut PyObject, other: *mut PyObject) -> bool {
    // SAFETY: a Context has a comparison. It answers a bool, or null with an exception.
    unsafe {
        let Some(answer) = (*Py_TYPE(one)).tp_richcompare.and_then(|compare| Owned::new(compare(one, other, Py_EQ))) else {
            PyErr_Clear();
            return false;
        };
        answer.ptr() == Py_True()
    }
}

method! {
    /// AsyncioExecutor.slot(context) -> Slot: for a Task that runs in this copy of the clean context.
    fn new_slot(this: AsyncioExecutor, context) {
        let body = Slot {
            executor: Owned::borrowed(Body::object(this)),
            context: Owned::borrowed(context),
            context_at_start: None,
            task: None,
            references: 0,
            token: None,
            spent: false,
            micro_batch: MicroBatch::default(),
            call: None,
            parker: None,
        };
        AsyncioExecutor::function(this).state.slot.make(body).map_or(null_mut(), Owned::into_ptr)
    }
}
/// A method of `AsyncioExecutor`.
pub(super) const NEW: Method = (c"slot", new_slot, METH_O);

method! {
    /// attach(task): the Task that this slot belongs to.
    fn attach(this: Slot, task) {
        let Some(get_loop) = Owned::new(PyObject_GetAttrString(task, c"get_loop".as_ptr())) else { return null_mut() };
        let Some(event_loop) = Owned::new(PyObject_CallNoArgs(get_loop.ptr())) else { return null_mut() };
        let function = AsyncioExecutor::function(Slot::executor(this));
        (*this).parker = parker::new(&function.state, event_loop);
        if (*this).parker.is_none() {
            return null_mut();
        }
        (*this).task = Some(Owned::borrowed(task));
        none()
    }
}
method! {
    /// touch(): a mark was left on the Task that outlasts the call.
    fn touch(this: Slot, _a) { (*this).spent = true; none() }
}
method! {
    /// send(value): as a coroutine's.
    fn send_in(this: Slot, value) { resumed(this, |call| send(call, value)).or_stop() }
}
method! {
    /// throw(*exception): as a coroutine's. A slot without a call ends: some code cancels all Tasks of the loop.
    fn throw_in(this: Slot, arguments) {
        let step = if (*this).call.is_some() { resumed(this, |call| throw(call, arguments)) } else { end_slot(this) };
        step.or_stop()
    }
}
method! {
    /// close(): as a coroutine's.
    fn close(this: Slot, _a) {
        if let Some(call) = (*this).call.take() {
            let Some(close) = Owned::new(PyObject_GetAttrString(call.ptr(), c"close".as_ptr())) else { return null_mut() };
            if Owned::new(gil::vectorcall(close.ptr(), null(), 0, null_mut())).is_none() {
                return null_mut();
            }
        }
        match end_slot(this) {
            Step::Failed => null_mut(),
            _ => none(),
        }
    }
}

/// How a slot has gone on.
enum Step {
    /// It yields this: a new reference.
    Yielded(*mut PyObject),
    Over,
    /// An exception is set.
    Failed,
}

impl Step {
    /// As the answer of a coroutine's method: the end is a StopIteration.
    unsafe fn or_stop(self) -> *mut PyObject {
        match self {
            Step::Yielded(yielded) => yielded,
            Step::Over => {
                // SAFETY: the GIL is held.
                unsafe { PyErr_SetNone(PyExc_StopIteration) };
                null_mut()
            }
            Step::Failed => null_mut(),
        }
    }
}

/// The Task is resumed: resumes the call by `resume`, goes on with further ones, and parks when there are none.
#[inline]
unsafe fn resumed(slot: *mut Slot, resume_call: impl FnOnce(*mut PyObject) -> Came) -> Step {
    // SAFETY: see above.
    unsafe {
        let yielded = resume(slot, resume_call);
        if !yielded.is_null() {
            return Step::Yielded(yielded);
        }
        let executor = Slot::executor(slot);
        match &(*slot).parker {
            Some(parker) if !(*slot).spent && !(*executor).closing => {
                (*executor).is_idle(parker);
                Step::Yielded(parker::park(parker))
            }
            _ => end_slot(slot),
        }
    }
}

/// The slot ends, and with it its Task.
unsafe fn end_slot(slot: *mut Slot) -> Step {
    // SAFETY: see above.
    unsafe {
        (*slot).parker = None;
        if let Some(token) = (*slot).token.take() {
            (*Slot::executor(slot)).attempt_ends(token); // Python itself failed: the table must not keep the Task
        }
        let (Some(task), Some(slot_ended)) = ((*slot).task.take(), (*Slot::executor(slot)).slot_ended()) else { return Step::Over };
        match Owned::new(gil::vectorcall(slot_ended.ptr(), &task.ptr(), 1, null_mut())) {
            Some(_) => Step::Over,
            None => Step::Failed,
        }
    }
}

unsafe extern "C" fn am_await(this: *mut PyObject) -> *mut PyObject {
    // SAFETY: Python calls it with the GIL and an object of this type.
    unsafe { Owned::borrowed(this).into_ptr() }
}

/// Resumes the slot with a value.
unsafe extern "C" fn am_send(this: *mut PyObject, value: *mut PyObject, result: *mut *mut PyObject) -> PySendResult {
    // SAFETY: as above; `result` is writable.
    unsafe {
        let (answer, how) = match resumed(Slot::of(this), |call| send(call, value)) {
            Step::Yielded(yielded) => (yielded, PySendResult::PYGEN_NEXT),
            Step::Over => (none(), PySendResult::PYGEN_RETURN),
            Step::Failed => (null_mut(), PySendResult::PYGEN_ERROR),
        };
        *result = answer;
        how
    }
}

unsafe extern "C" fn iternext(this: *mut PyObject) -> *mut PyObject {
    // SAFETY: as above.
    unsafe { resumed(Slot::of(this), |call| send(call, Py_None())).or_stop() }
}

/// An attribute of the call, which `name` names; None while there is none. So who looks at a Task finds the author's function.
unsafe extern "C" fn of_call(this: *mut PyObject, name: *mut c_void) -> *mut PyObject {
    // SAFETY: as above; `name` is the closure of an attribute below.
    unsafe {
        match &(*Slot::of(this)).call {
            Some(call) => PyObject_GetAttrString(call.ptr(), name.cast()),
            None => none(),
        }
    }
}

struct Attributes([PyGetSetDef; 6]);
// SAFETY: never written to.
unsafe impl Sync for Attributes {}

const fn attribute(name: &'static CStr) -> PyGetSetDef {
    PyGetSetDef { name: name.as_ptr(), get: Some(of_call), set: None, doc: null(), closure: name.as_ptr().cast_mut().cast() }
}

static OF_CALL: Attributes = Attributes([
    attribute(c"cr_frame"),
    attribute(c"cr_await"),
    attribute(c"cr_code"),
    attribute(c"__name__"),
    attribute(c"__qualname__"),
    PyGetSetDef { name: null(), get: None, set: None, doc: null(), closure: null_mut() },
]);

/// Makes the type and adds it to the module. False: an exception is set.
///
/// # Safety
/// The GIL is held, in the module's exec.
pub(super) unsafe fn add_type(module: *mut PyObject) -> bool {
    // SAFETY: the methods take an object of this type.
    unsafe {
        state::of(module).slot.define::<Slot>(
            module,
            c"arroyo_udf_plugin._native.Slot",
            &[
                (c"attach", attach, METH_O),
                (c"touch", touch, METH_NOARGS),
                (c"send", send_in, METH_O),
                (c"throw", throw_in, METH_VARARGS),
                (c"close", close, METH_NOARGS),
            ],
            &[
                PyType_Slot { slot: Py_am_await, pfunc: am_await as *mut c_void },
                PyType_Slot { slot: Py_am_send, pfunc: am_send as *mut c_void },
                PyType_Slot { slot: Py_tp_iter, pfunc: PyObject_SelfIter as *mut c_void },
                PyType_Slot { slot: Py_tp_iternext, pfunc: iternext as *mut c_void },
                PyType_Slot { slot: Py_tp_getset, pfunc: (&raw const OF_CALL.0).cast_mut().cast() },
            ],
        )
    }
}
