//! The asyncio driver, native half; `arroyo_udf_plugin/plugin/executor.py` is the other one and says how they work together.
//!
//! - `Runtime`: a started function as the event loop sees it: wake-ups through an eventfd, turns, cancellations.
//! - `Slot`: one long-lived Task takes attempt after attempt through it: the values are converted and the function is
//!   called here, so that a row costs Python one method call.
//! - `Parker` (parker.rs): what an idle Task waits on.
//!
//! Guarantees: everything here runs on the loop's thread with the GIL held; nothing waits.

use crate::call_info::{self, Told};
use crate::calls::{call, describe, raised_text, refuse_none, Call, Converted, Frame};
use crate::foreign;
use crate::group::Group;
use crate::heap::{Body, HeapType};
use crate::object::{none, raise, text, Owned};
use crate::registry::Function;
use crate::types::{Scalar, Type};
use crate::watch;
use arroyo_udf_plugin::arrow::Batch;
use arroyo_udf_plugin::call_info::CallInfo;
use arroyo_udf_plugin::machine::{Outcome, Token};
use arroyo_udf_plugin::results;
use arroyo_udf_plugin::runtime::{self, After, Attempt, Orders, TimeSlice};
use arroyo_udf_plugin::value::Value;
use pyo3_ffi::*;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Weak};

/// How long a turn of the loop may last before others get theirs, in nanoseconds, if rows end without having waited for
/// anything. A turn costs the driver, the host that is told of results, and the GIL between them some 50 microseconds.
const TURN: u64 = 1_000_000;

/// Wakes the loop: it watches the eventfd.
struct EventFd(i32);

impl runtime::Executor for EventFd {
    fn wake(&self) {
        wake(self.0);
        watch::begin();
    }
}

impl Drop for EventFd {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours.
        unsafe { libc::close(self.0) };
    }
}

/// Adds one to an eventfd.
pub fn wake(eventfd: i32) {
    let one = 1u64;
    // SAFETY: eight bytes are read from `one`. It cannot fail but by overflow, and then the reader is awake anyway.
    unsafe { libc::write(eventfd, (&raw const one).cast(), 8) };
}

pub struct Runtime {
    runtime: Arc<runtime::Runtime>,
    function: &'static Function,
    eventfd: i32,
    context: Option<Owned>,
    /// `call_soon(turn)` of the loop, as `schedule()`.
    schedule: Option<Owned>,
    /// The context variables that each call starts from.
    clean: Option<Owned>,
    in_turn: bool,
    turn_scheduled: bool,
    turn: TimeSlice,
    /// Of this turn.
    orders: Orders,
    /// As the last turn has left it.
    settled: bool,
    /// Where the latest attempt started; only to be compared.
    latest: *const Slot,
    /// The Slot that runs an attempt, by the number of its token. Borrowed: the Task keeps its Slot.
    slots: Vec<*mut PyObject>,
    /// For the call that begins now. (In each slot it would be most of a waiting row's memory.)
    frame: Frame,
    /// The batch whose rows start now, with what pyarrow has converted of it. The weak reference keeps another batch from
    /// its address.
    converted: Option<(Weak<Batch>, Converted)>,
}

pub static RUNTIME: HeapType = HeapType::new();
pub static SLOT: HeapType = HeapType::new();

/// A `Runtime` object for a runtime that has no executor yet.
///
/// # Safety
/// The GIL is held.
pub unsafe fn new_runtime(function: &'static Function, runtime: Arc<runtime::Runtime>) -> Option<Owned> {
    // SAFETY: no pointers are passed.
    let eventfd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
    if eventfd < 0 {
        // SAFETY: the GIL is held.
        unsafe { PyErr_SetFromErrno(PyExc_OSError) };
        return None;
    }
    runtime.serve(Box::new(EventFd(eventfd)));
    watch::add(&runtime);
    let body = Runtime {
        runtime,
        function,
        eventfd,
        context: None,
        schedule: None,
        clean: None,
        in_turn: false,
        turn_scheduled: false,
        turn: TimeSlice::new(TURN),
        orders: Orders::default(),
        settled: false,
        latest: null(),
        slots: Vec::new(),
        frame: Frame::new(),
        converted: None,
    };
    // SAFETY: passed on.
    unsafe { RUNTIME.make(body) }
}

