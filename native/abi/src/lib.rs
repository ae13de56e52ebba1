//! The Rust mirror of `native/include/arroyo_udf.h`: the same names without their `arroyo_udf_` prefix, the same order,
//! no behaviour. The header has the documentation. `tests/layout.rs` reads the header's names and compares every size,
//! offset and constant with what a C compiler says.

use std::ffi::{c_char, c_void};

pub const MAGIC: u64 = 0x4644_5559_4F52_5241;
pub const ABI_VERSION: u32 = 1;

pub const ARROW_FLAG_NULLABLE: i64 = 2;

#[repr(C)]
#[derive(Debug)]
pub struct ArrowSchema {
    pub format: *const c_char,
    pub name: *const c_char,
    pub metadata: *const c_char,
    pub flags: i64,
    pub n_children: i64,
    pub children: *mut *mut ArrowSchema,
    pub dictionary: *mut ArrowSchema,
    pub release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    pub private_data: *mut c_void,
}

// SAFETY: a schema is plain data; the Arrow C Data Interface lets any one thread at a time use and release it, and the
// constants of a plugin are never written to.
unsafe impl Send for ArrowSchema {}
// SAFETY: as above; nothing is written through a shared reference.
unsafe impl Sync for ArrowSchema {}

#[repr(C)]
#[derive(Debug)]
pub struct ArrowArray {
    pub length: i64,
    pub null_count: i64,
    pub offset: i64,
    pub n_buffers: i64,
    pub n_children: i64,
    pub buffers: *mut *const c_void,
    pub children: *mut *mut ArrowArray,
    pub dictionary: *mut ArrowArray,
    pub release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    pub private_data: *mut c_void,
}

// SAFETY: as for ArrowSchema. The caller of `release` chooses the right thread (R19).
unsafe impl Send for ArrowArray {}
// SAFETY: the buffers of an exported array are immutable.
unsafe impl Sync for ArrowArray {}

impl ArrowArray {
    /// The empty array: its release is null.
    pub const fn empty() -> Self {
        ArrowArray {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: std::ptr::null_mut(),
            children: std::ptr::null_mut(),
            dictionary: std::ptr::null_mut(),
            release: None,
            private_data: std::ptr::null_mut(),
        }
    }
}

impl ArrowSchema {
    /// The empty schema: its release is null.
    pub const fn empty() -> Self {
        ArrowSchema {
            format: std::ptr::null(),
            name: std::ptr::null(),
            metadata: std::ptr::null(),
            flags: 0,
            n_children: 0,
            children: std::ptr::null_mut(),
            dictionary: std::ptr::null_mut(),
            release: None,
            private_data: std::ptr::null_mut(),
        }
    }
}

pub type Status = i32;
pub const OK: Status = 0;
pub const WOULD_BLOCK: Status = 1;
pub const READY: Status = 2;
pub const END: Status = 3;
pub const STUCK: Status = 4;
pub const INVALID_ARGUMENT: Status = 16;
pub const INVALID_STATE: Status = 17;
pub const ENVIRONMENT: Status = 18;
pub const USER_CODE: Status = 19;
pub const INTERNAL: Status = 20;
pub const NOT_IMPLEMENTED: Status = 21;
pub const OUT_OF_MEMORY: Status = 22;

pub const VALUE: u8 = 0;
pub const ERROR: u8 = 1;
pub const TIMED_OUT: u8 = 2;
pub const CANCELLED: u8 = 3;

pub const RESULTS: u32 = 1;
pub const ROOM: u32 = 2;

pub const DRAIN: u32 = 1;
pub const CANCEL: u32 = 2;

pub const SYNC: u32 = 1;
pub const ASYNC: u32 = 2;
pub const AGGREGATE: u32 = 3;
pub const TABLE: u32 = 4;
pub const STEP: u32 = 5;

pub const IMMUTABLE: u32 = 1;
pub const STABLE: u32 = 2;
pub const VOLATILE: u32 = 3;

pub const ORDERED: u32 = 1;
pub const UNORDERED: u32 = 2;

pub const YES: u32 = 1;
pub const NO: u32 = 2;

