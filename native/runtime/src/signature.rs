//! A function as the descriptor declares it: argument names and layouts for batches that come in, constant schemas for
//! arrays that go out. Checked once and kept for the life of the process.

use crate::arrow::{child_schema, Layout};
use crate::retired::{self, Retired};
use crate::sized;
use arroyo_udf_abi::{ArrowSchema, Function, Options, ARROW_FLAG_NULLABLE};
use std::ffi::{CStr, CString};
use std::ptr::null_mut;
use std::time::Duration;

#[derive(Debug)]
pub struct Signature {
    /// "plugin.function", for messages.
    pub name: String,
    pub kind: u32,
    pub vectorized: bool,
    pub arguments: Vec<(String, Layout)>,
    pub nullable: Vec<bool>,
    pub argument_schema: &'static ArrowSchema,
    pub returns: Layout,
    pub returns_nullable: bool,
    pub return_schema: &'static ArrowSchema,
    /// The author's options; unset for a sync function.
    pub options: Options,
    /// How long a worker may take for a batch of a sync function; None: as long as it takes.
    pub run_timeout: Option<Duration>,
    /// Bit i: argument number i may come as a constant.
    pub constants: u64,
    /// Of `run`'s results if every row is a value: {value}.
    pub run_values: &'static ArrowSchema,
    /// Of `run`'s results otherwise: {value, outcome, error} (R3a).
    pub run_outcomes: &'static ArrowSchema,
    /// Of `drain_results`: {id, value, outcome, attempts, error}.
    pub drained: &'static ArrowSchema,
    /// Where the plugin's input arrays wait for their release.
    pub retired: &'static Retired,
}

impl Signature {
    /// Reads and checks a function of the descriptor of `plugin`. The error is a text for the host.
    ///
    /// # Safety
    /// `function` is null, or points to a constant of a plugin: a function of its descriptor.
    pub unsafe fn read(plugin: &str, function: *const Function) -> Result<Signature, String> {
        if function.is_null() {
            return Err(format!("{plugin}: a null function"));
        }
        // SAFETY: the caller promises a constant, of the size that it states.
        let function = unsafe { sized::read(function) }.map_err(|text| format!("{plugin}: {text}"))?;
        // SAFETY: names of a descriptor are NUL-terminated constants.
        let name = format!("{plugin}.{}", unsafe { text(function.name) });
        // SAFETY: schemas of a descriptor are constants.
        let (argument_schema, return_schema): (&'static ArrowSchema, &'static ArrowSchema) = unsafe {
            (
                function.arguments.as_ref().ok_or_else(|| format!("{name}: no arguments in the descriptor"))?,
                function.returns.as_ref().ok_or_else(|| format!("{name}: no return type in the descriptor"))?,
            )
        };
        let unsupported = |what: &str, format: String| format!("{name}: {what} has the unsupported Arrow type {format}");
        let mut arguments = Vec::new();
        let mut nullable = Vec::new();
        for i in 0..argument_schema.n_children as usize {
            // SAFETY: as above, for the children.
            let (field, layout) = unsafe {
                let field = child_schema(argument_schema, i)?;
                (text(field.name), Layout::of(field).map_err(|format| unsupported(&format!("argument {i}"), format))?)
            };
            nullable.push(child_is_nullable(argument_schema, i));
            arguments.push((field, layout));
        }
        // SAFETY: as above.
        let returns = unsafe { Layout::of(return_schema) }.map_err(|format| unsupported("the result", format))?;
        let options = match function.options.is_null() {
            true => Options::unset(),
            // SAFETY: options of a descriptor are a constant, of the size that they state.
            false => unsafe { sized::read(function.options) }.map_err(|text| format!("{name}: {text}"))?,
        };
        let value = || renamed(return_schema, c"value");
        Ok(Signature {
            constants: function.constants & bytes_of(&arguments),
            kind: function.kind,
            vectorized: function.vectorized != 0,
            arguments,
            nullable,
            argument_schema,
            returns,
            returns_nullable: return_schema.flags & ARROW_FLAG_NULLABLE != 0,
            return_schema,
            options,
            run_timeout: (function.timeout_ns > 0).then(|| Duration::from_nanos(function.timeout_ns)),
            run_values: structure(vec![value()]),
            run_outcomes: structure(vec![value(), field(c"outcome", c"C", 0), field(c"error", c"u", ARROW_FLAG_NULLABLE)]),
            drained: structure(vec![
                field(c"id", c"L", 0),
                value(),
                field(c"outcome", c"C", 0),
                field(c"attempts", c"S", 0),
                field(c"error", c"u", ARROW_FLAG_NULLABLE),
            ]),
            retired: &retired::LIBRARY,
            name,
        })
    }
}

