//! `#[udtf]`: the description of a table function.

use crate::expand::{documentation, place, register, Registered};
use crate::options;
use crate::signature::{name, with_lifetime, Checked};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{Error, Ident, ItemFn, Result, Token, Type, TypeTuple};

/// The options in `#[udtf(...)]`.
#[derive(Default)]
pub struct Attribute {
    /// The names of the columns; none: one column with the function's name.
    columns: Vec<Ident>,
    volatility: u32,
}

pub fn parse(attribute: TokenStream) -> Result<Attribute> {
    let mut chosen = Attribute::default();
    let parser = syn::meta::parser(|meta| {
        if meta.path.is_ident("columns") {
            let names;
            syn::parenthesized!(names in meta.input);
            chosen.columns = Punctuated::<Ident, Token![,]>::parse_terminated(&names)?.into_iter().collect();
            return Ok(());
        }
        if meta.path.is_ident("volatility") {
            chosen.volatility = options::volatility(&meta)?;
            return Ok(());
        }
        Err(meta.error("unknown option: write `columns(word, place)` or `volatility = \"stable\"`"))
    });
    parser.parse2(attribute)?;
    let mut known = std::collections::HashSet::new();
    match chosen.columns.iter().find(|column| !known.insert(name(column))) {
        Some(column) => Err(Error::new(column.span(), "a second column of this name: rename one")),
        None => Ok(chosen),
    }
}

/// A tuple in what a function returns.
fn several(returns: &Type) -> Option<TypeTuple> {
    struct Finder(Option<TypeTuple>);
    impl VisitMut for Finder {
        fn visit_type_tuple_mut(&mut self, tuple: &mut TypeTuple) {
            self.0.get_or_insert_with(|| tuple.clone());
        }
    }
    let mut finder = Finder(None);
    finder.visit_type_mut(&mut returns.clone());
    finder.0
}

pub fn udtf(function: &ItemFn, signature: &Checked, chosen: &Attribute) -> Result<TokenStream> {
    if signature.is_async {
        return Err(Error::new(function.sig.asyncness.span(), "a table function is a plain `fn`: remove `async`"));
    }
    if let (true, Some(several)) = (chosen.columns.is_empty(), several(&signature.returns)) {
        return Err(Error::new(several.span(), "several columns need names: write `#[udtf(columns(word, place))]`"));
    }
    let ident = &function.sig.ident;
    let names: Vec<String> = match chosen.columns.is_empty() {
        true => vec![name(ident)],
        false => chosen.columns.iter().map(name).collect(),
    };
    let arguments = signature.arguments.iter().map(|argument| {
        let (name, ty) = (&argument.name, with_lifetime(&argument.ty, "'static"));
        quote_spanned!(place(argument.ty.span())=> ::arroyo_udf_plugin::sdk::Argument::new::<#ty>(#name))
    });
    let types = signature.arguments.iter().map(|argument| with_lifetime(&argument.ty, "'a"));
    let given: Vec<_> = (0..signature.arguments.len()).map(|i| format_ident!("__argument_{i}")).collect();
    let returns = with_lifetime(&signature.returns, "'static");
    let row = quote!(<#returns as ::arroyo_udf_plugin::sdk::udtf::Rows>::Row);
    // One column is a value, and several are a tuple.
    let (row, tuple) = match names.len() {
        1 => (quote!((#row,)), quote!((__row,))),
        _ => (row, quote!(__row)),
    };
    let place = place(signature.returns.span());
    Ok(register(&Registered {
        name: name(ident),
        after: 0,
        arguments: quote!(#(#arguments),*),
        returns: quote_spanned!(place=> ::arroyo_udf_plugin::sdk::udtf::returned::<#row>(&[#(#names),*])),
        body: quote!(::arroyo_udf_plugin::sdk::Body::Table(__arroyo_udf_run)),
        documentation: documentation(&function.attrs),
        volatility: chosen.volatility,
        code: quote_spanned! {place=>
            fn __arroyo_udf_run<'a>(
                batch: &'a ::arroyo_udf_plugin::arrow::Batch,
            ) -> ::std::vec::Vec<::core::result::Result<::arroyo_udf_plugin::value::Value, ::std::string::String>> {
                ::arroyo_udf_plugin::sdk::udtf::run(
                    &__ARROYO_UDF, batch, |(#(#given,)*): (#(#types,)*)| #ident(#(#given),*), |__row| #tuple,
                )
            }
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F5
    #[test]
    fn wrong_options_are_refused() {
        for (options, text) in [
            (quote!(columns(a, a)), "a second column"),
            (quote!(columns = 1), "expected parentheses"),
            (quote!(rows), "unknown option"),
            (quote!(volatility = "often"), "volatility is"),
        ] {
            let error = parse(options).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(text), "{error}");
        }
        assert_eq!(parse(quote!(columns(a, r#type), volatility = "stable")).map(|it| (it.columns.len(), it.volatility)).unwrap(), (2, 2));
    }

    /// F5
    #[test]
    fn several_columns_have_names() {
        let mistake = |function: ItemFn| {
            let signature = crate::signature::check(&function.sig).unwrap();
            udtf(&function, &signature, &Attribute::default()).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let wrong: ItemFn = syn::parse_quote!(
            fn f(a: i64) -> Result<Vec<(String, i64)>, String> {}
        );
        assert!(mistake(wrong).contains("several columns need names"));
        let right: ItemFn = syn::parse_quote!(
            fn f(a: i64) -> Vec<String> {}
        );
        assert_eq!(mistake(right), "");
    }

    #[test]
    fn it_is_a_plain_function() {
        let function: ItemFn = syn::parse_quote!(
            async fn f(a: i64) -> Vec<i64> {}
        );
        let signature = crate::signature::check(&function.sig).unwrap();
        assert!(udtf(&function, &signature, &Attribute::default()).unwrap_err().to_string().contains("plain `fn`"));
    }
}
