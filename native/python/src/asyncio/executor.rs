//! `AsyncioExecutor`: one runtime on the event loop.
//!
//! - The runtime wakes the loop through an eventfd; the loop calls `turn` of `plugin/executor.py`, for which `turn` here does
//!   all that most turns need.
//! - A table names the Task that runs each attempt, so that cancellations find it.
//! - Whatever all slots share lives here: the runtime, the Context, the batch that pyarrow converted.
//!
//! Guarantees: the host is told of results twice a turn at most, not once a row; a turn without waiting rows lasts about `SLICE`.
//! Assumes: only the loop's thread uses it, with the GIL held.

use super::parker;
use super::watch::Watch;
use crate::calls::Converted;
use crate::eventfd::EventFd;
use crate::forked::came_back;
use crate::function::PythonFunction;
use crate::gil;
use crate::heap::{method, Body, Method};
use crate::object::{none, text, Owned};
use crate::state;
use crate::traceback::raised_text;
use arroyo_udf_plugin::arrow::Batch;
use arroyo_udf_plugin::machine::Token;
use arroyo_udf_plugin::runtime::{After, Ahead, Executor, Orders, Runtime, Seat, TimeSlice};
use arroyo_udf_plugin::sync::Unpoisoned;
use pyo3_ffi::*;
use std::ptr::{null, null_mut};
use std::rc::Rc;
use std::sync::{Arc, Mutex, Weak};

/// How long rows that never wait may keep the loop in a turn, in nanoseconds. Each turn costs some 50 microseconds for this
/// executor, for the host that is told of results, and for passing the GIL between them.
const SLICE: u64 = 1_000_000;

/// The eventfd that the loop watches, until the executor has closed: user code may keep frames of its calls, and with them
/// the executor, but must not keep a descriptor. Nobody sleeps with the lock.
#[derive(Clone)]
struct Watched {
    eventfd: Arc<Mutex<Option<EventFd>>>,
    /// Of the loop.
    watch: Arc<Watch>,
}

impl Watched {
    fn with<T>(&self, use_it: impl FnOnce(&EventFd) -> T) -> Option<T> {
        self.eventfd.lock().unpoisoned().as_ref().map(use_it)
    }

    fn close(&self) {
        *self.eventfd.lock().unpoisoned() = None;
    }
}

/// Wakes the loop.
impl Executor for Watched {
    fn wake(&self) {
        self.with(EventFd::wake);
        self.watch.begin();
    }
}

/// An entry of the table of running attempts, which has one for each row in flight.
#[derive(Clone, Copy)]
struct Running {
    /// The Task of the attempt's slot. Borrowed: the slot keeps it while the attempt runs. Null: no attempt runs.
    task: *mut PyObject,
    /// Of the attempt's token.
    generation: u32,
    is_cancelled: bool,
}

pub struct AsyncioExecutor {
    pub(super) runtime: Ahead,
    pub(super) function: Arc<PythonFunction>,
    eventfd: Watched,
    context: Option<Owned>,
    /// Calling it makes the loop call `turn` soon.
    schedule: Option<Owned>,
    /// The Parkers of slots without an attempt.
    idle: Vec<Owned>,
    /// Called with the Task of a slot that has ended.
    slot_ended: Option<Owned>,
    /// The context variables that each call starts with.
    clean: Option<Owned>,
    /// The runtime is settled: slots without an attempt end.
    pub(super) closing: bool,
    in_turn: bool,
    turn_scheduled: bool,
    slice: TimeSlice,
    /// Empty between turns, unless a turn failed; kept because its memory serves again.
    orders: Orders,
    /// The slot that started the latest attempt; only for comparison.
    latest: *const PyObject,
    /// By the index of the attempt's token.
    running: Vec<Running>,
    /// What pyarrow converted of the batch whose rows start now. While the weak reference lives, no other batch can get the
    /// same address.
    converted: Option<(Weak<Batch>, Rc<Converted>)>,
}

