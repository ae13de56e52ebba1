//! The row ids that a runtime was sent and has not answered: each comes out once, and no other id does.
//!
//! Guarantees: a row that comes out was sent, has not come out before, and, of an ordered runtime, is the next one. The rows
//! of a drain cost one look at the ledger per run of neighbours, not per row.
//!
//! Assumes: the GIL is held, so calls do not overlap; and that ids rise from send to send, as the contract demands: a plugin
//! that accepts others is refused.
//!
//! Rows are noted before they are sent, because they may come out before `send` returns.

use crate::object::{none, raise};
use arroyo_udf_plugin::abi;
use pyo3_ffi::*;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::ptr::null_mut;

/// The rows of one send.
#[derive(Debug)]
struct Sent {
    rows: u64,
    /// Rows that have not come out.
    open: u64,
    /// All rows before this one have come out.
    front: u64,
    /// A bit for each row that has come out; empty as long as they come out from the first on.
    out: Vec<u64>,
    /// `send` has not returned.
    under_way: bool,
}

impl Sent {
    /// Notes that the rows `from .. from + count` come out. False: one of them has before.
    fn come_out(&mut self, from: u64, count: u64) -> bool {
        if self.out.is_empty() {
            if from == self.front {
                self.front += count;
                self.open -= count;
                return true;
            }
            if from < self.front {
                return false;
            }
            self.out = vec![0; self.rows.div_ceil(64) as usize];
            self.set(0, self.front);
        }
        if !self.set(from, count) {
            return false;
        }
        self.open -= count;
        while self.front < self.rows && self.has_come_out(self.front) {
            self.front += 1;
        }
        true
    }

    fn has_come_out(&self, row: u64) -> bool {
        if self.out.is_empty() {
            row < self.front
        } else {
            self.out[(row / 64) as usize] >> (row % 64) & 1 != 0
        }
    }

    /// Sets bits. False: one of them was set.
    fn set(&mut self, from: u64, count: u64) -> bool {
        let (mut row, end) = (from, from + count);
        while row < end {
            let bits = (64 - row % 64).min(end - row);
            let mask = (u64::MAX >> (64 - bits)) << (row % 64);
            let word = &mut self.out[(row / 64) as usize];
            if *word & mask != 0 {
                return false;
            }
            *word |= mask;
            row += bits;
        }
        true
    }
}

/// The ids of a drain: the lowest, the highest, and how many runs of neighbours there are.
pub struct Spread {
    pub low: u64,
    pub high: u64,
    pub runs: usize,
}

#[derive(Debug)]
pub struct Ledger {
    ordered: bool,
    /// By their first ids; they do not overlap. One leaves when its rows have come out and its send has returned.
    sent: BTreeMap<u64, Sent>,
    /// Accepted ids were below this.
    next: u64,
    /// Rows that have not come out, those of sends under way included.
    open: u64,
    /// Sends under way.
    senders: u64,
    /// Sends so far.
    sends: u64,
}

/// What `begin` knows and `end` needs, as a number for Python: bit 0: the rows are noted; bit 1: no row was open and no other
/// send under way; above them: the number of sends.
type Token = u64;
const NOTED: Token = 1;
const IDLE: Token = 2;

impl Ledger {
    fn new(ordered: bool) -> Ledger {
        Ledger { ordered, sent: BTreeMap::new(), next: 0, open: 0, senders: 0, sends: 0 }
    }

    fn begin(&mut self, first: u64, rows: u64) -> Token {
        let idle = self.open == 0 && self.senders == 0;
        self.sends += 1;
        self.senders += 1;
        let noted = rows == 0 || self.is_new(first, rows);
        if noted && rows > 0 {
            self.sent.insert(first, Sent { rows, open: rows, front: 0, out: Vec::new(), under_way: true });
            self.open += rows;
        }
        self.sends << 2 | if idle { IDLE } else { 0 } | if noted { NOTED } else { 0 }
    }

    /// Whether all accepted ids are below these, and no send under way has any of them.
    fn is_new(&self, first: u64, rows: u64) -> bool {
        let before = self.sent.range(..=first).next_back();
        let after = self.sent.range(first..).next();
        first >= self.next
            && before.is_none_or(|(begin, sent)| first - begin >= sent.rows)
            && after.is_none_or(|(begin, _)| begin - first >= rows)
    }

    /// Notes what `send` answered. The error says how that breaks the contract.
    fn end(&mut self, first: u64, rows: u64, token: Token, status: i32) -> Result<(), String> {
        self.senders -= 1;
        let accepted = status == abi::OK;
        let mut came_out = 0;
        if token & NOTED != 0 && rows > 0 {
            if let Some(sent) = self.sent.get_mut(&first) {
                came_out = sent.rows - sent.open;
                sent.under_way = false;
                if sent.open == 0 || !accepted {
                    self.open -= sent.open;
                    self.sent.remove(&first);
                }
            }
        }
        let rows_sent = || named(first, rows);
        if accepted && token & NOTED == 0 {
            return Err(format!("accepts {}, and ids must rise from send to send", rows_sent()));
        }
        if accepted && rows > 0 {
            self.next = self.next.max(first.saturating_add(rows));
        }
        if !accepted && came_out > 0 {
            return Err(format!("refuses {}, and {came_out} of them have come out", rows_sent()));
        }
        if status == abi::WOULD_BLOCK && token & IDLE != 0 && token >> 2 == self.sends {
            return Err("answers WOULD_BLOCK although every accepted row has come out".into());
        }
        Ok(())
    }

