//! The engine's side of `arroyo_udf.h` in one file, like `../c/host.c`: opens a plugin, prints its functions, and calls one
//! with five example rows, the third with nulls.
//!
//!     cargo run -- PLUGIN.so [FUNCTION [subinterpreter|process]]
//!
//! With a mode, in two workers.
//!
//! Handles int64 ("l"), float64 ("g") and utf8 ("u") by hand; an engine would use its Arrow library.

use std::error::Error;
use std::ffi::{c_char, c_void, CStr};
use std::ptr::null;

use arroyo_udf_abi as abi;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

const ROWS: usize = 5;
const NULL_ROW: usize = 2;
const SECOND: u64 = 1_000_000_000;
// Not in libloading. A plugin is never unloaded: its threads and release callbacks may outlive every handle.
const RTLD_NODELETE: i32 = 0x1000;

type Outcome<T> = Result<T, Box<dyn Error>>;

// ---- A batch of arguments: made here; its owner frees it through its release ----

static TEXTS: &[u8] = b"N14228N24211N3ALAAn535ua";
static OFFSETS: [i32; ROWS + 1] = [0, 6, 12, 12, 18, 24];
static VALIDITY: [u8; 1] = [!(1 << NULL_ROW)];

/// The memory of one argument.
struct Column {
    array: abi::ArrowArray,
    buffers: [*const c_void; 3],
    integers: [i64; ROWS],
    floats: [f64; ROWS],
}

/// Owns the memory of a batch; the ArrowArrays only point into it.
struct Batch {
    columns: Vec<Column>,
    children: Vec<*mut abi::ArrowArray>,
    no_buffer: [*const c_void; 1],
}

unsafe extern "C" fn release_child(child: *mut abi::ArrowArray) {
    // SAFETY: an Arrow release callback gets a valid array. Its memory belongs to the batch.
    unsafe { (*child).release = None };
}

unsafe extern "C" fn release_batch(array: *mut abi::ArrowArray) {
    // SAFETY: an Arrow release callback gets a valid array, once; `private_data` is from `Box::into_raw` in make_batch.
    let mut batch = unsafe {
        (*array).release = None;
        Box::from_raw((*array).private_data.cast::<Batch>())
    };
    for column in &mut batch.columns {
        if let Some(release) = column.array.release {
            // SAFETY: not yet released, so its parent does it.
            unsafe { release(&mut column.array) };
        }
    }
}

/// Makes arguments of the types that the plugin declares.
fn make_batch(arguments: &abi::ArrowSchema) -> Outcome<abi::ArrowArray> {
    let new_column = |i: i64| Column {
        array: abi::ArrowArray::empty(),
        buffers: [VALIDITY.as_ptr().cast(), null(), null()],
        integers: std::array::from_fn(|row| 1000 + 100 * row as i64 - 10 * i),
        floats: std::array::from_fn(|row| 0.5 * row as f64),
    };
    let columns = (0..arguments.n_children).map(new_column).collect();
    let mut batch = Box::new(Batch { columns, children: Vec::new(), no_buffer: [null()] });
    // From here on the columns do not move, so pointers into them stay valid.
    for (schema, column) in children(arguments).zip(&mut batch.columns) {
        let data: &[*const c_void] = match text(schema.format) {
            "l" => &[column.integers.as_ptr().cast()],
            "g" => &[column.floats.as_ptr().cast()],
            "u" => &[OFFSETS.as_ptr().cast(), TEXTS.as_ptr().cast()],
            other => return Err(format!("argument {}: this host cannot make values of type {other}", text(schema.name)).into()),
        };
        column.buffers[1..=data.len()].copy_from_slice(data);
        column.array = abi::ArrowArray {
            length: ROWS as i64,
            null_count: 1,
            n_buffers: 1 + data.len() as i64,
            buffers: column.buffers.as_mut_ptr(),
            release: Some(release_child),
            ..abi::ArrowArray::empty()
        };
        batch.children.push(&mut column.array);
    }
    Ok(abi::ArrowArray {
        length: ROWS as i64,
        n_buffers: 1,
        n_children: batch.children.len() as i64,
        buffers: batch.no_buffer.as_mut_ptr(),
        children: batch.children.as_mut_ptr(),
        release: Some(release_batch),
        private_data: Box::into_raw(batch).cast(),
        ..abi::ArrowArray::empty()
    })
}