/// An `AsyncioExecutor` for a runtime without an executor. None: an exception is set.
///
/// # Safety
/// The GIL is held; the loop of this interpreter runs.
pub unsafe fn new(function: &Arc<PythonFunction>, runtime: Arc<Runtime>) -> Option<Owned> {
    let Some(eventfd) = EventFd::new() else {
        // SAFETY: the GIL is held.
        unsafe { PyErr_SetFromErrno(PyExc_OSError) };
        return None;
    };
    let state = Arc::clone(&function.state);
    let Some(watch) = state.watch.get().map(Arc::clone) else { unreachable!("the loop has called `watch`") };
    let seat = Seat::take(&runtime);
    let eventfd = Watched { eventfd: Arc::new(Mutex::new(Some(eventfd))), watch: Arc::clone(&watch) };
    seat.serve(Box::new(eventfd.clone()));
    watch.add(&runtime);
    let body = AsyncioExecutor {
        runtime: Ahead::new(seat),
        function: Arc::clone(function),
        eventfd,
        context: None,
        schedule: None,
        idle: Vec::new(),
        slot_ended: None,
        clean: None,
        closing: false,
        in_turn: false,
        turn_scheduled: false,
        slice: TimeSlice::new(SLICE),
        orders: Orders::default(),
        latest: null(),
        running: Vec::new(),
        converted: None,
    };
    // SAFETY: passed on.
    unsafe { state.executor.make(body) }
}

impl AsyncioExecutor {
    /// The function. It lives as long as the executor's object.
    ///
    /// # Safety
    /// The GIL is held; `this` is valid.
    #[inline]
    pub(super) unsafe fn function<'a>(this: *mut AsyncioExecutor) -> &'a PythonFunction {
        // SAFETY: the reference into the body ends here; what remains is one to the function, beside it.
        unsafe { &*Arc::as_ptr(&(*this).function) }
    }

    /// The Context; null for a function without one.
    pub(super) fn context(&self) -> *mut PyObject {
        self.context.as_ref().map_or(null_mut(), Owned::ptr)
    }

    /// The context variables that each call starts with; null after the end.
    pub(super) fn clean(&self) -> *mut PyObject {
        self.clean.as_ref().map_or(null_mut(), Owned::ptr)
    }

    /// Notes that the slot of a Parker is idle.
    ///
    /// # Safety
    /// The GIL is held.
    pub(super) unsafe fn is_idle(&mut self, parker: &Owned) {
        // SAFETY: passed on.
        self.idle.push(unsafe { Owned::borrowed(parker.ptr()) });
    }

    /// What to call with the Task of a slot that has ended.
    pub(super) fn slot_ended(&self) -> Option<Owned> {
        // SAFETY: the GIL is held, as for all that uses the executor.
        self.slot_ended.as_ref().map(|call| unsafe { Owned::borrowed(call.ptr()) })
    }

    /// Whether `slot` may start another attempt in this turn. If another slot has started one since, this slot has waited;
    /// such slots may each start one attempt, however many they are.
    #[inline]
    pub(super) fn has_time_for(&self, slot: *const PyObject) -> bool {
        self.latest != slot || self.slice.has_time()
    }

    /// Whether an idle slot would find an attempt in this turn.
    fn may_start(&self) -> bool {
        self.slice.has_time() && self.runtime.can_start()
    }

    /// Notes that a row starts in `slot`.
    #[inline]
    pub(super) fn row_starts(&mut self, slot: *const PyObject) {
        self.slice.count_row();
        self.latest = slot;
    }

    /// Notes that an attempt starts in `slot`, whose Task is `task`.
    #[inline]
    pub(super) fn attempt_starts(&mut self, token: Token, slot: *const PyObject, task: *mut PyObject) {
        self.row_starts(slot);
        let index = token.index();
        if self.running.len() <= index {
            self.running.resize(index + 1, Running { task: null_mut(), generation: 0, is_cancelled: false });
        }
        self.running[index] = Running { task, generation: token.generation(), is_cancelled: false };
    }

    /// Forgets an attempt that runs no more.
    #[inline]
    pub(super) fn attempt_ends(&mut self, token: Token) {
        self.running[token.index()].task = null_mut();
    }

