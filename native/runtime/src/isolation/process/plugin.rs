//! The plugin in a worker: opened, and called through its table.
//!
//! Assumes that the host is sound: what it sends is not checked again, and arguments of calls for a row are used where they
//! lie.

use super::journal::Journal;
use super::mailbox::{Mailbox, Reader};
use super::message::{identity, write_failure, RECORDS, RESULTS};
use super::parcel::{self, Take};
use crate::arrow::{check_rows, child_schema, Column, Layout, Owned};
use crate::failure::Failure;
use crate::forks;
use crate::signature::{text, Signature};
use crate::sized;
use crate::value::Value;
use arroyo_udf_abi as abi;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::ptr::{null, null_mut};

/// Whether the loop over the rows of a function takes the [`Journal`]: of its plugin's language, and its types.
pub type Journals = fn(&str, &Signature) -> bool;

/// The plugin, opened in this process.
pub struct Plugin {
    pub table: &'static abi::Table,
    language: String,
    pub functions: Vec<Function>,
}

pub struct Function {
    pub signature: Signature,
    arguments: Layout,
}

impl Plugin {
    /// Opens the library that the host has loaded: it was found at this path, is open in `library`, and has that identity.
    ///
    /// It is opened by its path as long as it is there, because a library may look for others beside it.
    pub fn open(path: Vec<u8>, library: OwnedFd, expected: u64) -> Result<Plugin, String> {
        let path = CString::new(path).map_err(|error| error.to_string())?;
        let file = path.to_string_lossy().into_owned();
        let path = match is_at(&path, &library) {
            true => path,
            false => {
                let open = format!("/proc/self/fd/{}", library.into_raw_fd()); // for ever, as it may look into itself
                CString::new(open).map_err(|error| error.to_string())?
            }
        };
        // SAFETY: the path is a text; the host has checked this library's table and descriptor before. It is never closed.
        unsafe {
            let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NODELETE);
            let error = || match libc::dlerror() {
                text if text.is_null() => "no reason given".to_string(),
                text => CStr::from_ptr(text).to_string_lossy().into_owned(),
            };
            if library.is_null() {
                return Err(format!("{file}: cannot be opened: {}", error()));
            }
            let table = libc::dlsym(library, c"arroyo_udf_plugin".as_ptr()).cast::<abi::Table>().as_ref();
            let table = table.filter(|table| table.magic == abi::MAGIC).ok_or_else(|| format!("{file}: is not a plugin"))?;
            let descriptor = sized::read((table.describe)())?;
            if identity(&descriptor) != expected {
                return Err(format!("{file}: another library than the one that the host has loaded: load the plugin again"));
            }
            let plugin = text(descriptor.name);
            let functions = (0..descriptor.n_functions as usize)
                .map(|number| {
                    let signature = Signature::read(&plugin, *descriptor.functions.add(number))?;
                    let arguments = Layout::Struct(signature.arguments.iter().map(|(_, layout)| layout.clone()).collect());
                    Ok(Function { signature, arguments })
                })
                .collect::<Result<Vec<_>, String>>()?;
            Ok(Plugin { table, language: text(descriptor.language), functions })
        }
    }

    /// Runs the batch of message `number`, and writes the answer. An error: the host's message is broken, or there is no
    /// memory for an answer.
    pub fn run(&self, message: &mut Reader, sent: &mut Mailbox, number: u64, journals: Journals) -> Result<(), String> {
        let index = message.size()?;
        let function = self.functions.get(index).ok_or("the host calls a function that is not there")?;
        // A vectorised function may keep its arrays, and the host writes the next message over this one.
        let take = if function.signature.vectorized { Take::Copy } else { Take::View };
        let memory = |error: io::Error| format!("no shared memory for the results: {error}");
        let mut arguments = match parcel::read(&function.arguments, take, message) {
            Ok(arguments) => Owned(arguments),
            // The host is sound, so it is memory that a copy lacks.
            Err(why) => {
                sent.write().begin(number);
                let text = format!("{}: no memory in its worker process for the arguments: {why}", function.signature.name);
                return write_failure(sent, abi::ENVIRONMENT, &text).map_err(memory);
            }
        };
        if function.signature.vectorized {
            if function.signature.run_timeout.is_some() {
                function.load(self.table, index as u32); // the time begins afterwards
            }
            sent.write().begin(number);
            return match function.call(self.table, index as u32, &mut arguments.0) {
                Ok(results) if results.are_sound() && results.write(&function.signature, sent).is_ok() => Ok(()),
                // Row by row, so that those at fault, or without room, are errors, and the others have their values.
                Ok(results) => results.write_rows(&function.signature, sent).map_err(memory),
                Err(failure) => write_failure(sent, failure.status, &failure.text).map_err(memory),
            };
        }
        let rows = arguments.0.length as usize;
        let call = |first: usize, count: usize| function.call(self.table, index as u32, &mut slice(&arguments.0, first, count));
        if function.signature.run_timeout.is_some() {
            drop(call(0, 0)); // imports the plugin's module, if that was not done; the time begins afterwards
        }
        let mut message = sent.write();
        message.byte(RECORDS).map_err(memory)?;
        let mut journal = Journal::new(message);
        // The journal is empty now, so the host may look into it.
        journal.begin(number);
        let whole = journals(&self.language, &function.signature);
        let mut failure = None;
        while (journal.rows() as usize) < rows {
            let first = journal.rows() as usize;
            let count = if whole { rows - first } else { 1 };
            match journal.during(|| call(first, count)) {
                Ok(results) => {
                    let written = journal.rows() as usize - first;
                    (written..count)
                        .for_each(|row| journal.record(results.row(&function.signature, row, row as u64).as_ref().map_err(|text| &**text)));
                }
                Err(why) if journal.rows() == 0 => {
                    failure = Some(why);
                    break;
                }
                Err(why) => journal.error(&why.text),
            }
            if let Some(error) = journal.broken() {
                return Err(format!("no shared memory for the results: {error}"));
            }
        }
        match failure {
            Some(failure) => write_failure(sent, failure.status, &failure.text).map_err(memory),
            None => Ok(()),
        }
    }
}

