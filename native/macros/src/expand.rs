//! The code that `#[udf]` adds below a function: its description, and a pointer to that in the linker section that
//! `arroyo_udf_plugin::sdk` reads.

use crate::options::Attribute;
use crate::signature::{name, with_lifetime, Argument, Checked};
use proc_macro2::{Literal, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, Ident, ItemFn, Lit, Meta, MetaNameValue, Type};

/// The registration of a function.
pub fn expand(function: &ItemFn, signature: &Checked, options: &Attribute) -> TokenStream {
    let ident = &function.sig.ident;
    let name = name(ident);
    let arguments = signature.arguments.iter().map(|argument| {
        let (name, ty) = (&argument.name, with_lifetime(&argument.ty, "'static"));
        quote_spanned!(place(argument.ty.span())=> ::arroyo_udf_plugin::sdk::Argument::new::<#ty>(#name))
    });
    let returns = with_lifetime(&signature.returns, "'static");
    let returns = quote_spanned!(place(signature.returns.span())=> ::arroyo_udf_plugin::sdk::Type::returned::<#returns>());
    let (call, body) = call(function, signature, options);
    let engines = for_polars(&name);
    let registered = register(&Registered {
        name,
        after: 0,
        arguments: quote!(#(#arguments),*),
        returns,
        body,
        documentation: documentation(&function.attrs),
        volatility: options.volatility,
        code: call,
    });
    // The condition of `engines` is one that cargo does not know.
    quote! {
        #registered

        #[allow(unexpected_cfgs)]
        const _: () = { #engines };
    }
}

/// A function of the descriptor. after: how many steps stand before it at the same place of the source.
pub struct Registered {
    pub name: String,
    pub after: u32,
    pub arguments: TokenStream,
    pub returns: TokenStream,
    pub body: TokenStream,
    pub documentation: String,
    pub volatility: u32,
    /// What `body` names.
    pub code: TokenStream,
}

/// Its registration. All code is inside a nameless constant, with names that cannot hide the author's.
pub fn register(function: &Registered) -> TokenStream {
    let Registered { name, after, arguments, returns, body, documentation, volatility, code } = function;
    quote! {
        const _: () = {
            static __ARROYO_UDF: ::arroyo_udf_plugin::sdk::Function = ::arroyo_udf_plugin::sdk::Function {
                name: #name,
                place: (::core::file!(), ::core::line!(), ::core::column!(), #after),
                arguments: &[#arguments],
                returns: #returns,
                body: #body,
                documentation: #documentation,
                volatility: #volatility,
            };

            #code

            #[used]
            #[unsafe(link_section = "arroyo_udf_functions")]
            static __ARROYO_UDF_POINTER: ::arroyo_udf_plugin::sdk::Registration =
                ::core::option::Option::Some(&__ARROYO_UDF);
        };
    }
}

/// The two symbols that Polars looks for, in libraries of `arroyo-udf build`.
fn for_polars(name: &str) -> TokenStream {
    let (field, call) = (format_ident!("_polars_plugin_field_{name}"), format_ident!("_polars_plugin_{name}"));
    quote! {
        #[cfg(arroyo_udf_engines)]
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        unsafe extern "C" fn #field(
            fields: *const ::core::ffi::c_void,
            n: usize,
            out: *mut ::core::ffi::c_void,
            options: *const u8,
            n_options: usize,
        ) {
            // SAFETY: passed on.
            unsafe {
                ::arroyo_udf_plugin::engines::arroyo_udf_polars_field(
                    ::core::concat!(#name, "\0").as_ptr().cast(), fields, n, out, options, n_options,
                )
            }
        }

        #[cfg(arroyo_udf_engines)]
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        unsafe extern "C" fn #call(
            given: *mut ::core::ffi::c_void,
            n: usize,
            options: *const u8,
            n_options: usize,
            out: *mut ::core::ffi::c_void,
            _context: *const ::core::ffi::c_void,
        ) {
            // SAFETY: passed on.
            unsafe {
                ::arroyo_udf_plugin::engines::arroyo_udf_polars_call(
                    ::core::concat!(#name, "\0").as_ptr().cast(), given, n, options, n_options, out,
                )
            }
        }
    }
}

/// The place where the compiler reports errors of generated code: the author's own tokens.
pub fn place(tokens: Span) -> Span {
    Span::call_site().located_at(tokens)
}

/// The function that the SDK calls, whose arguments are one tuple, and the `Body` that names it.
fn call(function: &ItemFn, signature: &Checked, options: &Attribute) -> (TokenStream, TokenStream) {
    let ident = &function.sig.ident;
    let closure = closure(ident, signature);
    if !signature.is_async && !options.blocking {
        let call = quote_spanned! {place(ident.span())=>
            fn __arroyo_udf_run<'a>(
                batch: &'a ::arroyo_udf_plugin::arrow::Batch,
            ) -> ::arroyo_udf_plugin::sdk::Results {
                ::arroyo_udf_plugin::sdk::sync::run(&__ARROYO_UDF, batch, #closure)
            }
        };
        return (call, quote!(::arroyo_udf_plugin::sdk::Body::Sync(__arroyo_udf_run)));
    }
    // Fields not named here are zero, which means "not set" in the header.
    let fields = options.fields.iter().map(|(field, value)| {
        let (field, value) = (format_ident!("{field}"), Literal::u64_unsuffixed(*value));
        quote!(#field: #value)
    });
    let chosen = quote! {
        ::arroyo_udf_plugin::abi::Options { #(#fields,)* ..::arroyo_udf_plugin::abi::Options::unset() }
    };
    if options.blocking {
        let call = quote_spanned! {place(ident.span())=>
            fn __arroyo_udf_call<'a>(
                batch: &'a ::arroyo_udf_plugin::arrow::Batch,
                row: usize,
            ) -> ::arroyo_udf_plugin::machine::Outcome<::arroyo_udf_plugin::value::Value> {
                ::arroyo_udf_plugin::sdk::blocking::call(&__ARROYO_UDF, batch, row, #closure)
            }
        };
        let body = quote! {
            ::arroyo_udf_plugin::sdk::Body::Blocking { options: #chosen, call: __arroyo_udf_call }
        };
        return (call, body);
    }
    // The Context's own `new` makes it.
    let start = match &signature.context {
        Some(context) => quote_spanned!(place(context.span())=>
            ::arroyo_udf_plugin::sdk::tokio_executor::start_with(&__ARROYO_UDF, runtime, <#context>::new, #closure)),
        None => quote_spanned!(place(ident.span())=>
            ::arroyo_udf_plugin::sdk::tokio_executor::start(&__ARROYO_UDF, runtime, #closure)),
    };
    let call = quote_spanned! {place(ident.span())=>
        fn __arroyo_udf_start(
            runtime: &::std::sync::Arc<::arroyo_udf_plugin::runtime::Runtime>,
        ) -> ::core::result::Result<(), ::arroyo_udf_plugin::failure::Failure> {
            #start
        }
    };
    let body = quote! {
        ::arroyo_udf_plugin::sdk::Body::Async { options: #chosen, start: __arroyo_udf_start }
    };
    (call, body)
}

/// The author's function as a closure that takes its arguments as one tuple, after the Context if it has one.
fn closure(ident: &Ident, signature: &Checked) -> TokenStream {
    let arguments = &signature.arguments;
    let names: Vec<_> = (0..arguments.len()).map(|i| format_ident!("__argument_{i}")).collect();
    let at = place(ident.span());
    if !signature.is_async {
        // References point into the batch.
        let types = arguments.iter().map(|argument| with_lifetime(&argument.ty, "'a"));
        return quote_spanned!(at=> |(#(#names,)*): (#(#types,)*)| #ident(#(#names),*));
    }
    // A call may outlive the batch, so its future owns what the function borrows.
    let types = arguments.iter().map(Argument::owned);
    let lent = arguments.iter().zip(&names).map(|(argument, name)| match &argument.ty {
        Type::Reference(reference) => {
            let borrowed = &reference.elem;
            quote!(::std::borrow::Borrow::<#borrowed>::borrow(&#name))
        }
        _ if argument.borrows() => quote!(#name.as_deref()),
        _ => quote!(#name),
    });
    let context = signature.context.as_ref().map(|context| quote!(__context: ::std::sync::Arc<#context>,));
    let shared = context.as_ref().map(|_| quote!(__context,));
    let call = quote_spanned!(at=> #ident(#shared #(#lent),*));
    let future = if arguments.iter().any(Argument::borrows) { quote!(async move { #call.await }) } else { call };
    quote_spanned!(at=> |#context (#(#names,)*): (#(#types,)*)| #future)
}

/// The text of the `///` comments.
pub fn documentation(attributes: &[syn::Attribute]) -> String {
    let line = |attribute: &syn::Attribute| match &attribute.meta {
        Meta::NameValue(MetaNameValue { path, value: Expr::Lit(ExprLit { lit: Lit::Str(text), .. }), .. }) if path.is_ident("doc") => {
            let text = text.value();
            Some(text.strip_prefix(' ').unwrap_or(&text).trim_end().to_owned())
        }
        _ => None,
    };
    let lines: Vec<String> = attributes.iter().filter_map(line).collect();
    lines.join("\n").trim_end().to_owned()
}