    /// Whether the Task was asked to cancel this attempt, which runs.
    pub(super) fn is_cancelled(&self, token: Token) -> bool {
        self.running[token.index()].is_cancelled
    }

    /// The entry of an attempt. None: it runs no more, and another one may have its place.
    fn entry(&mut self, token: Token) -> Option<&mut Running> {
        self.running.get_mut(token.index()).filter(|entry| !entry.task.is_null() && entry.generation == token.generation())
    }

    /// Makes the loop call `turn` soon, once.
    ///
    /// # Safety
    /// The GIL is held.
    #[inline]
    pub(super) unsafe fn schedule_turn(&mut self) {
        if self.in_turn || self.turn_scheduled {
            return;
        }
        self.turn_scheduled = true;
        // SAFETY: passed on.
        unsafe { self.call_schedule() };
    }

    unsafe fn call_schedule(&self) {
        let Some(schedule) = &self.schedule else { return };
        // SAFETY: the GIL is held. `schedule` only puts a callback into the loop's queue. A closed loop refuses it.
        unsafe {
            if Owned::new(PyObject_CallNoArgs(schedule.ptr())).is_none() {
                self.runtime.poison(&format!("the event loop refuses a callback: {}", raised_text()));
            }
        }
    }

    /// What pyarrow converted of a batch. The error is a text for the batch's rows.
    ///
    /// # Safety
    /// The GIL is held; `this` is valid. No reference to its body is alive, because converting runs Python.
    pub(super) unsafe fn converted(this: *mut AsyncioExecutor, batch: &Arc<Batch>) -> Result<Rc<Converted>, String> {
        // SAFETY: passed on.
        unsafe {
            if let Some((_, converted)) = (*this).converted.as_ref().filter(|(of, _)| of.as_ptr() == Arc::as_ptr(batch)) {
                return Ok(Rc::clone(converted));
            }
            let converted = Rc::new(Converted::new(AsyncioExecutor::function(this), batch)?);
            let former = (*this).converted.replace((Arc::downgrade(batch), Rc::clone(&converted)));
            drop(former); // after its place is taken, because dropping may run Python
            Ok(converted)
        }
    }
}

method! {
    /// fileno() -> int: the eventfd, for the loop to watch; -1 after the end.
    fn fileno(this: AsyncioExecutor, _a) { PyLong_FromLong((*this).eventfd.with(EventFd::descriptor).unwrap_or(-1).into()) }
}
method! {
    /// name() -> str: "plugin.function".
    fn function_name(this: AsyncioExecutor, _a) {
        let name = &AsyncioExecutor::function(this).signature.name;
        PyUnicode_FromStringAndSize(name.as_ptr().cast(), name.len() as Py_ssize_t)
    }
}
method! {
    /// context_class() -> type | None
    fn context_class(this: AsyncioExecutor, _a) {
        match &AsyncioExecutor::function(this).context {
            Some(class) => Owned::borrowed(class.ptr()).into_ptr(),
            None => none(),
        }
    }
}
method! {
    /// set_context(context): the first argument of every call.
    fn set_context(this: AsyncioExecutor, context) { (*this).context = Some(Owned::borrowed(context)); none() }
}
method! {
    /// set_schedule(schedule): calling `schedule` makes the loop call `turn` soon.
    fn set_schedule(this: AsyncioExecutor, schedule) { (*this).schedule = Some(Owned::borrowed(schedule)); none() }
}
method! {
    /// set_slot_ended(slot_ended): called with the Task of each slot that has ended.
    fn set_slot_ended(this: AsyncioExecutor, slot_ended) { (*this).slot_ended = Some(Owned::borrowed(slot_ended)); none() }
}
method! {
    /// set_clean(context): the context variables that each call starts with; each slot gets a copy.
    fn set_clean(this: AsyncioExecutor, clean) { (*this).clean = Some(Owned::borrowed(clean)); none() }
}
method! {
    /// allowed_in_flight() -> int
    fn allowed_in_flight(this: AsyncioExecutor, _a) {
        PyLong_FromUnsignedLong((*this).runtime.settings().allowed_in_flight.into())
    }
}
method! {
    /// turn() -> bool: a whole turn, in which idle slots start what there is to start. False: there is more to do. Then come
    /// `orders`, `start_idle` and `end_turn`.
    fn turn(this: AsyncioExecutor, _a) {
        came_back(null_mut()); // the descriptor is the parent's, and so are the rows
        (*this).eventfd.with(EventFd::clear);
        (*this).in_turn = true;
        (*this).turn_scheduled = false;
        (*this).slice.begin();
        let executor = &mut *this;
        executor.runtime.begin_turn(&mut executor.orders);
        if !executor.orders.is_empty() {
            return PyBool_FromLong(0);
        }
        match start_idle_slots(this) {
            Some(rows_left) => PyBool_FromLong((!rows_left && end(this) != After::Settled).into()),
            None => null_mut(),
        }
    }
}
method! {
    /// orders() -> tuple[list[Task], list[tuple[Task, int]]]: the Tasks to cancel; and the Tasks whose calls have begun to
    /// ignore their cancellation, with the ids of their rows.
    fn orders(this: AsyncioExecutor, _a) {
        let mut orders = std::mem::take(&mut (*this).orders);
        let tasks = tasks(this, &orders);
        if !tasks.is_null() {
            orders.cancelled.drain(..).for_each(|token| if let Some(entry) = (*this).entry(token) { entry.is_cancelled = true });
            orders.stuck.clear();
        }
        (*this).orders = orders; // after a failure they are carried out in the next turn
        tasks
    }
}