pub const ERROR_SIZE_1: u64 = 40;
pub const OPTIONS_SIZE_1: u64 = 128;
pub const FUNCTION_SIZE_1: u64 = 64;
pub const DESCRIPTOR_SIZE_1: u64 = 56;
pub const BATCH_CONTEXT_SIZE_1: u64 = 24;
pub const STATISTICS_SIZE_1: u64 = 1176;
pub const LOG_SIZE_1: u64 = 24;
pub const TABLE_SIZE_1: u64 = 128;
pub const ISOLATION_OPTIONS_SIZE_1: u64 = 32;
pub const INSTANCE_SIZE_1: u64 = 24;
pub const ISOLATION_SIZE_1: u64 = 24;
pub const NATIVE_SIZE_1: u64 = 32;

pub type Handle = u64;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Error {
    pub size: u64,
    pub text: *const c_char,
    pub release: Option<unsafe extern "C" fn(*mut Error)>,
    pub private_data: *mut c_void,
    pub retryable: u32,
    pub reserved: u32,
}

impl Error {
    /// No text: as a host passes it.
    pub const fn empty() -> Self {
        Error {
            size: size_of::<Error>() as u64,
            text: std::ptr::null(),
            release: None,
            private_data: std::ptr::null_mut(),
            retryable: 0,
            reserved: 0,
        }
    }
}

pub const RETRY_TIMEOUTS: u32 = 1;
pub const RETRY_ERRORS: u32 = 2;

#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    pub size: u64,
    pub order: u32,
    pub allowed_in_flight: u32,
    pub timeout_ns: u64,
    pub deadline_ns: u64,
    pub max_rows: u64,
    pub max_bytes: u64,
    pub max_attempts: u32,
    pub retry_on: u32,
    pub backoff_ns: u64,
    pub max_backoff_ns: u64,
    pub seed: u64,
    pub idempotent: u32,
    pub max_stuck: u32,
    pub lineage: [u8; 16],
    pub batch_size: u64,
    pub max_wait_ns: u64,
    pub batch_bytes: u64,
    pub deterministic: u32,
    pub cache_errors: u32,
    pub cache: u64,
    pub cache_bytes: u64,
    pub cache_ttl_ns: u64,
    pub rate: u32,
    pub rate_seconds: u32,
    pub adaptive: u32,
    pub reserved: u32,
}

impl Options {
    /// No option is set.
    pub const fn unset() -> Self {
        Options {
            size: size_of::<Options>() as u64,
            order: 0,
            allowed_in_flight: 0,
            timeout_ns: 0,
            deadline_ns: 0,
            max_rows: 0,
            max_bytes: 0,
            max_attempts: 0,
            retry_on: 0,
            backoff_ns: 0,
            max_backoff_ns: 0,
            seed: 0,
            idempotent: 0,
            max_stuck: 0,
            lineage: [0; 16],
            batch_size: 0,
            max_wait_ns: 0,
            batch_bytes: 0,
            deterministic: 0,
            cache_errors: 0,
            cache: 0,
            cache_bytes: 0,
            cache_ttl_ns: 0,
            rate: 0,
            rate_seconds: 0,
            adaptive: 0,
            reserved: 0,
        }
    }
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Function {
    pub size: u64,
    pub name: *const c_char,
    pub kind: u32,
    pub vectorized: u32,
    pub arguments: *const ArrowSchema,
    pub returns: *const ArrowSchema,
    pub options: *const Options,
    pub documentation: *const c_char,
    pub volatility: u32,
    pub reserved: u32,
    pub timeout_ns: u64,
    pub first_step: u64,
    pub constants: u64,
}

// SAFETY: a constant of the plugin: read by any thread, never written.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Descriptor {
    pub size: u64,
    pub name: *const c_char,
    pub language: *const c_char,
    pub toolkit_version: *const c_char,
    pub hash: *const c_char,
    pub n_functions: u64,
    pub functions: *const *const Function,
}

// SAFETY: a constant of the plugin: read by any thread, never written.
unsafe impl Send for Descriptor {}
// SAFETY: as above.
unsafe impl Sync for Descriptor {}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BatchContext {
    pub size: u64,
    pub deadline_ns: u64,
    pub trace_parent: *const c_char,
    pub idempotency_keys: *const u8,
    pub constants: u64,
}

