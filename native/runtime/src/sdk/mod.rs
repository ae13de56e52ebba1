//! The code that `#[udf]` and [`plugin!`](crate::plugin) expand to. Authors need two names of it: [`types`] and the
//! attribute.
//!
//! | module           | what it does                                                            |
//! |------------------|-------------------------------------------------------------------------|
//! | [`function`]     | a function as `#[udf]` describes it                                      |
//! | [`types`]        | the types of arguments and results, converted from and to Arrow          |
//! | `numbers`, `times`, `texts`, `lists` | those types, one kind each                          |
//! | `constant`       | texts and bytes that all rows of a batch have in common                 |
//! | `builders`       | columns of results under construction                                   |
//! | [`arguments`]    | one row of a batch -> the tuple of a function's arguments                |
//! | [`sync`]         | the loop over a batch of a sync function                                 |
//! | [`udaf`]         | aggregates: their state as bytes, and what their steps call              |
//! | [`udtf`]         | table functions: the rows of a row                                       |
//! | [`blocking`]     | one row in a thread of the pool                                          |
//! | `context`        | the Context that calls of an async function share (feature `tokio`)      |
//! | `tokio_executor` | the executor of async functions (feature `tokio`)                        |
//!
//! Functions register themselves without a central list: each `#[udf]` puts one pointer into the linker section
//! `arroyo_udf_functions`, and the linker (of ELF targets) defines symbols at the section's two ends.

pub mod arguments;
pub mod blocking;
mod builders;
mod constant;
#[cfg(feature = "tokio")]
pub mod context;
pub mod function;
mod lists;
mod numbers;
pub mod sync;
mod texts;
mod times;
#[cfg(feature = "tokio")]
pub mod tokio_executor;
pub mod types;
pub mod udaf;
pub mod udtf;

pub use function::{Argument, Body, Function, Results, Type};

use crate::abi;
use crate::arrow::{build_with_room, Batch, Layout, NoRoom};
use crate::exports::{self, Ran};
use crate::failure::Failure;
use crate::isolation::contract;
use crate::pool;
use crate::results;
use crate::runtime::Runtime;
use crate::signature::{field, structure, Signature};
use crate::value::Value;
use std::ffi::{c_void, CStr, CString};
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

/// An entry of the linker section; one `None` makes the section exist in a library without functions.
pub type Registration = Option<&'static Function>;

#[used]
#[unsafe(link_section = "arroyo_udf_functions")]
static NO_FUNCTION: Registration = None;

extern "Rust" {
    #[link_name = "__start_arroyo_udf_functions"]
    static FIRST: Registration;
    #[link_name = "__stop_arroyo_udf_functions"]
    static END: Registration;
}

/// All functions of this library, in source order; the linker promises no order.
pub fn registered() -> Vec<&'static Function> {
    // SAFETY: the linker defines both symbols around the section, which holds nothing but registrations.
    let all = unsafe {
        let (first, end) = (&raw const FIRST, &raw const END);
        std::slice::from_raw_parts(first, end.offset_from(first) as usize)
    };
    let mut functions: Vec<_> = all.iter().copied().flatten().collect();
    functions.sort_by_key(|function| function.place);
    functions
}

/// The identity of a plugin: constants that its build knows.
pub trait Identity: 'static {
    const NAME: &'static str;
    const HASH: &'static str;
    const TOOLKIT_VERSION: &'static str;
    /// Options from the head of the source, for all async functions; an attribute wins.
    const OPTIONS: abi::Options;
}

/// The plugin made of the registered functions.
pub struct Registered<I>(PhantomData<I>);

/// Built once, at first use, and kept for the life of the process.
struct Described {
    descriptor: abi::Descriptor,
    functions: Vec<(&'static Function, Result<Signature, String>)>,
}

fn described<I: Identity>() -> &'static Described {
    // One static per library, because a library is one plugin.
    static DESCRIBED: OnceLock<Described> = OnceLock::new();
    DESCRIBED.get_or_init(|| {
        let functions = registered();
        let constants: Vec<*const abi::Function> =
            functions.iter().enumerate().map(|(number, function)| describe(number, function, &I::OPTIONS)).collect();
        let constants: &'static [*const abi::Function] = Vec::leak(constants);
        Described {
            descriptor: abi::Descriptor {
                size: size_of::<abi::Descriptor>() as u64,
                name: leak(I::NAME),
                language: c"rust".as_ptr(),
                toolkit_version: leak(I::TOOLKIT_VERSION),
                hash: leak(I::HASH),
                n_functions: constants.len() as u64,
                functions: constants.as_ptr(),
            },
            functions: functions
                .into_iter()
                .zip(constants)
                // SAFETY: the constant was made above and is never freed.
                .map(|(function, constant)| (function, unsafe { Signature::read(I::NAME, *constant) }))
                .collect(),
        }
    })
}