/// Whether an open file is the one at a path.
fn is_at(path: &CStr, file: &OwnedFd) -> bool {
    let there = std::fs::metadata(OsStr::from_bytes(path.to_bytes()));
    let here = file.try_clone().and_then(|file| File::from(file).metadata());
    matches!((there, here), (Ok(there), Ok(here)) if (there.dev(), there.ino()) == (here.dev(), here.ino()))
}

/// Some rows of an array that outlives the answer, as an array that may be released.
fn slice(whole: &abi::ArrowArray, first: usize, count: usize) -> abi::ArrowArray {
    abi::ArrowArray {
        length: count as i64,
        null_count: whole.null_count,
        offset: first as i64,
        n_buffers: whole.n_buffers,
        n_children: whole.n_children,
        buffers: whole.buffers,
        children: whole.children,
        dictionary: whole.dictionary,
        release: Some(release_slice),
        private_data: null_mut(),
    }
}

unsafe extern "C" fn release_slice(array: *mut abi::ArrowArray) {
    // SAFETY: called with the array, once.
    unsafe { (*array).release = None };
}

impl Function {
    /// Imports the plugin's module, if that was not done, and calls nothing: there are no arguments.
    fn load(&self, table: &abi::Table, number: u32) {
        let mut error = abi::Error::empty();
        // SAFETY: the contract has an error for pointers that are null; the error struct is ours.
        let status = unsafe { (table.run)(number, null_mut(), null(), null_mut(), null_mut(), &mut error) };
        drop(failure(status, error)); // what is wrong with the module is the next call's
    }

    /// Takes the arguments, unless it fails.
    fn call(&self, table: &abi::Table, number: u32, arguments: &mut abi::ArrowArray) -> Result<Results, Failure> {
        let mut error = abi::Error::empty();
        let mut results = Results { array: Owned(abi::ArrowArray::empty()), schema: std::ptr::null() };
        let rows = arguments.length;
        // SAFETY: the arguments are of the declared types; the other structs are ours, to be filled in.
        let status = unsafe { (table.run)(number, arguments, std::ptr::null(), &mut results.array.0, &mut results.schema, &mut error) };
        // Before the child writes where its parent does.
        if forks::is_stray() {
            let first = (status == abi::OK && rows > 0).then(|| results.row(&self.signature, 0, 0));
            forks::end(match (status, &first) {
                (abi::OK, Some(Err(text))) => Some(text),
                (abi::OK, _) => None,
                _ => Some("the function was not called"),
            });
        }
        if status != abi::OK {
            return Err(failure(status, error));
        }
        let wrong = match results.array.0.length {
            _ if results.schema.is_null() => "no schema".to_string(),
            length if length != rows => format!("{length} rows for {rows}"),
            _ => return Ok(results),
        };
        Err(Failure::internal(format!("{}: the plugin breaks the contract: run answers {wrong}", self.signature.name)))
    }
}