/// Releases an array.
fn release(mut array: abi::ArrowArray) {
    if let Some(release) = array.release {
        // SAFETY: we own the array, and it is not released yet.
        unsafe { release(&mut array) };
    }
}

// ---- Reading schemas and results ----

fn text<'a>(pointer: *const c_char) -> &'a str {
    // SAFETY: the contract: names and formats are constant zero-ended UTF-8.
    unsafe { CStr::from_ptr(pointer) }.to_str().unwrap_or("(not UTF-8)")
}

fn children(schema: &abi::ArrowSchema) -> impl Iterator<Item = &abi::ArrowSchema> {
    // SAFETY: the contract: `children` has n_children constant schemas.
    (0..schema.n_children as usize).map(|i| unsafe { &**schema.children.add(i) })
}

/// One value as text. `array` must have type `format` and this row.
unsafe fn value(format: &str, array: &abi::ArrowArray, row: i64) -> String {
    let i = (array.offset + row) as usize;
    // SAFETY: the caller's promise: the buffers are those of an array of this type, which has row i.
    unsafe {
        let validity = (*array.buffers).cast::<u8>();
        let data = *array.buffers.add(1);
        if !validity.is_null() && *validity.add(i / 8) >> (i % 8) & 1 == 0 {
            return "null".into();
        }
        match format {
            "l" => (*data.cast::<i64>().add(i)).to_string(),
            "L" => (*data.cast::<u64>().add(i)).to_string(),
            "S" => (*data.cast::<u16>().add(i)).to_string(),
            "C" => (*data.cast::<u8>().add(i)).to_string(),
            "g" => format!("{:?}", *data.cast::<f64>().add(i)),
            "u" => {
                let offsets = data.cast::<i32>().add(i);
                let (begin, end) = (*offsets as usize, *offsets.add(1) as usize);
                let bytes = std::slice::from_raw_parts((*array.buffers.add(2)).cast::<u8>().add(begin), end - begin);
                format!("{:?}", String::from_utf8_lossy(bytes))
            }
            other => format!("(a value of type {other})"),
        }
    }
}

/// Finds fields by name, because a later version of a plugin may send more.
fn print_results(schema: *const abi::ArrowSchema, results: abi::ArrowArray) {
    // SAFETY: the contract: OK comes with a constant schema.
    let schema = unsafe { &*schema };
    for row in 0..results.length {
        let fields: Vec<String> = children(schema)
            .enumerate()
            .map(|(i, field)| {
                // SAFETY: the contract: the results are a struct array of this schema.
                let value = unsafe { value(text(field.format), &**results.children.add(i), results.offset + row) };
                format!("{}={value}", text(field.name))
            })
            .collect();
        println!("{}", fields.join(" "));
    }
    release(results);
}

fn type_name(schema: &abi::ArrowSchema) -> String {
    let nullable = if schema.flags & abi::ARROW_FLAG_NULLABLE != 0 { "?" } else { "" };
    format!("{}{nullable}", text(schema.format))
}

// ---- Calls ----

/// The status of a call as a result. The text of an error is copied, then released.
fn check(call: &str, status: abi::Status, mut error: abi::Error) -> Outcome<abi::Status> {
    if status < abi::INVALID_ARGUMENT {
        return Ok(status);
    }
    let message = if error.text.is_null() { "no text" } else { text(error.text) };
    let message = format!("{call} failed with status {status}: {message}");
    if let Some(release) = error.release {
        // SAFETY: set by the plugin for this error, called once, after the text was copied.
        unsafe { release(&mut error) };
    }
    Err(message.into())
}

const NO_ERROR: abi::Error = abi::Error::empty();

fn call_sync(table: *const abi::Table, function: u32, mut batch: abi::ArrowArray) -> Outcome<()> {
    let (mut results, mut schema, mut error) = (abi::ArrowArray::empty(), null(), NO_ERROR);
    // SAFETY: the contract of `run`; all pointers are to locals.
    let status = unsafe { ((*table).run)(function, &mut batch, null(), &mut results, &mut schema, &mut error) };
    if status != abi::OK {
        release(batch); // not moved: still ours
    }
    check("run", status, error)?;
    print_results(schema, results);
    Ok(())
}