pub const WARNING: u32 = 1;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Log {
    pub size: u64,
    pub write: Option<unsafe extern "C" fn(*mut c_void, u32, *const c_char)>,
    pub data: *mut c_void,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    pub size: u64,
    pub accepted: u64,
    pub queued: u64,
    pub running: u64,
    pub backing_off: u64,
    pub held: u64,
    pub ready: u64,
    pub drained: u64,
    pub values: u64,
    pub errors: u64,
    pub timed_out: u64,
    pub cancelled: u64,
    pub retries: u64,
    pub stuck: u64,
    pub wake_ups: u64,
    pub blocked: u64,
    pub left_behind: u64,
    pub discarded: u64,
    pub latency: [[u64; 4]; 32],
    pub latency_max_ns: u64,
    pub waiting: u64,
    pub cache_hits: u64,
    pub cache_shared: u64,
    pub cache_misses: u64,
    pub cache_evictions: u64,
    pub cache_entries: u64,
    pub cache_bytes: u64,
    pub paced: u64,
    pub limit: u64,
    pub limit_most: u64,
    pub overloads: u64,
}

pub type DescribeFn = unsafe extern "C" fn() -> *const Descriptor;
pub type RunFn =
    unsafe extern "C" fn(u32, *mut ArrowArray, *const BatchContext, *mut ArrowArray, *mut *const ArrowSchema, *mut Error) -> Status;
pub type StartFn = unsafe extern "C" fn(u32, *const Options, *mut Handle, *mut Error) -> Status;
pub type SendFn = unsafe extern "C" fn(Handle, u64, *mut ArrowArray, *const BatchContext, *mut Error) -> Status;
pub type DrainResultsFn = unsafe extern "C" fn(Handle, u64, *mut ArrowArray, *mut *const ArrowSchema, *mut Error) -> Status;
pub type WaitFn = unsafe extern "C" fn(Handle, u32, u64, *mut Error) -> Status;
pub type Armed = unsafe extern "C" fn(*mut c_void);
pub type ArmFn = unsafe extern "C" fn(Handle, u32, Option<Armed>, *mut c_void, *mut Error) -> Status;
pub type DisarmFn = unsafe extern "C" fn(Handle, *mut Error) -> Status;
pub type CancelFn = unsafe extern "C" fn(Handle, u64, u64, *mut Error) -> Status;
pub type StatisticsFn = unsafe extern "C" fn(Handle, *mut Statistics, *mut Error) -> Status;
pub type StopRuntimeFn = unsafe extern "C" fn(Handle, u32, u64, *mut Error) -> Status;
pub type ReleaseFn = unsafe extern "C" fn(Handle, *mut Error) -> Status;
pub type SetLogFn = unsafe extern "C" fn(Handle, *const Log, *mut Error) -> Status;
pub type ExtensionFn = unsafe extern "C" fn(*const c_char) -> *const c_void;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Table {
    pub magic: u64,
    pub abi_version: u32,
    pub table_size: u32,
    pub describe: DescribeFn,
    pub run: RunFn,
    pub start: StartFn,
    pub send: SendFn,
    pub drain_results: DrainResultsFn,
    pub wait: WaitFn,
    pub arm: ArmFn,
    pub disarm: DisarmFn,
    pub cancel: CancelFn,
    pub statistics: StatisticsFn,
    pub stop_runtime: StopRuntimeFn,
    pub release: ReleaseFn,
    pub set_log: SetLogFn,
    pub extension: ExtensionFn,
}

pub const SUBINTERPRETER: u32 = 1;
pub const PROCESS: u32 = 2;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct IsolationOptions {
    pub size: u64,
    pub mode: u32,
    pub workers: u32,
    pub memory_limit: u64,
    pub cpu_limit: u64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Instance {
    pub size: u64,
    pub table: *const Table,
    pub first: u32,
    pub reserved: u32,
}

pub type IsolationOpenFn = unsafe extern "C" fn(*const IsolationOptions, *mut Instance, *mut Error) -> Status;
pub type IsolationCloseFn = unsafe extern "C" fn(*const Instance, *mut Error) -> Status;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Isolation {
    pub size: u64,
    pub open: IsolationOpenFn,
    pub close: IsolationCloseFn,
}

pub type NativeCountFn = unsafe extern "C" fn(u32, *mut u64, *mut u64);
pub type RunFusedFn =
    unsafe extern "C" fn(*const FusedCall, u32, *const ArrowArray, *mut ArrowArray, *mut u64, *mut u64, *mut Error) -> Status;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FusedCall {
    pub function: u32,
    pub is_wanted: u32,
    pub arguments: *const i32,
    pub condition: i32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Native {
    pub size: u64,
    pub n_functions: u64,
    pub reasons: *const *const c_char,
    pub count: NativeCountFn,
    pub run_fused: Option<RunFusedFn>,
}