impl Runtime {
    /// Has the loop call `turn` soon, once.
    unsafe fn schedule_turn(&mut self) {
        if self.in_turn || self.turn_scheduled {
            return;
        }
        self.turn_scheduled = true;
        if let Some(schedule) = &self.schedule {
            // SAFETY: the GIL is held. A loop that refuses has been closed.
            unsafe {
                if Owned::new(PyObject_CallNoArgs(schedule.ptr())).is_none() {
                    let text = raised_text();
                    self.runtime.poison(&format!("the event loop refuses a callback: {text}"));
                }
            }
        }
    }
}

/// The slot that runs an attempt. Null: none does any more, for another attempt may run there by now.
unsafe fn slot_of(owner: *mut Runtime, token: Token) -> *mut Slot {
    // SAFETY: the GIL is held; the slots of running attempts exist.
    unsafe {
        let slots = &(*owner).slots;
        match slots.get(token.index()) {
            Some(&slot) if !slot.is_null() && (*Slot::of(slot)).token == Some(token) => Slot::of(slot),
            _ => null_mut(),
        }
    }
}

// ---- methods of Runtime --------------------------------------------------------------------------------------------

macro_rules! method {
    ($(#[$doc:meta])* fn $name:ident($this:ident: $body:ty, $argument:ident) $code:block) => {
        $(#[$doc])*
        unsafe extern "C" fn $name(this: *mut PyObject, $argument: *mut PyObject) -> *mut PyObject {
            // SAFETY: Python calls a method with an object of its type and the GIL held; the bodies are only used on the
            // loop's thread, and no two references to one body are used across a call into Python.
            unsafe {
                let $this = <$body as Body>::of(this);
                let _ = &$argument;
                $code
            }
        }
    };
}

unsafe fn bool_object(value: bool) -> *mut PyObject {
    // SAFETY: the GIL is held.
    unsafe { PyBool_FromLong(value.into()) }
}

method! {
    /// fileno() -> int: the eventfd that the loop watches.
    fn fileno(this: Runtime, _a) { PyLong_FromLong((*this).eventfd.into()) }
}
method! {
    /// name -> str: "plugin.function".
    fn function_name(this: Runtime, _a) {
        let name = &(*this).function.signature.name;
        PyUnicode_FromStringAndSize(name.as_ptr().cast(), name.len() as Py_ssize_t)
    }
}
method! {
    /// context_class() -> type | None
    fn context_class(this: Runtime, _a) {
        match &(*this).function.context {
            Some(class) => Owned::borrowed(class.ptr()).into_ptr(),
            None => none(),
        }
    }
}
method! {
    /// set_context(context): goes before the arguments of every call.
    fn set_context(this: Runtime, context) { (*this).context = Some(Owned::borrowed(context)); none() }
}
method! {
    /// serve(schedule): `schedule()` has the loop call `turn` soon.
    fn serve(this: Runtime, schedule) { (*this).schedule = Some(Owned::borrowed(schedule)); none() }
}
method! {
    /// set_clean(context): the context variables that each call starts from; a slot gets a copy.
    fn set_clean(this: Runtime, clean) { (*this).clean = Some(Owned::borrowed(clean)); none() }
}
method! {
    /// allowed_in_flight() -> int
    fn allowed_in_flight(this: Runtime, _a) { PyLong_FromUnsignedLong((*this).runtime.settings().allowed_in_flight.into()) }
}
method! {
    /// begin_turn() -> list[Task]: the Tasks to cancel.
    fn begin_turn(this: Runtime, _a) {
        let mut count = 0u64;
        libc::read((*this).eventfd, (&raw mut count).cast(), 8);
        (*this).in_turn = true;
        (*this).turn_scheduled = false;
        (*this).turn.begin();
        let mut orders = std::mem::take(&mut (*this).orders);
        (*this).runtime.begin_turn(&mut orders);
        let tasks = PyList_New(0);
        for token in orders.cancelled.drain(..) {
            let slot = slot_of(this, token);
            if tasks.is_null() || slot.is_null() || (*slot).cancelled {
                continue;
            }
            (*slot).cancelled = true;
            if let Some(task) = &(*slot).task {
                PyList_Append(tasks, task.ptr());
            }
        }
        (*this).orders = orders;
        tasks
    }
}
method! {
    /// take_stuck() -> list[tuple[Task, int]]: attempts that have begun to ignore their cancellation, and their rows' ids.
    fn take_stuck(this: Runtime, _a) {
        let list = PyList_New(0);
        for stuck in std::mem::take(&mut (*this).orders.stuck) {
            let slot = slot_of(this, stuck.token);
            if list.is_null() || slot.is_null() {
                continue;
            }
            if let (Some(task), Some(id)) = (&(*slot).task, Owned::new(PyLong_FromUnsignedLongLong(stuck.id))) {
                if let Some(pair) = Owned::new(PyTuple_Pack(2, task.ptr(), id.ptr())) {
                    PyList_Append(list, pair.ptr());
                }
            }
        }
        list
    }
}
method! {
    /// may_start() -> bool: whether an idle slot would find an attempt in this turn.
    fn may_start(this: Runtime, _a) { bool_object((*this).turn.has_time() && (*this).runtime.can_start()) }
}
method! {
    /// end_turn() -> bool: tells the host what has ended. True: nothing is left to do until the next wake-up.
    fn end_turn(this: Runtime, _a) {
        (*this).in_turn = false;
        let after = (*this).runtime.end_turn();
        (*this).settled = after == After::Settled;
        bool_object(after == After::Asleep)
    }
}
method! {
    /// again(): has the loop call `turn` soon.
    fn again(this: Runtime, _a) { (*this).schedule_turn(); none() }
}
method! {
    /// is_settled() -> bool: whether it is time to close.
    fn is_settled(this: Runtime, _a) { bool_object((*this).settled) }
}
method! {
    /// is_given_up() -> bool: a stop has answered that calls are stuck, so the Context is not closed any more.
    fn is_given_up(this: Runtime, _a) { bool_object((*this).runtime.is_given_up()) }
}
method! {
    /// count_left_behind(tasks: int): so many Tasks of calls were cancelled at the stop.
    fn count_left_behind(this: Runtime, tasks) { (*this).runtime.count_left_behind(PyLong_AsSize_t(tasks) as u64); none() }
}
method! {
    /// closed(text: str | None): the executor has ended; the text says why the Context's close failed.
    fn closed(this: Runtime, why) {
        (*this).schedule = None;
        (*this).clean = None;
        (*this).context = None;
        (*this).converted = None;
        let result = if why == Py_None() { Ok(()) } else { Err(text(why)) };
        (*this).runtime.closed(result);
        none()
    }
}
method! {
    /// poison(text: str): a failure of the toolkit.
    fn poison(this: Runtime, why) { (*this).runtime.poison(&text(why)); none() }
}
method! {
    /// slot(context) -> Slot: for a Task that runs in this copy of the clean context.
    fn slot(this: Runtime, context) {
        let body = Slot {
            owner: Owned::borrowed(Body::object(this)),
            context: Owned::borrowed(context),
            told: None,
            task: None,
            references: 0,
            token: None,
            id: 0,
            cancelled: false,
            spent: false,
            group: Group::default(),
        };
        SLOT.make(body).map_or(null_mut(), Owned::into_ptr)
    }
}

// ---- Slot ----------------------------------------------------------------------------------------------------------

pub struct Slot {
    owner: Owned,
    /// That of the Task.
    context: Owned,
    /// A copy of it from when the call began, where calls are told of themselves (R10): it differs from the clean one.
    told: Option<Owned>,
    task: Option<Owned>,
    /// To the Task, while no call keeps any.
    references: Py_ssize_t,
    /// The attempt that runs in this slot.
    token: Option<Token>,
    /// Its row.
    id: u64,
    /// Its Task has been asked to cancel it.
    cancelled: bool,
    /// A call has left a mark on the Task: it takes no further attempt.
    spent: bool,
    /// Of a function that takes micro-batches.
    group: Group,
}

/// Whether the slot may start an attempt in this turn. If another one has been at work since it started its latest, that
/// one has waited: such slots take one attempt each, however many they are.
unsafe fn takes_more(owner: *mut Runtime, slot: *mut Slot) -> bool {
    // SAFETY: see `method!`.
    unsafe { !(*slot).spent && ((*owner).latest != slot || (*owner).turn.has_time()) }
}

/// The next attempt, for a slot that has none.
unsafe fn next(owner: *mut Runtime, slot: *mut Slot) -> Option<Attempt> {
    // SAFETY: see `method!`.
    unsafe {
        if takes_more(owner, slot) {
            (*owner).runtime.next()
        } else {
            None
        }
    }
}

/// The slot's attempt has ended: takes it off. None: there was none.
unsafe fn take_ended(owner: *mut Runtime, slot: *mut Slot) -> Option<Token> {
    // SAFETY: see `method!`.
    unsafe {
        let token = (*slot).token.take()?;
        let slots = &mut (*owner).slots;
        slots[token.index()] = null_mut();
        (*owner).schedule_turn();
        Some(token)
    }
}

/// Reports the attempt that has ended, of one row or of a micro-batch as a whole; answers the next one.
#[inline]
unsafe fn end(owner: *mut Runtime, slot: *mut Slot, outcome: Outcome<Value>) -> Option<Attempt> {
    // SAFETY: see `method!`.
    unsafe {
        match take_ended(owner, slot) {
            Some(token) if takes_more(owner, slot) => (*owner).runtime.end_and_next(token, outcome),
            Some(token) => {
                (*owner).runtime.end(token, outcome);
                None
            }
            None => next(owner, slot),
        }
    }
}

/// As `end`, of a micro-batch with an outcome for each row.
unsafe fn end_rows(owner: *mut Runtime, slot: *mut Slot, outcomes: Vec<Outcome<Value>>) -> Option<Attempt> {
    // SAFETY: see `method!`.
    unsafe {
        if let Some(token) = take_ended(owner, slot) {
            (*owner).runtime.end_rows(token, outcomes);
        }
        next(owner, slot)
    }
}

/// Starts the attempt, and further ones until a call has to be awaited: answers its awaitable, or None when there is
/// nothing to start in this turn.
#[inline]
unsafe fn go_on(owner: *mut Runtime, slot: *mut Slot, mut next: Option<Attempt>) -> *mut PyObject {
    // SAFETY: see `method!`. The user's function is called below; it runs on this thread and may at most reach other
    // slots, for this one's methods are only called by its own Task.
    unsafe {
        while let Some(attempt) = &next {
            (*owner).turn.count_row();
            (*owner).latest = slot;
            (*slot).token = Some(attempt.token);
            (*slot).id = attempt.id;
            (*slot).cancelled = false;
            let index = attempt.token.index();
            let slots = &mut (*owner).slots;
            if slots.len() <= index {
                slots.resize(index + 1, null_mut());
            }
            slots[index] = Body::object(slot);
            let function = (*owner).function;
            let error = |text: String| Outcome::Error(function.row_text((*slot).id, &text).into());
            next = match start(owner, slot, attempt) {
                Some(Call::Returned(awaitable)) => return awaitable,
                Some(Call::Null) => end(owner, slot, Outcome::Value(Value::Null)),
                Some(Call::Raised) => end(owner, slot, error(raised_text())),
                Some(Call::Failed(text)) => end(owner, slot, error(text)),
                None => end_rows(owner, slot, (*slot).group.without_call()),
            };
        }
        none()
    }
}

/// Calls the function. None: a micro-batch of which no row needs a call.
unsafe fn start(owner: *mut Runtime, slot: *mut Slot, attempt: &Attempt) -> Option<Call> {
    // SAFETY: see `go_on`. What `converted` answers stays until it is asked for another batch.
    unsafe {
        let function = (*owner).function;
        let context = (*owner).context.as_ref().map_or(null_mut(), Owned::ptr);
        let frame = &mut (*owner).frame;
        if function.takes_groups() {
            let tell = |group: &Group| {
                let rows = || CallInfo::of_rows(&(*owner).runtime, attempt).enumerate();
                tell(slot, || Told::Group(rows().filter(|(i, _)| group.calls(*i)).map(|(_, info)| info).collect()))
            };
            return (*slot).group.call(function, attempt, context, frame, |batch| converted(owner, batch), tell);
        }
        if !tell(slot, || Told::Row(CallInfo::new(&(*owner).runtime, attempt))) {
            return Some(Call::Raised);
        }
        Some(match converted(owner, &attempt.batch) {
            Ok(converted) => call(function, &attempt.batch, &*converted, attempt.row, context, frame),
            Err(text) => Call::Failed(text),
        })
    }
}

/// Tells the call that is about to begin of itself, if it may ask (R10). False: an exception is set.
unsafe fn tell(slot: *mut Slot, told: impl FnOnce() -> Told) -> bool {
    // SAFETY: see `go_on`. The Task's context is entered.
    unsafe {
        if !call_info::is_asked_for() {
            return true;
        }
        let is_told = call_info::tell(told());
        (*slot).told = if is_told { Owned::new(PyContext_Copy((*slot).context.ptr())) } else { None };
        (*slot).told.is_some()
    }
}

/// What pyarrow has converted of a batch; valid until the next call. The error is a text for its rows.
unsafe fn converted(owner: *mut Runtime, batch: &Arc<Batch>) -> Result<*const Converted, String> {
    // SAFETY: see `go_on`.
    unsafe {
        if (*owner).converted.as_ref().is_none_or(|(of, _)| of.as_ptr() != Arc::as_ptr(batch)) {
            (*owner).converted = Some((Arc::downgrade(batch), Converted::new((*owner).function, batch)?));
        }
        let Some((_, converted)) = &(*owner).converted else { unreachable!("made above") };
        Ok(converted)
    }
}

/// The outcome of a result.
///
/// # Safety
/// The GIL is held; `result` is valid.
pub unsafe fn outcome_of(function: &Function, id: u64, result: *mut PyObject) -> Outcome<Value> {
    // SAFETY: the GIL is held; the result is valid until the caller gives it back.
    let value = unsafe {
        if result == Py_None() {
            refuse_none(function).map_or(Ok(Value::Null), |text| Err(text.to_string()))
        } else if matches!(function.returns, Type::Other) {
            foreign::object_to_value(function, result)
        } else {
            match function.returns.write(result) {
                Ok(Scalar::Fixed(x)) => return Outcome::Value(Value::Fixed(x)),
                Ok(Scalar::Bytes(bytes)) => Ok(Value::Bytes(bytes.into())),
                Err(text) => Err(text),
            }
        }
    };
    let fitting = value.and_then(|value| results::fits(&function.signature.returns, &value).map(|()| value));
    fitting.map_or_else(|text| Outcome::Error(function.row_text(id, &text).into()), Outcome::Value)
}

/// To be called when a call has ended: nothing of it may reach the next call. A Task is as good as new if its context
/// variables are what they were (R11), and if nobody has kept it: who has, might cancel it later. What else a call can do
/// to its Task comes as `touch()`.
unsafe fn inspect(slot: *mut Slot) {
    // SAFETY: see `method!`. The compared values are the clean context's own: no user code runs.
    unsafe {
        let owner = Runtime::of((*slot).owner.ptr());
        let kept = (*slot).task.as_ref().is_none_or(|task| Py_REFCNT(task.ptr()) > (*slot).references);
        let clean = (*slot).told.as_ref().or((*owner).clean.as_ref()).map_or(null_mut(), Owned::ptr);
        (*slot).spent |= kept || clean.is_null() || !equal((*slot).context.ptr(), clean);
    }
}

/// Whether two contexts, of which neither is null, have the same variables. Mostly they share all of them, and then
/// PyObject_RichCompare would take twice as long around the comparison as in it.
unsafe fn equal(one: *mut PyObject, other: *mut PyObject) -> bool {
    // SAFETY: a Context can be compared. Its slot answers a bool, which is immortal or kept by the interpreter, or null and
    // an exception.
    unsafe {
        let Some(answer) = (*Py_TYPE(one)).tp_richcompare.and_then(|compare| Owned::new(compare(one, other, Py_EQ))) else {
            PyErr_Clear();
            return false;
        };
        answer.ptr() == Py_True()
    }
}

method! {
    /// attach(task): the Task that this slot belongs to.
    fn attach(this: Slot, task) { (*this).task = Some(Owned::borrowed(task)); none() }
}
method! {
    /// detach() -> Task: at its end.
    fn detach(this: Slot, _a) { (*this).task.take().map_or_else(|| none(), Owned::into_ptr) }
}
method! {
    /// touch(): somebody has done to the Task what outlasts the call.
    fn touch(this: Slot, _a) { (*this).spent = true; none() }
}
method! {
    /// is_spent() -> bool: the Task has to end; another one takes its place.
    fn is_spent(this: Slot, _a) { bool_object((*this).spent) }
}
method! {
    /// begin() -> awaitable | None: the first attempt after a pause.
    fn begin(this: Slot, _a) {
        if (*this).references == 0 {
            (*this).references = (*this).task.as_ref().map_or(0, |task| Py_REFCNT(task.ptr()));
        }
        let owner = Runtime::of((*this).owner.ptr());
        go_on(owner, this, next(owner, this))
    }
}
method! {
    /// ended(result) -> awaitable | None: the attempt has returned; the next one.
    fn ended(this: Slot, result) {
        inspect(this);
        let owner = Runtime::of((*this).owner.ptr());
        let function = (*owner).function;
        let next = if !function.takes_groups() {
            end(owner, this, outcome_of(function, (*this).id, result))
        } else {
            match (*this).group.outcomes(function, result) {
                Ok(outcomes) => end_rows(owner, this, outcomes),
                Err(text) => end(owner, this, Outcome::Error(function.row_text((*this).id, &text).into())),
            }
        };
        go_on(owner, this, next)
    }
}
method! {
    /// failed(exception) -> awaitable | None: the attempt has raised; the next one.
    fn failed(this: Slot, exception) {
        if PyExceptionInstance_Check(exception) == 0 {
            return raise(PyExc_TypeError, "failed() takes an exception");
        }
        inspect(this);
        let owner = Runtime::of((*this).owner.ptr());
        // A cancelled attempt's row has ended: nobody reads the text.
        let outcome = if (*this).cancelled {
            Outcome::Cancelled
        } else {
            Outcome::Error((*owner).function.row_text((*this).id, &describe(exception)).into())
        };
        go_on(owner, this, end(owner, this, outcome))
    }
}

/// Makes the types and puts them into the module.
///
/// # Safety
/// The GIL is held, in the module's exec.
pub unsafe fn add_types(module: *mut PyObject) -> bool {
    // SAFETY: the methods take an object of the type that they are defined for.
    unsafe {
        RUNTIME.define::<Runtime>(
            module,
            c"arroyo_udf_plugin._native.Runtime",
            &[
                (c"fileno", fileno, METH_NOARGS),
                (c"name", function_name, METH_NOARGS),
                (c"context_class", context_class, METH_NOARGS),
                (c"set_context", set_context, METH_O),
                (c"serve", serve, METH_O),
                (c"set_clean", set_clean, METH_O),
                (c"allowed_in_flight", allowed_in_flight, METH_NOARGS),
                (c"begin_turn", begin_turn, METH_NOARGS),
                (c"may_start", may_start, METH_NOARGS),
                (c"end_turn", end_turn, METH_NOARGS),
                (c"again", again, METH_NOARGS),
                (c"is_settled", is_settled, METH_NOARGS),
                (c"is_given_up", is_given_up, METH_NOARGS),
                (c"take_stuck", take_stuck, METH_NOARGS),
                (c"count_left_behind", count_left_behind, METH_O),
                (c"closed", closed, METH_O),
                (c"poison", poison, METH_O),
                (c"slot", slot, METH_O),
            ],
            &[],
        ) && SLOT.define::<Slot>(
            module,
            c"arroyo_udf_plugin._native.Slot",
            &[
                (c"attach", attach, METH_O),
                (c"detach", detach, METH_NOARGS),
                (c"touch", touch, METH_NOARGS),
                (c"is_spent", is_spent, METH_NOARGS),
                (c"begin", begin, METH_NOARGS),
                (c"ended", ended, METH_O),
                (c"failed", failed, METH_O),
            ],
            &[],
        )
    }
}