/// Bit i: the values of argument number i are bytes, which cost something to repeat.
fn bytes_of(arguments: &[(String, Layout)]) -> u64 {
    let bits = arguments.iter().take(64).enumerate().map(|(i, (_, layout))| u64::from(layout.is_bytes()) << i);
    bits.fold(0, |all, bit| all | bit)
}

fn child_is_nullable(schema: &ArrowSchema, i: usize) -> bool {
    // SAFETY: the caller has read this child before.
    unsafe { child_schema(schema, i) }.is_ok_and(|child| child.flags & ARROW_FLAG_NULLABLE != 0)
}

/// A text of a descriptor; empty if null.
///
/// # Safety
/// `pointer` is null or NUL-terminated.
pub unsafe fn text(pointer: *const std::ffi::c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: the caller promises a NUL-terminated text.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// A leaf of a constant schema.
pub fn field(name: &CStr, format: &CStr, flags: i64) -> ArrowSchema {
    ArrowSchema { format: leak(format), name: leak(name), flags, ..ArrowSchema::empty() }
}

/// A struct of fields, leaked: constants of a plugin live as long as the process.
pub fn structure(fields: Vec<ArrowSchema>) -> &'static ArrowSchema {
    let children: Vec<*mut ArrowSchema> = fields.into_iter().map(|field| Box::into_raw(Box::new(field))).collect();
    let children = Vec::leak(children);
    Box::leak(Box::new(ArrowSchema {
        format: leak(c"+s"),
        name: leak(c""),
        n_children: children.len() as i64,
        children: if children.is_empty() { null_mut() } else { children.as_mut_ptr() },
        ..ArrowSchema::empty()
    }))
}

/// The same type with another name, always nullable: only rows that are values have one.
fn renamed(schema: &'static ArrowSchema, name: &CStr) -> ArrowSchema {
    ArrowSchema {
        format: schema.format,
        name: leak(name),
        metadata: schema.metadata,
        flags: schema.flags | ARROW_FLAG_NULLABLE,
        n_children: schema.n_children,
        children: schema.children,
        dictionary: null_mut(),
        release: None,
        private_data: null_mut(),
    }
}

fn leak(text: &CStr) -> *const std::ffi::c_char {
    CString::from(text).into_raw()
}

/// A constant type as Arroyo's interface passes it: a copy without name and flags.
pub fn exported(schema: &'static ArrowSchema) -> ArrowSchema {
    // SAFETY: a constant schema is valid.
    ArrowSchema { name: std::ptr::null(), flags: 0, ..unsafe { copy(schema) } }
}

/// A copy of a constant schema, with a release of its own: its consumer may own it.
///
/// # Safety
/// `schema` is valid; its release may be null.
pub unsafe fn copy(schema: &ArrowSchema) -> ArrowSchema {
    let mut children: Vec<*mut ArrowSchema> = (0..schema.n_children as usize)
        // SAFETY: a valid schema has n_children valid children.
        .map(|i| unsafe { Box::into_raw(Box::new(copy(&**schema.children.add(i)))) })
        .collect();
    ArrowSchema {
        // Texts of a constant live as long as the process.
        format: schema.format,
        name: schema.name,
        metadata: schema.metadata,
        flags: schema.flags,
        n_children: schema.n_children,
        children: children.as_mut_ptr(),
        dictionary: null_mut(),
        release: Some(release_copy),
        private_data: Box::into_raw(Box::new(children)).cast(),
    }
}

unsafe extern "C" fn release_copy(schema: *mut ArrowSchema) {
    // SAFETY: `private_data` is the box of `copy`; a child that the consumer has moved out has a null release.
    unsafe {
        for child in *Box::from_raw((*schema).private_data.cast::<Vec<*mut ArrowSchema>>()) {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
        (*schema).release = None;
    }
}