/// Prints the rows that have ended.
fn drain(table: *const abi::Table, handle: abi::Handle) -> Outcome<()> {
    loop {
        let (mut results, mut schema, mut error) = (abi::ArrowArray::empty(), null(), NO_ERROR);
        // SAFETY: the contract of `drain_results`; all pointers are to locals.
        let status = unsafe { ((*table).drain_results)(handle, 0, &mut results, &mut schema, &mut error) };
        match check("drain_results", status, error)? {
            abi::OK => print_results(schema, results),
            _ => return Ok(()), // WOULD_BLOCK: none now; END: no more
        }
    }
}

fn send_and_drain(table: *const abi::Table, handle: abi::Handle, mut batch: abi::ArrowArray) -> Outcome<()> {
    let mut error = NO_ERROR;
    // SAFETY: the contract of `send`; all pointers are to locals.
    let status = unsafe { ((*table).send)(handle, 1, &mut batch, null(), &mut error) };
    if status != abi::OK {
        release(batch); // also after WOULD_BLOCK; an engine would wait for room and send again
    }
    check("send", status, error)?;
    let mut error = NO_ERROR;
    // SAFETY: the contract of `wait`.
    let status = unsafe { ((*table).wait)(handle, abi::RESULTS, 10 * SECOND, &mut error) };
    check("wait", status, error)?;
    drain(table, handle)
}

fn call_async(table: *const abi::Table, function: u32, batch: abi::ArrowArray) -> Outcome<()> {
    let (mut handle, mut error) = (0, NO_ERROR);
    // SAFETY: the contract of `start`; NULL means the author's options.
    let status = unsafe { ((*table).start)(function, null(), &mut handle, &mut error) };
    if let Err(failed) = check("start", status, error) {
        release(batch);
        return Err(failed);
    }
    let sent = send_and_drain(table, handle, batch);
    // Lets running rows end; the remaining results come out of drain_results until END.
    let mut error = NO_ERROR;
    // SAFETY: the contract of `stop_runtime`.
    let status = unsafe { ((*table).stop_runtime)(handle, abi::DRAIN, 10 * SECOND, &mut error) };
    if status == abi::STUCK {
        eprintln!("some call ignored its cancellation");
    }
    let stopped = check("stop_runtime", status, error).and_then(|_| drain(table, handle));
    let mut error = NO_ERROR;
    // SAFETY: the contract of `release`; the handle is not used again.
    let status = unsafe { ((*table).release)(handle, &mut error) };
    let released = check("release", status, error);
    sent.and(stopped).and(released).map(|_| ())
}

// ---- Loading ----

/// A plugin's table. Magic, version and size are checked before anything else in it is read.
fn load(path: &str) -> Outcome<*const abi::Table> {
    // SAFETY: loading runs the library's constructors, which are harmless in a plugin.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) }?;
    // SAFETY: the symbol is a constant; its fields are checked one by one below.
    let table = unsafe { library.get::<*const abi::Table>(b"arroyo_udf_plugin\0") }
        .map_err(|_| format!("not a plugin: {path} has no symbol arroyo_udf_plugin"))?;
    let table: *const abi::Table = *table;
    // SAFETY: the first 16 bytes of the table are the same in all versions. No reference to the whole table yet.
    let (magic, version, size) = unsafe { ((*table).magic, (*table).abi_version, u64::from((*table).table_size)) };
    if magic != abi::MAGIC {
        let instead = "not a plugin, or built before ABI version 1 was final (build it again)";
        return Err(format!("{instead}: the table of {path} does not begin with the magic number").into());
    }
    if version != abi::ABI_VERSION {
        return Err(format!("{path} has ABI version {version}, this host has {}: build it again", abi::ABI_VERSION).into());
    }
    if size < abi::TABLE_SIZE_1 {
        let needed = abi::TABLE_SIZE_1;
        return Err(format!("the table of {path} is truncated: it has {size} bytes, this host needs {needed}").into());
    }
    // A constant, in a library that is never unloaded. No reference: it may be smaller than our mirror, which may have
    // slots of later versions. This host calls none of those.
    Ok(table)
}

