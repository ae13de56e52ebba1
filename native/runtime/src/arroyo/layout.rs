//! The structs of Arroyo's interface (64-bit, little-endian; `async-ffi` 0.5), with their layout in memory. All are passed by
//! value. Each field says what it means and which side frees it.

use arroyo_udf_abi::{ArrowArray, ArrowSchema};
use std::ffi::c_void;

/// An array with its type. The receiver calls both releases.
#[repr(C)]
pub struct Array {
    pub array: ArrowArray,
    pub schema: ArrowSchema,
}

impl Array {
    /// The array; its schema is released.
    pub fn untyped(mut self) -> ArrowArray {
        if let Some(release) = self.schema.release {
            // SAFETY: the schema belongs to the receiver, and is not used again.
            unsafe { release(&mut self.schema) };
        }
        self.array
    }
}

/// The parts of a Rust vector. The receiver frees `pointer` with the process's `free`; an allocator that frees by size takes
/// it as `capacity` items.
#[repr(C)]
pub struct Arrays {
    pub pointer: *mut Array,
    pub length: usize,
    pub capacity: usize,
    /// Always false, and never read.
    pub error: bool,
}

impl Arrays {
    pub const fn none() -> Arrays {
        Arrays { pointer: std::ptr::null_mut(), length: 0, capacity: 0, error: false }
    }

    /// Moves `arrays` into memory from the process's `malloc`, of exactly the size that `capacity` means.
    pub fn new(arrays: Vec<Array>) -> Arrays {
        let length = arrays.len();
        if length == 0 {
            return Arrays { pointer: std::ptr::NonNull::dangling().as_ptr(), ..Arrays::none() };
        }
        // SAFETY: malloc may be called with any size.
        let pointer = unsafe { libc::malloc(length * size_of::<Array>()) }.cast::<Array>();
        if pointer.is_null() {
            std::alloc::handle_alloc_error(std::alloc::Layout::for_value(&arrays[..]));
        }
        for (i, array) in arrays.into_iter().enumerate() {
            // SAFETY: the memory is new, of this size, and aligned for anything.
            unsafe { pointer.add(i).write(array) };
        }
        Arrays { pointer, length, capacity: length, error: false }
    }

    /// Takes the arrays out and frees the vector.
    ///
    /// # Safety
    /// The fields are those of a vector of valid arrays, which belongs to the caller.
    pub unsafe fn take(self) -> Vec<Array> {
        if self.capacity == 0 || self.pointer.is_null() {
            return Vec::new(); // such a pointer has no memory behind it
        }
        let mut arrays = Vec::with_capacity(self.length);
        // SAFETY: `length` arrays are moved out; the memory came from malloc and is not read again.
        unsafe {
            std::ptr::copy_nonoverlapping(self.pointer, arrays.as_mut_ptr(), self.length);
            arrays.set_len(self.length);
            libc::free(self.pointer.cast());
        }
        arrays
    }
}

#[repr(C)]
pub struct RunResult {
    pub tag: u32,
    /// Only with `OK`.
    pub value: Array,
}

impl RunResult {
    pub const OK: u32 = 0;
    pub const ERR: u32 = 1;

    pub const fn failed() -> RunResult {
        RunResult { tag: RunResult::ERR, value: Array { array: ArrowArray::empty(), schema: ArrowSchema::empty() } }
    }
}

#[repr(C)]
pub struct DrainResult {
    pub tag: u32,
    /// Only with `DATA`: the rows' ids (`L`), and their values.
    pub data: Arrays,
}

impl DrainResult {
    pub const DATA: u32 = 0;
    /// No results now.
    pub const NONE: u32 = 1;
    /// The runtime is dead: there will be no more results.
    pub const ERROR: u32 = 2;

    pub const fn without_data(tag: u32) -> DrainResult {
        DrainResult { tag, data: Arrays::none() }
    }
}

/// A started function. Only the plugin that returned it knows what it points to.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Handle(pub *mut c_void);

/// A boxed future. `poll` is called by one thread at a time and never after READY; `drop` exactly once.
#[repr(C)]
pub struct Future {
    pub state: *mut c_void,
    pub poll: unsafe extern "C" fn(*mut c_void, *mut PollContext) -> Poll,
    pub drop: unsafe extern "C" fn(*mut c_void),
}

#[repr(C)]
pub struct Poll {
    pub tag: u8,
    /// Only with `READY`: whether the row was accepted. False: the runtime is gone.
    pub accepted: bool,
}

impl Poll {
    pub const READY: u8 = 0;
    pub const PENDING: u8 = 1;
    pub const PANICKED: u8 = 2;
}

/// The argument of a poll; valid during that poll.
#[repr(C)]
pub struct PollContext {
    /// Borrowed: may only be cloned, or woken by reference.
    pub waker: *const Waker,
}

/// The head of a waker; what follows is known only to the side that made it.
#[repr(C)]
pub struct Waker {
    pub functions: *const WakerFunctions,
}

#[repr(C)]
pub struct WakerFunctions {
    /// Returns another waker, an owned one: it ends with one `wake` or one `drop`, in any thread.
    pub clone: unsafe extern "C" fn(*const Waker) -> *const Waker,
    pub wake: unsafe extern "C" fn(*const Waker),
    pub wake_by_ref: unsafe extern "C" fn(*const Waker),
    pub drop: unsafe extern "C" fn(*const Waker),
}

/// A cloned waker: wakes once, or is dropped.
pub struct OwnedWaker(*const Waker);

// SAFETY: an owned waker may be woken and dropped in any thread.
unsafe impl Send for OwnedWaker {}

impl OwnedWaker {
    /// # Safety
    /// `context` was passed to the poll that runs now.
    pub unsafe fn of(context: *const PollContext) -> OwnedWaker {
        // SAFETY: a context has a waker, and a waker its functions.
        unsafe {
            let waker = (*context).waker;
            OwnedWaker(((*(*waker).functions).clone)(waker))
        }
    }

    pub fn wake(self) {
        // SAFETY: owned, and not used again.
        unsafe { ((*(*self.0).functions).wake)(self.0) };
        std::mem::forget(self);
    }
}

impl Drop for OwnedWaker {
    fn drop(&mut self) {
        // SAFETY: owned, and not used again.
        unsafe { ((*(*self.0).functions).drop)(self.0) };
    }
}

/// The sizes and offsets of the published crates' own types, as their compiler printed them.
const _: () = {
    assert!(size_of::<Array>() == 152 && align_of::<Array>() == 8 && std::mem::offset_of!(Array, schema) == 80);
    assert!(size_of::<Arrays>() == 32 && std::mem::offset_of!(Arrays, error) == 24);
    assert!(size_of::<RunResult>() == 160 && std::mem::offset_of!(RunResult, value) == 8);
    assert!(size_of::<DrainResult>() == 40 && std::mem::offset_of!(DrainResult, data) == 8);
    assert!(size_of::<Handle>() == 8 && size_of::<Future>() == 24 && size_of::<PollContext>() == 8);
    assert!(size_of::<Poll>() == 2 && std::mem::offset_of!(Poll, accepted) == 1);
    assert!(size_of::<WakerFunctions>() == 32);
};
