//! The symbols of a library. Libraries stay open, because results may outlive their handles.

use arroyo_udf_common::async_udf::{DrainResult, SendableFfiAsyncUdfHandle};
use arroyo_udf_common::{FfiArrays, RunResult};
use async_ffi::FfiFuture;
use dlopen2::wrapper::{Container, WrapperApi};
use std::any::Any;
use std::sync::Mutex;

#[derive(WrapperApi)]
pub struct Sync {
    __run: unsafe extern "C-unwind" fn(args: FfiArrays) -> RunResult,
}

#[derive(WrapperApi)]
pub struct Async {
    __start: unsafe extern "C-unwind" fn(ordered: bool, timeout_micros: u64, allowed_in_flight: u32) -> SendableFfiAsyncUdfHandle,
    __send: unsafe extern "C-unwind" fn(handle: SendableFfiAsyncUdfHandle, id: u64, args: FfiArrays) -> FfiFuture<bool>,
    __drain_results: unsafe extern "C-unwind" fn(handle: SendableFfiAsyncUdfHandle) -> DrainResult,
    __stop_runtime: unsafe extern "C-unwind" fn(handle: SendableFfiAsyncUdfHandle),
}

/// Open libraries stay reachable, so that they do not look like a leak.
static OPEN: Mutex<Vec<&'static (dyn Any + Send + std::marker::Sync)>> = Mutex::new(Vec::new());

pub fn open<T: WrapperApi + Send + std::marker::Sync + 'static>(path: &str) -> &'static T {
    // SAFETY: the tests pass libraries of this interface.
    let library = unsafe { Container::<T>::load(path) }.expect("a library with these symbols");
    let library: &'static Container<T> = Box::leak(Box::new(library));
    OPEN.lock().expect("no panic").push(library);
    library
}
