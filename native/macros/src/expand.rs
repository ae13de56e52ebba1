//! What `#[udf]` adds below a function: a description of it, and a pointer to that in the linker section which
//! `arroyo_udf_plugin::sdk` reads.

use crate::options::Options;
use crate::signature::{name, with_lifetime, Checked};
use proc_macro2::{Literal, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::ItemFn;

/// Everything stands in a nameless constant, under names that cannot hide the author's.
pub fn expand(function: &ItemFn, signature: &Checked, options: &Options) -> TokenStream {
    let ident = &function.sig.ident;
    let name = name(ident);
    let arguments = signature.arguments.iter().map(|argument| {
        let (name, ty) = (&argument.name, with_lifetime(&argument.ty, "'static"));
        quote_spanned!(place(argument.ty.span())=> ::arroyo_udf_plugin::sdk::Argument::new::<#ty>(#name))
    });
    let returns = with_lifetime(&signature.returns, "'static");
    let returns = quote_spanned!(place(signature.returns.span())=> ::arroyo_udf_plugin::sdk::Type::returned::<#returns>());
    let (call, body) = call(function, signature, options);
    quote! {
        const _: () = {
            static __ARROYO_UDF: ::arroyo_udf_plugin::sdk::Function = ::arroyo_udf_plugin::sdk::Function {
                name: #name,
                place: (::core::file!(), ::core::line!(), ::core::column!()),
                arguments: &[#(#arguments),*],
                returns: #returns,
                body: #body,
            };

            #call

            #[used]
            #[unsafe(link_section = "arroyo_udf_functions")]
            static __ARROYO_UDF_POINTER: ::arroyo_udf_plugin::sdk::Registration =
                ::core::option::Option::Some(&__ARROYO_UDF);
        };
    }
}

/// Where the compiler shows what it has to say about generated code: on the author's own tokens.
fn place(tokens: Span) -> Span {
    Span::call_site().located_at(tokens)
}

/// The function that the SDK calls, whose arguments are one tuple, and the `Body` that names it.
fn call(function: &ItemFn, signature: &Checked, options: &Options) -> (TokenStream, TokenStream) {
    let ident = &function.sig.ident;
    // References point into the batch; an async function has none.
    let types: Vec<_> = signature.arguments.iter().map(|argument| with_lifetime(&argument.ty, "'a")).collect();
    let names: Vec<_> = (0..types.len()).map(|i| quote::format_ident!("__argument_{i}")).collect();
    let closure = quote_spanned!(place(ident.span())=> |(#(#names,)*): (#(#types,)*)| #ident(#(#names),*));
    let place = place(ident.span());
    if !signature.is_async && !options.blocking {
        let call = quote_spanned! {place=>
            fn __arroyo_udf_run<'a>(
                batch: &'a ::arroyo_udf_plugin::arrow::Batch,
            ) -> ::arroyo_udf_plugin::sdk::sync::Results {
                ::arroyo_udf_plugin::sdk::sync::run(&__ARROYO_UDF, batch, #closure)
            }
        };
        return (call, quote!(::arroyo_udf_plugin::sdk::Body::Sync(__arroyo_udf_run)));
    }
    // Zero is the header's word for "not chosen", so what is not named here is that.
    let fields = options.fields.iter().map(|(field, value)| {
        let (field, value) = (format_ident!("{field}"), Literal::u64_unsuffixed(*value));
        quote!(#field: #value)
    });
    let chosen = quote! {
        ::arroyo_udf_plugin::abi::Options { #(#fields,)* ..::arroyo_udf_plugin::abi::Options::unset() }
    };
    if options.blocking {
        let call = quote_spanned! {place=>
            fn __arroyo_udf_call<'a>(
                batch: &'a ::arroyo_udf_plugin::arrow::Batch,
                row: usize,
                id: u64,
            ) -> ::arroyo_udf_plugin::machine::Outcome<::arroyo_udf_plugin::value::Value> {
                ::arroyo_udf_plugin::sdk::blocking::call(&__ARROYO_UDF, batch, row, id, #closure)
            }
        };
        let body = quote! {
            ::arroyo_udf_plugin::sdk::Body::Blocking { options: #chosen, call: __arroyo_udf_call }
        };
        return (call, body);
    }
    let call = quote_spanned! {place=>
        fn __arroyo_udf_start(
            runtime: &::std::sync::Arc<::arroyo_udf_plugin::runtime::Runtime>,
        ) -> ::core::result::Result<(), ::arroyo_udf_plugin::failure::Failure> {
            ::arroyo_udf_plugin::sdk::tokio_driver::start(&__ARROYO_UDF, runtime, #closure)
        }
    };
    let body = quote! {
        ::arroyo_udf_plugin::sdk::Body::Async { options: #chosen, start: __arroyo_udf_start }
    };
    (call, body)
}