/// The Tasks of orders, as `orders` answers them; null with an exception set.
unsafe fn tasks(this: *mut AsyncioExecutor, orders: &Orders) -> *mut PyObject {
    // SAFETY: called by `orders`, with the GIL held; the tasks of entries are alive while their attempts run.
    unsafe {
        let (Some(cancelled), Some(stuck)) = (Owned::new(PyList_New(0)), Owned::new(PyList_New(0))) else { return null_mut() };
        for &token in &orders.cancelled {
            let Some(entry) = (*this).entry(token).filter(|entry| !entry.is_cancelled) else { continue };
            if PyList_Append(cancelled.ptr(), entry.task) < 0 {
                return null_mut();
            }
        }
        for attempt in &orders.stuck {
            let Some(task) = (*this).entry(attempt.token).map(|entry| entry.task) else { continue };
            let Some(id) = Owned::new(PyLong_FromUnsignedLongLong(attempt.id)) else { return null_mut() };
            let Some(pair) = Owned::new(PyTuple_Pack(2, task, id.ptr())) else { return null_mut() };
            if PyList_Append(stuck.ptr(), pair.ptr()) < 0 {
                return null_mut();
            }
        }
        PyTuple_Pack(2, cancelled.ptr(), stuck.ptr())
    }
}

/// Steps idle slots while there is something to start in this turn. Answers whether something is left; None: an exception is
/// set.
unsafe fn start_idle_slots(this: *mut AsyncioExecutor) -> Option<bool> {
    // SAFETY: called with the GIL held; `this` is valid. The slots reach the executor: no reference to it is alive meanwhile.
    unsafe {
        while (*this).may_start() {
            let Some(parker) = (*this).idle.pop() else { return Some(true) };
            Owned::new(parker::fire(&parker))?;
        }
    }
    Some(false)
}

/// Tells the host of results, and has the loop call `turn` again if there is more to do.
unsafe fn end(this: *mut AsyncioExecutor) -> After {
    // SAFETY: called with the GIL held; `this` is valid.
    unsafe {
        (*this).in_turn = false;
        let after = (*this).runtime.end_turn();
        if after == After::Again {
            (*this).schedule_turn();
        }
        (*this).closing |= after == After::Settled;
        after
    }
}

