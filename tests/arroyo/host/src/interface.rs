//! What a library exports. Libraries stay open: results may outlive their handles.

use arroyo_udf_common::async_udf::{DrainResult, SendableFfiAsyncUdfHandle};
use arroyo_udf_common::{FfiArrays, RunResult};
use async_ffi::FfiFuture;
use dlopen2::wrapper::{Container, WrapperApi};

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

pub fn open<T: WrapperApi>(path: &str) -> &'static T {
    // SAFETY: the tests pass libraries of this interface.
    Box::leak(Box::new(unsafe { Container::<T>::load(path) }.expect("a library with these symbols")))
}
