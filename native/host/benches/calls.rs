//! What a call of a sync function with one row costs, in ns, over a call of the table without this crate.
//!
//!     cargo bench --bench calls -- libudf.so FUNCTION
//!
//! Prints `raw`, then `run` (with an array that the engine has), then `call` (with Arrow columns in and out). The function
//! has int64 arguments. Each is the median of many rounds, which alternate.

use std::ffi::c_void;
use std::hint::black_box;
use std::ptr::null;
use std::sync::Arc;
use std::time::Instant;

use arroyo_udf_host::arrow_array::{ArrayRef, Int64Array};
use arroyo_udf_host::{abi, Function, Plugin};
use libloading::os::unix::Library;

const CALLS: u32 = 2_000;
const ROUNDS: usize = 201;

static VALUES: [i64; 1] = [42];

/// The memory of a batch with one row, which all calls share: they release nothing.
struct Shared {
    _buffers: Box<[[*const c_void; 2]]>,
    _columns: Box<[abi::ArrowArray]>,
    children: Box<[*mut abi::ArrowArray]>,
    no_buffer: Box<[*const c_void; 1]>,
}

unsafe extern "C" fn release(array: *mut abi::ArrowArray) {
    // SAFETY: an Arrow release callback gets a valid array.
    unsafe { (*array).release = None };
}

impl Shared {
    fn new(arguments: usize) -> Self {
        let mut buffers = vec![[null(), VALUES.as_ptr().cast()]; arguments].into_boxed_slice();
        let column = |buffers: &mut [*const c_void; 2]| abi::ArrowArray {
            length: 1,
            n_buffers: 2,
            buffers: buffers.as_mut_ptr(),
            release: Some(release),
            ..abi::ArrowArray::empty()
        };
        let mut columns: Box<[abi::ArrowArray]> = buffers.iter_mut().map(column).collect();
        let children = columns.iter_mut().map(std::ptr::from_mut).collect();
        Shared { _buffers: buffers, _columns: columns, children, no_buffer: Box::new([null()]) }
    }

    fn array(&mut self) -> abi::ArrowArray {
        for child in &self.children {
            // SAFETY: the columns live as long as this.
            unsafe { (**child).release = Some(release) };
        }
        abi::ArrowArray {
            length: 1,
            n_buffers: 1,
            n_children: self.children.len() as i64,
            buffers: self.no_buffer.as_mut_ptr(),
            children: self.children.as_mut_ptr(),
            release: Some(release),
            ..abi::ArrowArray::empty()
        }
    }
}

fn raw(table: *const abi::Table, number: u32, shared: &mut Shared) {
    let (mut batch, mut rows, mut schema, mut error) = (shared.array(), abi::ArrowArray::empty(), null(), abi::Error::empty());
    // SAFETY: the contract of `run`: the batch has the function's types; all pointers are to locals.
    let status = unsafe { ((*table).run)(number, &mut batch, null(), &mut rows, &mut schema, &mut error) };
    assert_eq!(status, abi::OK);
    // SAFETY: we own the results.
    unsafe { rows.release.expect("results of a call that succeeded")(&mut rows) };
}

fn run(function: &Function, shared: &mut Shared) {
    // SAFETY: an array of int64 columns, which nobody else releases.
    let batch = unsafe { function.batch_from_raw(shared.array()) }.expect("a function with types");
    black_box(function.run(batch).expect("the call succeeds"));
}

fn call(function: &Function, columns: &[ArrayRef]) {
    let batch = function.batch_of(columns, 1).expect("int64 columns");
    black_box(function.run(batch).and_then(|results| results.into_rows()).expect("the call succeeds"));
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [path, name] = &arguments[..] else { panic!("usage: calls PLUGIN.so FUNCTION") };
    let plugin = Plugin::open(path).expect("a plugin");
    let function = plugin.function(name).expect("a function");
    let number = plugin.functions().position(|other| other.name() == name).expect("it is one of them") as u32;
    // SAFETY: the library is open already, and stays so.
    let library = unsafe { Library::new(path) }.expect("a library");
    // SAFETY: the symbol is the table, which `open` has checked.
    let table = *unsafe { library.get::<*const abi::Table>(b"arroyo_udf_plugin\0") }.expect("a table");
    let n_arguments = function.arguments().expect("types").len();
    let mut shared = Shared::new(n_arguments);
    let columns: Vec<ArrayRef> = (0..n_arguments).map(|_| Arc::new(Int64Array::from(VALUES.to_vec())) as ArrayRef).collect();
    let mut spent = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        let mut timed = |i: usize, one: &mut dyn FnMut()| {
            let start = Instant::now();
            (0..CALLS).for_each(|_| one());
            spent[i].push(start.elapsed().as_nanos() as f64 / f64::from(CALLS));
        };
        timed(0, &mut || raw(table, number, &mut shared));
        timed(1, &mut || run(&function, &mut shared));
        timed(2, &mut || call(&function, &columns));
    }
    for mut times in spent {
        times.sort_by(f64::total_cmp);
        println!("{:.1}", times[ROUNDS / 2]);
    }
}