    /// Notes the rows of a drain. `id` gives the id of each. `alone`: no other drain was under way, so that rows of an
    /// ordered runtime are noted in the order in which they came out. The error says what is wrong.
    pub fn come_out(&mut self, rows: usize, id: impl Fn(usize) -> u64, alone: bool) -> Result<Spread, String> {
        let (mut row, mut last) = (0, None);
        let mut spread = Spread { low: u64::MAX, high: 0, runs: 0 };
        while row < rows {
            let first = id(row);
            let run = run_length(rows - row, |i| id(row + i));
            if self.ordered && last.is_some_and(|last| last > first) {
                return Err(format!("row {first} after row {}, and its function is ordered", last.unwrap_or_default()));
            }
            self.run_comes_out(first, run as u64, alone).map_err(|wrong| {
                let twice = (0..rows).filter(|&row| id(row) == wrong.row).count() > 1;
                wrong.text(twice)
            })?;
            let end = first.wrapping_add(run as u64 - 1);
            spread = Spread { low: spread.low.min(first), high: spread.high.max(end), runs: spread.runs + 1 };
            last = Some(end);
            row += run;
        }
        Ok(spread)
    }

    fn run_comes_out(&mut self, mut first: u64, mut count: u64, alone: bool) -> Result<(), Wrong> {
        while count > 0 {
            if self.ordered && alone {
                // A send under way may be refused, because another was accepted before it: its rows need not come out.
                let next = self.sent.iter().find(|(_, sent)| !sent.under_way).map(|(begin, sent)| begin + sent.front);
                if next.is_some_and(|next| next < first) && self.is_open(first) {
                    return Err(Wrong { row: first, before: next });
                }
            }
            let wrong = Wrong { row: first, before: None };
            let Some((&begin, sent)) = self.sent.range_mut(..=first).next_back() else { return Err(wrong) };
            let from = first - begin;
            if from >= sent.rows {
                return Err(wrong);
            }
            let here = count.min(sent.rows - from);
            if !sent.come_out(from, here) {
                let row = (from..from + here).find(|&row| sent.has_come_out(row)).unwrap_or(from);
                return Err(Wrong { row: begin + row, before: None });
            }
            self.open -= here;
            if sent.open == 0 && !sent.under_way {
                self.sent.remove(&begin);
            }
            first = first.wrapping_add(here);
            count -= here;
        }
        Ok(())
    }

    /// Rows that have not come out, those of sends under way included.
    pub fn open(&self) -> u64 {
        self.open
    }

    fn is_open(&self, id: u64) -> bool {
        let sent = self.sent.range(..=id).next_back();
        sent.is_some_and(|(begin, sent)| id - begin < sent.rows && !sent.has_come_out(id - begin))
    }

    /// Accepted rows that have not come out.
    fn missing(&self) -> u64 {
        self.sent.values().filter(|sent| !sent.under_way).map(|sent| sent.open).sum()
    }

    /// "3 accepted rows have not come out: 1, 4 to 5"; empty if there is none.
    fn missing_text(&self) -> String {
        const MOST_RUNS: usize = 8;
        let missing = self.missing();
        let mut runs: Vec<(u64, u64)> = Vec::new();
        'all: for (begin, sent) in self.sent.iter().filter(|(_, sent)| !sent.under_way) {
            for row in (sent.front..sent.rows).filter(|&row| !sent.has_come_out(row)) {
                let id = begin + row;
                let full = runs.len() == MOST_RUNS;
                match runs.last_mut() {
                    Some((first, count)) if first.wrapping_add(*count) == id => *count += 1,
                    _ if full => break 'all,
                    _ => runs.push((id, 1)),
                }
            }
        }
        let shown: u64 = runs.iter().map(|(_, count)| count).sum();
        let mut text: Vec<String> = runs.iter().map(|&(first, count)| range(first, count)).collect();
        if shown < missing {
            text.push("...".into());
        }
        match missing {
            0 => String::new(),
            1 => format!("1 accepted row has not come out: {}", text.join(", ")),
            _ => format!("{missing} accepted rows have not come out: {}", text.join(", ")),
        }
    }
}

/// How many of the `rows` ids from the first on are neighbours.
fn run_length(rows: usize, id: impl Fn(usize) -> u64) -> usize {
    const AT_ONCE: usize = 64;
    let first = id(0);
    let differs = |i: usize| id(i) != first.wrapping_add(i as u64);
    let mut run = 1;
    // Without a way out of the inner loop, so that it compares several ids at once.
    while run + AT_ONCE <= rows && !(run..run + AT_ONCE).fold(false, |any, i| any | differs(i)) {
        run += AT_ONCE;
    }
    while run < rows && !differs(run) {
        run += 1;
    }
    run
}