fn describe(number: usize, function: &Function, of_all: &abi::Options) -> *const abi::Function {
    let flags = |nullable: bool| if nullable { abi::ARROW_FLAG_NULLABLE } else { 0 };
    let schema = |name: &str, ty: &Type| {
        let mut schema = field(&CString::new(name).unwrap_or_default(), ty.format, flags(ty.nullable));
        if let Some(format) = ty.item {
            let mut item = field(c"item", format, flags(ty.columns.is_none()));
            if let Some((names, types)) = ty.columns {
                let columns = names.iter().zip(types);
                let columns = columns.map(|(name, ty)| field(&CString::new(*name).unwrap_or_default(), ty.format, flags(ty.nullable)));
                let row = structure(columns.collect());
                (item.n_children, item.children) = (row.n_children, row.children);
            }
            let list = structure(vec![item]);
            (schema.n_children, schema.children) = (list.n_children, list.children);
        }
        schema
    };
    let arguments = function.arguments.iter().map(|argument| schema(argument.name, &argument.ty));
    let returns = schema("", &function.returns);
    let (kind, options) = match &function.body {
        Body::Sync(_) => (abi::SYNC, std::ptr::null()),
        Body::Aggregate => (abi::AGGREGATE, std::ptr::null()),
        Body::Step(_) => (abi::STEP, std::ptr::null()),
        Body::Table(_) => (abi::TABLE, std::ptr::null()),
        Body::Async { options, .. } | Body::Blocking { options, .. } => {
            (abi::ASYNC, Box::into_raw(Box::new(over(options, of_all))).cast_const())
        }
    };
    Box::into_raw(Box::new(abi::Function {
        size: size_of::<abi::Function>() as u64,
        name: leak(function.name),
        kind,
        vectorized: 0,
        arguments: structure(arguments.collect()),
        returns: Box::into_raw(Box::new(returns)),
        options,
        documentation: if function.documentation.is_empty() { std::ptr::null() } else { leak(function.documentation) },
        volatility: function.volatility,
        reserved: 0,
        timeout_ns: 0,
        first_step: if kind == abi::AGGREGATE { number as u64 + 1 } else { 0 },
        constants: if kind == abi::SYNC { constants(function.arguments) } else { 0 },
    }))
}

/// Bit i: argument number i may come as a constant.
fn constants(arguments: &[Argument]) -> u64 {
    let is_bytes = |argument: &Argument| matches!(argument.ty.format.to_bytes(), b"u" | b"z");
    arguments.iter().enumerate().fold(0, |bits, (i, argument)| bits | u64::from(is_bytes(argument)) << i)
}

/// The answers of a table function as results.
fn rows(answers: Vec<Result<Value, String>>, layout: &Layout) -> Results {
    let mut failed = Vec::new();
    let mut values = Vec::with_capacity(answers.len());
    for (row, answer) in answers.into_iter().enumerate() {
        values.push(answer.unwrap_or_else(|text| {
            failed.push((row, text));
            Value::Null
        }));
    }
    let (values, without_room) = build_with_room(layout, values.iter());
    failed.extend(NoRoom::errors(without_room));
    failed.sort_unstable_by_key(|(row, _)| *row);
    Results { values, failed }
}

/// An attribute's options over the three that the head of a source can set (as in Arroyo).
fn over(own: &abi::Options, of_all: &abi::Options) -> abi::Options {
    abi::Options {
        order: if own.order == 0 { of_all.order } else { own.order },
        allowed_in_flight: if own.allowed_in_flight == 0 && own.adaptive == 0 { of_all.allowed_in_flight } else { own.allowed_in_flight },
        timeout_ns: if own.timeout_ns == 0 { of_all.timeout_ns } else { own.timeout_ns },
        ..*own
    }
}

fn leak(text: &str) -> *const std::ffi::c_char {
    CString::new(text).unwrap_or_default().into_raw()
}

fn function<I: Identity>(number: u32) -> Result<(&'static Function, &'static Signature), Failure> {
    let functions = &described::<I>().functions;
    let (function, signature) = functions
        .get(number as usize)
        .ok_or_else(|| Failure::argument(format!("{}: no function number {number}, it has {}", I::NAME, functions.len())))?;
    let signature = signature.as_ref().map_err(|text| Failure::new(abi::INTERNAL, text))?;
    Ok((function, signature))
}

/// The number of the function of this name; `u32::MAX`, which no function has, if there is none.
pub fn number<I: Identity>(name: &str) -> u32 {
    let functions = &described::<I>().functions;
    functions.iter().position(|(function, _)| function.name == name).map_or(u32::MAX, |number| number as u32)
}

fn wrong_kind(signature: &Signature) -> Failure {
    Failure::new(abi::NOT_IMPLEMENTED, format!("{}: not for this kind of function", signature.name))
}