method! {
    /// may_start() -> bool: whether an idle slot would find an attempt in this turn.
    fn may_start(this: AsyncioExecutor, _a) { PyBool_FromLong((*this).may_start().into()) }
}
method! {
    /// start_idle() -> bool: idle slots start what there is to start. True: something is left, and all slots are busy.
    fn start_idle(this: AsyncioExecutor, _a) { start_idle_slots(this).map_or(null_mut(), |left| PyBool_FromLong(left.into())) }
}
method! {
    /// end_turn() -> bool: tells the host of results, and has the loop call `turn` again if there is more to do. True: the
    /// runtime is settled, close it.
    fn end_turn(this: AsyncioExecutor, _a) { PyBool_FromLong((end(this) == After::Settled).into()) }
}
method! {
    /// end_idle(): the runtime is settled; its slots, which are all idle, end.
    fn end_idle(this: AsyncioExecutor, _a) {
        while let Some(parker) = (*this).idle.pop() {
            if Owned::new(parker::fire(&parker)).is_none() {
                return null_mut();
            }
        }
        none()
    }
}
method! {
    /// is_given_up() -> bool: a stop has answered that calls are stuck, so the Context must not be closed any more.
    fn is_given_up(this: AsyncioExecutor, _a) { PyBool_FromLong((*this).runtime.is_given_up().into()) }
}
method! {
    /// warn(text: str): writes to the host's log.
    fn warn(this: AsyncioExecutor, said) {
        let (runtime, said) = (Arc::clone((*this).runtime.runtime()), text(said));
        gil::without(|| runtime.log().warn(&said));
        none()
    }
}
method! {
    /// count_left_behind(tasks: int): this many Tasks of calls were cancelled at the stop.
    fn count_left_behind(this: AsyncioExecutor, tasks) { (*this).runtime.count_left_behind(PyLong_AsSize_t(tasks) as u64); none() }
}
method! {
    /// closed(text: str | None): the executor has ended; the text says why the Context's close failed.
    fn closed(this: AsyncioExecutor, why) {
        (*this).schedule = None;
        drop(std::mem::take(&mut (*this).idle));
        (*this).slot_ended = None;
        (*this).clean = None;
        (*this).context = None;
        (*this).converted = None;
        (*this).eventfd.close();
        let result = if why == Py_None() { Ok(()) } else { Err(text(why)) };
        (*this).runtime.closed(result);
        none()
    }
}
method! {
    /// poison(text: str): the toolkit itself has failed.
    fn poison(this: AsyncioExecutor, why) { (*this).runtime.poison(&text(why)); none() }
}

/// Makes the type, with `further` methods, and adds it to the module. False: an exception is set.
///
/// # Safety
/// The GIL is held, in the module's exec; the methods take an object of this type.
pub(super) unsafe fn add_type(module: *mut PyObject, further: &[Method]) -> bool {
    let methods: &[Method] = &[
        (c"fileno", fileno, METH_NOARGS),
        (c"name", function_name, METH_NOARGS),
        (c"context_class", context_class, METH_NOARGS),
        (c"set_context", set_context, METH_O),
        (c"set_schedule", set_schedule, METH_O),
        (c"set_slot_ended", set_slot_ended, METH_O),
        (c"set_clean", set_clean, METH_O),
        (c"allowed_in_flight", allowed_in_flight, METH_NOARGS),
        (c"turn", turn, METH_NOARGS),
        (c"orders", orders, METH_NOARGS),
        (c"start_idle", start_idle, METH_NOARGS),
        (c"may_start", may_start, METH_NOARGS),
        (c"end_turn", end_turn, METH_NOARGS),
        (c"end_idle", end_idle, METH_NOARGS),
        (c"is_given_up", is_given_up, METH_NOARGS),
        (c"count_left_behind", count_left_behind, METH_O),
        (c"warn", warn, METH_O),
        (c"closed", closed, METH_O),
        (c"poison", poison, METH_O),
    ];
    // SAFETY: passed on.
    unsafe {
        let name = c"arroyo_udf_plugin._native.AsyncioExecutor";
        state::of(module).executor.define::<AsyncioExecutor>(module, name, &[methods, further].concat(), &[])
    }
}