/// The part of a plugin's struct that this host knows; the struct may be smaller or larger. `size_1`: its size in version 1.
/// For structs that begin with their size, and whose fields may all be zero.
fn known<T: Copy>(from: *const T, size_1: u64, what: &str) -> Outcome<T> {
    if from.is_null() {
        return Err(format!("{what} is NULL").into());
    }
    // SAFETY: the struct begins with its size.
    let size = unsafe { from.cast::<u64>().read() };
    if size < size_1 {
        return Err(format!("{what} has {size} bytes, this host needs {size_1}").into());
    }
    let mut known = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: both have as many bytes as are copied, and zero is valid in all others.
    unsafe {
        std::ptr::copy_nonoverlapping(from.cast::<u8>(), known.as_mut_ptr().cast(), size_of::<T>().min(size as usize));
        Ok(known.assume_init())
    }
}

fn kind(function: &abi::Function) -> &'static str {
    match function.kind {
        abi::SYNC => "sync",
        abi::ASYNC => "async",
        _ => "unknown",
    }
}

/// Calls a function with one batch.
fn call(table: *const abi::Table, number: u32, function: &abi::Function) -> Outcome<()> {
    let call = match function.kind {
        abi::SYNC => call_sync,
        abi::ASYNC => call_async,
        other => return Err(format!("function {} has kind {other}, which this host cannot call", text(function.name)).into()),
    };
    // SAFETY: the contract: the schema is a constant.
    let batch = make_batch(unsafe { &*function.arguments })?;
    call(table, number, batch)
}

/// The same in two workers: an instance takes the place of the plugin, until it is closed.
fn call_isolated(table: *const abi::Table, number: u32, function: &abi::Function, mode: &str) -> Outcome<()> {
    // SAFETY: the contract of `extension`: NULL or a constant.
    let isolation = unsafe { ((*table).extension)(c"isolation/1".as_ptr()) }.cast::<abi::Isolation>();
    let isolation = known(isolation, abi::ISOLATION_SIZE_1, "the extension isolation/1")?;
    let options = abi::IsolationOptions {
        size: size_of::<abi::IsolationOptions>() as u64,
        mode: if mode == "process" { abi::PROCESS } else { abi::SUBINTERPRETER },
        workers: 2,
        memory_limit: 0,
        cpu_limit: 0,
    };
    let mut instance = abi::Instance { size: size_of::<abi::Instance>() as u64, table: null(), first: 0, reserved: 0 };
    let mut error = NO_ERROR;
    // SAFETY: the contract of `open`; all pointers are to locals.
    check("open", unsafe { (isolation.open)(&options, &mut instance, &mut error) }, error)?;
    let called = call(instance.table, instance.first + number, function);
    let mut error = NO_ERROR;
    // SAFETY: the contract of `close`.
    check("close", unsafe { (isolation.close)(&instance, &mut error) }, error)?;
    called
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, wanted, mode) = match arguments.as_slice() {
        [path] => (path, None, None),
        [path, function] => (path, Some(function), None),
        [path, function, mode] => (path, Some(function), Some(mode)),
        _ => return Err("usage: host PLUGIN.so [FUNCTION [subinterpreter|process]]".into()),
    };
    let table = load(path)?;
    // SAFETY: the contract of `describe`: a constant.
    let plugin = known(unsafe { ((*table).describe)() }, abi::DESCRIPTOR_SIZE_1, "the descriptor")?;
    let functions = (0..plugin.n_functions as usize).map(|i| {
        // SAFETY: the contract: n_functions pointers to constants.
        known(unsafe { *plugin.functions.add(i) }, abi::FUNCTION_SIZE_1, "a function")
    });
    let functions = functions.collect::<Outcome<Vec<_>>>()?;
    let Some(wanted) = wanted else {
        println!("plugin {} ({})", text(plugin.name), text(plugin.language));
        for function in functions {
            let kind = kind(&function);
            // SAFETY: the contract: both schemas are constants.
            let (arguments, returns) = unsafe { (&*function.arguments, &*function.returns) };
            let list: Vec<String> = children(arguments).map(|a| format!("{}: {}", text(a.name), type_name(a))).collect();
            println!("{kind} {}({}) -> {}", text(function.name), list.join(", "), type_name(returns));
        }
        return Ok(());
    };
    for (number, function) in (0..).zip(&functions) {
        if text(function.name) == wanted {
            return match mode {
                None => call(table, number, function),
                Some(mode) => call_isolated(table, number, function, mode),
            };
        }
    }
    Err(format!("plugin {} has no function {wanted}", text(plugin.name)).into())
}