impl<I: Identity> exports::Plugin for Registered<I> {
    fn describe() -> *const abi::Descriptor {
        &raw const described::<I>().descriptor
    }

    fn signature(number: u32) -> Result<&'static Signature, Failure> {
        function::<I>(number).map(|(_, signature)| signature)
    }

    fn run(number: u32, batch: &Arc<Batch>) -> Result<Ran, Failure> {
        let (function, signature) = function::<I>(number)?;
        let answer = match function.body {
            Body::Sync(run) | Body::Step(run) => run(batch),
            Body::Table(run) => rows(run(batch), &signature.returns),
            _ => return Err(wrong_kind(signature)),
        };
        let (results, with_outcomes) = results::ran(&signature.name, answer.values.export(), &answer.failed);
        Ok(Ran { results, with_outcomes })
    }

    fn start(number: u32, runtime: &Arc<Runtime>) -> Result<(), Failure> {
        let (function, signature) = function::<I>(number)?;
        match function.body {
            Body::Sync(_) | Body::Aggregate | Body::Step(_) | Body::Table(_) => Err(wrong_kind(signature)),
            Body::Async { start, .. } => start(runtime),
            Body::Blocking { call, .. } => pool::start(runtime, call),
        }
    }

    fn extension(id: &CStr) -> *const c_void {
        contract::extension::<Self>(id)
    }
}

/// Makes a library a plugin: exports the table `arroyo_udf_plugin` with all functions marked `#[udf]`. Once per library,
/// at its root; `arroyo-udf build` writes it for you.
///
/// ```ignore
/// arroyo_udf_plugin::plugin!(name: "flights", hash: "", toolkit_version: "0.1.0");
/// ```
///
/// `, options: { order: 1, allowed_in_flight: 10, timeout_ns: 5_000_000_000 }` may follow: defaults for all async functions.
/// With `, arroyo: sync "mph", on_error: "fail"` (or `async`, or "null") at the end, the library also exports, for that
/// function, the symbols that the Arroyo engine looks for.
#[macro_export]
macro_rules! plugin {
    (name: $name:expr, hash: $hash:expr, toolkit_version: $toolkit_version:expr
     $(, options: { $($option:ident: $value:expr),* })?
     $(, arroyo: $kind:ident $function:literal, on_error: $on_error:literal)?) => {
        const _: () = {
            struct ThisPlugin;

            impl $crate::sdk::Identity for ThisPlugin {
                const NAME: &'static str = $name;
                const HASH: &'static str = $hash;
                const TOOLKIT_VERSION: &'static str = $toolkit_version;
                const OPTIONS: $crate::abi::Options = $crate::abi::Options { $($($option: $value,)*)? ..$crate::abi::Options::unset() };
            }

            #[unsafe(no_mangle)]
            #[allow(non_upper_case_globals)]
            pub static arroyo_udf_plugin: $crate::abi::Table = $crate::exports::table::<$crate::sdk::Registered<ThisPlugin>>();

            $($crate::plugin!(@arroyo $kind $function $on_error);)?
        };
    };
    (@arroyo sync $function:literal $on_error:literal) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn __run(arguments: $crate::arroyo::layout::Arrays) -> $crate::arroyo::layout::RunResult {
            const ON_ERROR: $crate::arroyo::OnError = $crate::arroyo::OnError::named($on_error);
            let function = $crate::sdk::number::<ThisPlugin>($function);
            // SAFETY: passed on.
            unsafe { $crate::arroyo::run::<$crate::sdk::Registered<ThisPlugin>>(function, ON_ERROR, arguments) }
        }
    };
    (@arroyo async $function:literal $on_error:literal) => {
        #[unsafe(no_mangle)]
        extern "C" fn __start(ordered: bool, timeout_micros: u64, allowed_in_flight: u32) -> $crate::arroyo::layout::Handle {
            const ON_ERROR: $crate::arroyo::OnError = $crate::arroyo::OnError::named($on_error);
            let function = $crate::sdk::number::<ThisPlugin>($function);
            let start = $crate::arroyo::start::<$crate::sdk::Registered<ThisPlugin>>;
            start(function, ON_ERROR, ordered, timeout_micros, allowed_in_flight)
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn __send(
            handle: $crate::arroyo::layout::Handle,
            id: u64,
            arguments: $crate::arroyo::layout::Arrays,
        ) -> $crate::arroyo::layout::Future {
            // SAFETY: passed on.
            unsafe { $crate::arroyo::send(handle, id, arguments) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn __drain_results(handle: $crate::arroyo::layout::Handle) -> $crate::arroyo::layout::DrainResult {
            // SAFETY: passed on.
            unsafe { $crate::arroyo::drain_results(handle) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn __stop_runtime(handle: $crate::arroyo::layout::Handle) {
            // SAFETY: passed on.
            unsafe { $crate::arroyo::stop_runtime(handle) }
        }
    };
}
