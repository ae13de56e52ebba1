//! The attributes `#[udf]`, `#[udaf]` and `#[udtf]` of the crate `arroyo-udf-plugin`, which re-exports them.
//!
//! `options.rs` reads the options of `#[udf]`, `signature.rs` refuses functions that cannot be UDFs (on the author's own
//! tokens, with what to write instead: rule F5), `expand.rs` writes the code; `udaf.rs` does all that for aggregates and
//! their states, `udtf.rs` for table functions. At run time that code calls
//! `arroyo_udf_plugin::sdk`, whose traits also check the types, because a macro cannot see through a type alias.

mod expand;
mod options;
mod signature;
mod udaf;
mod udtf;

use proc_macro::TokenStream;

/// Makes an `fn`, an `async fn` or a blocking `fn` a function of the plugin. The function itself stays unchanged and callable.
///
/// ```ignore
/// use arroyo_udf_plugin::udf;
///
/// #[udf]
/// fn mph(distance: i64, air_time: i64) -> f64 {
///     distance as f64 * 60.0 / air_time as f64
/// }
///
/// #[udf(unordered, timeout = "500ms", allowed_in_flight = 1000)]
/// async fn price(item: String) -> Result<Option<f64>, String> {
///     # Ok(None)
/// }
///
/// #[udf(blocking, allowed_in_flight = 20)]
/// fn size(path: &str) -> Result<u64, std::io::Error> {
///     Ok(std::fs::metadata(path)?.len())
/// }
/// ```
///
/// * If an argument that is not an `Option` is null, the result is null, and the function is not called.
/// * `Option<T>` as the result: `None` is null. `Result<T, E>`: `Err` is the error of that row, with the `Display` text of
///   `E`. A panic is also the error of its row. Other rows are not affected.
/// * Types: see `arroyo_udf_plugin::sdk::types`. Arguments that an `async fn` borrows, `&str` or `&[u8]`, are copied for the
///   call.
/// * An `async fn` may have a first argument `Arc<Context>`, which its calls share. `Context::new()` makes it before the first
///   row. Its type implements `arroyo_udf_plugin::UdfContext`: `init` is called before all rows, `close` after them.
/// * The calls of an `async fn` take turns on one thread. A call that computes for long, or waits without `.await`, delays the
///   others (but not their timeouts): use `blocking` for it, or tokio's `spawn_blocking`.
/// * `blocking`: for code that waits for a file, a socket or a process. The host sees an async function, and each call has a
///   thread of its own while it runs. A call that timed out or was cancelled runs to its end; its result is discarded.
/// * `volatility`: "immutable" if the result depends on the arguments alone, "stable" if also on what does not change during a
///   query, "volatile" if on anything else. For engines, which also see the function's doc comment.
/// * Options, all for `async fn` and `blocking`, as the header describes them: `ordered` (the default) or `unordered`;
///   `timeout = "10s"` for one call and `deadline = "1m"` for a row, in `ns`, `us`, `ms`, `s`, `m` or `h`;
///   `allowed_in_flight = 100`, calls that run at once, or `"auto"`; `rate = "500/s"`, calls that start,
///   also per `min`, `h` or `10s`;
///   `max_rows`, `max_bytes`; `max_attempts = 3`, `retry_on = "timeout, error"`, `backoff = "100ms"`,
///   `max_backoff = "10s"`, `seed = 1`; `idempotent`; `max_stuck = 100`.
/// * `deterministic`: equal arguments give equal values, so rows that have them share a call; `cache = 100000` also keeps so many
///   values for later rows, with `cache_bytes`, `cache_ttl = "1m"` and `cache_errors`.
#[proc_macro_attribute]
pub fn udf(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let original = proc_macro2::TokenStream::from(item.clone());
    let expanded = syn::parse::<syn::ItemFn>(item)
        .map_err(|error| syn::Error::new(error.span(), "#[udf] belongs on a function: `fn` or `async fn`"))
        .and_then(|function| {
            let options = options::parse(attribute.into(), function.sig.asyncness.is_some())?;
            let signature = signature::check(&function.sig)?;
            Ok(expand::expand(&function, &signature, &options))
        });
    // The function itself is always kept: without it, each of its callers would be another error.
    let addition = expanded.unwrap_or_else(syn::Error::into_compile_error);
    quote::quote!(#original #addition).into()
}

/// Makes the `impl` of a struct an aggregate of the plugin. The `impl` itself stays as it is.
///
/// ```ignore
/// use arroyo_udf_plugin::{udaf, State};
///
/// /// What a group has seen; a new one is the default.
/// #[derive(Default, State)]
/// struct GeometricMean {
///     logs: f64,
///     count: i64,
/// }
///
/// /// The n-th root of the product of n values.
/// #[udaf]
/// impl GeometricMean {
///     fn update(&mut self, value: f64) {
///         self.logs += value.ln();
///         self.count += 1;
///     }
///
///     fn merge(&mut self, other: Self) {
///         self.logs += other.logs;
///         self.count += other.count;
///     }
///
///     fn finish(&self) -> Option<f64> {
///         (self.count > 0).then(|| (self.logs / self.count as f64).exp())
///     }
/// }
/// ```
///
/// * The function is called `geometric_mean`; `#[udaf(name = "...")]` names it otherwise. `volatility` as for `#[udf]`.
/// * `update` is called for each row of a group. Its arguments are those of `#[udf]`; a row with a null in an argument that
///   is not an `Option` is left out.
/// * `merge` adds another state, `other: Self` or `other: &Self`. `finish` returns what a `#[udf]` can return.
/// * `update` and `merge` may return `Result<(), E>`; an error, or a panic, is the error of the group.
/// * `#[derive(State)]` makes bytes of the struct: see `arroyo_udf_plugin::State` for the types of its fields.
#[proc_macro_attribute]
pub fn udaf(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let original = proc_macro2::TokenStream::from(item.clone());
    let expanded = syn::parse::<syn::ItemImpl>(item)
        .map_err(|error| syn::Error::new(error.span(), "#[udaf] belongs on the `impl` of a struct"))
        .and_then(|item| udaf::udaf(attribute.into(), &item));
    let addition = expanded.unwrap_or_else(syn::Error::into_compile_error);
    quote::quote!(#original #addition).into()
}

/// Makes an `fn` a table function of the plugin: it returns the rows that one row of arguments gives.
///
/// ```ignore
/// use arroyo_udf_plugin::udtf;
///
/// #[udtf(columns(word, place))]
/// fn words(text: &str) -> Vec<(String, i64)> {
///     text.split_whitespace().map(str::to_string).zip(0..).collect()
/// }
/// ```
///
/// * `columns` names the columns of a row, up to 8, whose types are those that `#[udf]` can return. Without it, or with one
///   name, the function returns `Vec<T>`: one column.
/// * `Result<Vec<...>, E>`: an error, or a panic, is the error of the row that came in.
/// * `volatility` as for `#[udf]`.
#[proc_macro_attribute]
pub fn udtf(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let original = proc_macro2::TokenStream::from(item.clone());
    let expanded = syn::parse::<syn::ItemFn>(item)
        .map_err(|error| syn::Error::new(error.span(), "#[udtf] belongs on a function: `fn`"))
        .and_then(|function| {
            let options = udtf::parse(attribute.into())?;
            let signature = signature::check(&function.sig)?;
            udtf::udtf(&function, &signature, &options)
        });
    let addition = expanded.unwrap_or_else(syn::Error::into_compile_error);
    quote::quote!(#original #addition).into()
}

/// The bytes of a state of `#[udaf]`, for a struct: those of its fields, one behind the other.
#[proc_macro_derive(State)]
pub fn derive_state(item: TokenStream) -> TokenStream {
    let expanded = syn::parse::<syn::DeriveInput>(item).and_then(|input| udaf::derive_state(&input));
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}