/// The failure of a call.
pub fn failure(status: abi::Status, mut error: abi::Error) -> Failure {
    // SAFETY: the plugin has filled in the error, and releases it itself.
    unsafe {
        let text = text(error.text);
        if let Some(release) = error.release {
            release(&mut error);
        }
        Failure { retryable: error.retryable == abi::YES, ..Failure::new(status, text) }
    }
}

/// What `run` has answered.
pub struct Results {
    pub array: Owned,
    pub schema: *const abi::ArrowSchema,
}

impl Results {
    /// The field of this name.
    fn field(&self, name: &CStr) -> Option<&abi::ArrowArray> {
        // SAFETY: the plugin answers with a valid schema, and an array that follows it.
        unsafe {
            let schema = self.schema.as_ref()?;
            let is_named =
                |i: &usize| child_schema(schema, *i).is_ok_and(|child| !child.name.is_null() && CStr::from_ptr(child.name) == name);
            let i = (0..self.array.0.n_children as usize).find(is_named)?;
            (*self.array.0.children.add(i)).as_ref()
        }
    }

    /// A value of row `row`; null if there is no such field.
    pub fn read(&self, name: &CStr, layout: &Layout, row: usize) -> Result<Value, String> {
        let Some(field) = self.field(name) else { return Ok(Value::Null) };
        // SAFETY: an array of the plugin, which lives as long as self.
        let column = unsafe { Column::new(field, layout, "the result") }?;
        let row = self.array.0.offset as usize + row;
        if row < field.length as usize {
            return column.value(layout, row);
        }
        Err(format!("the result has only {} rows", field.length))
    }

    /// How row `row` ended, which has that number in texts.
    pub fn row(&self, signature: &Signature, row: usize, number: u64) -> Result<Value, String> {
        match self.read(c"outcome", &Layout::Fixed(1), row)? {
            Value::Null | Value::Fixed(0) => {
                let value = self.read(c"value", &signature.returns, row)?;
                self.check(row..row + 1)?;
                Ok(value)
            }
            _ => match self.read(c"error", &Layout::Text, row)? {
                Value::Bytes(text) => {
                    let text = String::from_utf8_lossy(&text);
                    let head = format!("{}, row {number}: ", signature.name);
                    Err(text.strip_prefix(&head).unwrap_or(&text).to_string())
                }
                _ => Err("the function failed, and does not say why".to_string()),
            },
        }
    }

    /// Whether some rows are what their type says, texts and decimals included.
    fn check(&self, rows: Range<usize>) -> Result<(), String> {
        // SAFETY: the plugin answers with a valid schema, and an array that follows it in all that the check cannot tell.
        unsafe { check_rows(&self.array.0, self.schema.as_ref().ok_or("the result has no schema")?, rows, true) }
    }

    fn are_sound(&self) -> bool {
        self.check(0..self.array.0.length as usize).is_ok()
    }

    /// How each row ended.
    fn write_rows(&self, signature: &Signature, sent: &mut Mailbox) -> io::Result<()> {
        let mut message = sent.write();
        message.byte(RECORDS)?;
        let mut journal = Journal::new(message);
        for row in 0..self.array.0.length as usize {
            journal.record(self.row(signature, row, row as u64).as_ref().map_err(|text| &**text));
        }
        journal.broken().map_or(Ok(()), |error| Err(io::Error::new(error.kind(), error.to_string())))
    }

    /// All of them, which are sound.
    fn write(&self, signature: &Signature, sent: &mut Mailbox) -> io::Result<()> {
        let rows = self.array.0.offset as usize..(self.array.0.offset + self.array.0.length) as usize;
        let mut message = sent.write();
        message.byte(RESULTS)?;
        let fields = [c"value", c"outcome", c"error"].map(|name| self.field(name));
        message.byte(u8::from(fields[1].is_some()))?;
        message.number(rows.len() as u64)?;
        message.number(0)?; // no validity of its own
        let layouts = [&signature.returns, &Layout::Fixed(1), &Layout::Text];
        for (field, layout) in fields.into_iter().zip(layouts) {
            if let Some(field) = field {
                // SAFETY: checked above.
                unsafe { parcel::write(field, layout, rows.clone(), &mut message) }?;
            }
        }
        Ok(())
    }
}