/// A row that must not come out now.
struct Wrong {
    row: u64,
    /// The row that must come out before it.
    before: Option<u64>,
}

impl Wrong {
    fn text(&self, twice: bool) -> String {
        match self.before {
            Some(before) => format!("row {} before row {before}, and its function is ordered", self.row),
            None if twice => format!("row {} twice", self.row),
            None => format!("row {}, which was not sent or has come out before", self.row),
        }
    }
}

fn range(first: u64, count: u64) -> String {
    if count == 1 {
        first.to_string()
    } else {
        format!("{first} to {}", first.wrapping_add(count - 1))
    }
}

/// "row 7", "rows 7 to 9".
fn named(first: u64, count: u64) -> String {
    format!("row{} {}", if count == 1 { "" } else { "s" }, range(first, count))
}

// ---- For Python ----

const LEDGER: &CStr = c"arroyo_udf_plugin._native.Ledger";

/// The ledger in a capsule. None: an exception is set.
///
/// # Safety
/// The GIL is held, and no other reference to the ledger is alive.
pub unsafe fn ledger_of<'a>(capsule: *mut PyObject) -> Option<&'a mut Ledger> {
    // SAFETY: the name says that the capsule comes from `ledger`; the caller is the only one.
    unsafe { PyCapsule_GetPointer(capsule, LEDGER.as_ptr()).cast::<Ledger>().as_mut() }
}

unsafe extern "C" fn free(capsule: *mut PyObject) {
    // SAFETY: Python calls this once, when no reference is left; the capsule holds the box of `ledger`.
    unsafe { drop(Box::from_raw(PyCapsule_GetPointer(capsule, LEDGER.as_ptr()).cast::<Ledger>())) };
}

/// ledger(ordered: bool) -> Ledger: for a runtime. ordered: rows come out in the order of their ids.
pub unsafe extern "C" fn ledger(_module: *mut PyObject, ordered: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and one argument.
    unsafe {
        let ledger = Box::into_raw(Box::new(Ledger::new(PyObject_IsTrue(ordered) == 1)));
        PyCapsule_New(ledger.cast(), LEDGER.as_ptr(), Some(free))
    }
}

/// begin_send(ledger, first_id: int, rows: int) -> int: notes rows that are about to be sent. The number is for `end_send`.
pub unsafe extern "C" fn begin_send(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and `count` arguments.
    unsafe {
        if count != 3 {
            return raise(PyExc_TypeError, "begin_send() takes a ledger, an id and a number of rows");
        }
        let (first, rows) = (PyLong_AsUnsignedLongLong(*arguments.add(1)), PyLong_AsUnsignedLongLong(*arguments.add(2)));
        if !PyErr_Occurred().is_null() {
            return null_mut();
        }
        let Some(ledger) = ledger_of(*arguments) else { return null_mut() };
        PyLong_FromUnsignedLongLong(ledger.begin(first, rows))
    }
}

/// end_send(ledger, first_id: int, rows: int, begun: int, status: int): notes what `send` answered. Raises ValueError if that
/// breaks the contract; the text follows "send".
pub unsafe extern "C" fn end_send(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and `count` arguments.
    unsafe {
        if count != 5 {
            return raise(PyExc_TypeError, "end_send() takes a ledger, an id, a number of rows, what begin_send() answered, and a status");
        }
        let (first, rows) = (PyLong_AsUnsignedLongLong(*arguments.add(1)), PyLong_AsUnsignedLongLong(*arguments.add(2)));
        let (begun, status) = (PyLong_AsUnsignedLongLong(*arguments.add(3)), PyLong_AsLong(*arguments.add(4)));
        if !PyErr_Occurred().is_null() {
            return null_mut();
        }
        let Some(ledger) = ledger_of(*arguments) else { return null_mut() };
        match ledger.end(first, rows, begun, status as i32) {
            Ok(()) => none(),
            Err(text) => raise(PyExc_ValueError, &text),
        }
    }
}

/// missing(ledger) -> int: how many accepted rows have not come out.
pub unsafe extern "C" fn missing(_module: *mut PyObject, ledger: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and one argument.
    unsafe {
        let Some(ledger) = ledger_of(ledger) else { return null_mut() };
        PyLong_FromUnsignedLongLong(ledger.missing())
    }
}

/// named_missing(ledger) -> str: says which accepted rows have not come out.
pub unsafe extern "C" fn named_missing(_module: *mut PyObject, ledger: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and one argument; the text is copied.
    unsafe {
        let Some(ledger) = ledger_of(ledger) else { return null_mut() };
        let text = ledger.missing_text();
        PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as Py_ssize_t)
    }
}

/// sends(ledger) -> int: sends so far.
pub unsafe extern "C" fn sends(_module: *mut PyObject, ledger: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and one argument.
    unsafe {
        let Some(ledger) = ledger_of(ledger) else { return null_mut() };
        PyLong_FromUnsignedLongLong(ledger.sends)
    }
}
