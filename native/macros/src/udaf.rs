//! `#[udaf]`: the description of an aggregate and of its steps. `#[derive(State)]`: the bytes of a state.

use crate::expand::{documentation, place, register, Registered};
use crate::options;
use crate::signature::{self, with_lifetime, Argument};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Data, DeriveInput, Error, Fields, FnArg, Ident, ImplItem, ImplItemFn, ItemImpl, LitStr, Path, Result, ReturnType, Type};

const STEPS: &str = "`fn update(&mut self, value: f64)`, `fn merge(&mut self, other: Self)` and `fn finish(&self) -> f64`";

/// The options in `#[udaf(...)]`.
#[derive(Default)]
struct Attribute {
    name: Option<String>,
    volatility: u32,
}

pub fn udaf(attribute: TokenStream, item: &ItemImpl) -> Result<TokenStream> {
    let mut chosen = Attribute::default();
    let parser = syn::meta::parser(|meta| {
        if meta.path.is_ident("name") {
            let name: LitStr = meta.value()?.parse()?;
            syn::parse_str::<syn::Ident>(&name.value())
                .map_err(|_| Error::new(name.span(), "a function's name is a word, such as \"mean\""))?;
            chosen.name = Some(name.value());
            return Ok(());
        }
        if meta.path.is_ident("volatility") {
            chosen.volatility = options::volatility(&meta)?;
            return Ok(());
        }
        Err(meta.error("unknown option: write `name = \"mean\"` or `volatility = \"stable\"`"))
    });
    syn::parse::Parser::parse2(parser, attribute)?;
    if item.trait_.is_some() || !item.generics.params.is_empty() {
        return Err(Error::new(item.impl_token.span(), "#[udaf] belongs on the `impl` of a struct, without a trait and without generics"));
    }
    let group = &item.self_ty;
    let (update, merge, finish) = (step(item, "update")?, step(item, "merge")?, step(item, "finish")?);
    let name = chosen.name.map_or_else(|| snake_case(group), Ok)?;

    let arguments = arguments(update)?;
    let merged = match merge.sig.inputs.iter().nth(1) {
        Some(FnArg::Typed(other)) if merge.sig.inputs.len() == 2 => match &*other.ty {
            Type::Reference(_) => quote!(&__other),
            _ => quote!(__other),
        },
        _ => return Err(Error::new(merge.sig.span(), "`merge` takes another state: write `fn merge(&mut self, other: Self)`")),
    };
    let ReturnType::Type(_, returns) = &finish.sig.output else {
        return Err(Error::new(finish.sig.span(), "`finish` returns the group's value: write its type, such as `-> Option<f64>`"));
    };
    if finish.sig.inputs.len() != 1 {
        return Err(Error::new(finish.sig.inputs.span(), "`finish` takes the state alone: write `fn finish(&self)`"));
    }

    let bytes = quote!(&'a [u8]);
    let columns: Vec<_> = arguments.iter().map(|argument| with_lifetime(&argument.ty, "'a")).collect();
    let names: Vec<_> = (0..columns.len()).map(|i| format_ident!("__argument_{i}")).collect();
    let update_call = quote_spanned! {place(update.sig.ident.span())=>
        |(__state, #(#names,)*): (::core::option::Option<#bytes>, #(::arroyo_udf_plugin::sdk::udaf::Rows<'a, #columns>,)*)| {
            let mut __group: #group = ::arroyo_udf_plugin::sdk::udaf::opened(__state)?;
            for __row in 0..::arroyo_udf_plugin::sdk::udaf::same_length([#(#names.len()),*])? {
                #(let ::core::option::Option::Some(#names) = #names.get(__row)? else { continue };)*
                ::arroyo_udf_plugin::sdk::udaf::Done::done(__group.update(#(#names),*))?;
            }
            ::core::result::Result::<_, ::std::string::String>::Ok(::arroyo_udf_plugin::sdk::udaf::kept(&__group))
        }
    };
    let merge_call = quote_spanned! {place(merge.sig.ident.span())=>
        |(__state, __other): (#bytes, #bytes)| {
            let mut __group: #group = ::arroyo_udf_plugin::sdk::udaf::opened(::core::option::Option::Some(__state))?;
            let __other: #group = ::arroyo_udf_plugin::sdk::udaf::opened(::core::option::Option::Some(__other))?;
            ::arroyo_udf_plugin::sdk::udaf::Done::done(__group.merge(#merged))?;
            ::core::result::Result::<_, ::std::string::String>::Ok(::arroyo_udf_plugin::sdk::udaf::kept(&__group))
        }
    };
    let finish_call = quote_spanned! {place(finish.sig.ident.span())=>
        |(__state,): (::core::option::Option<#bytes>,)| {
            #[allow(unused_mut)]
            let mut __group: #group = ::arroyo_udf_plugin::sdk::udaf::opened(__state)?;
            ::arroyo_udf_plugin::sdk::types::Return::into_result(__group.finish())
        }
    };

    let described: Vec<_> = arguments.iter().map(|argument| described(argument, &argument.ty)).collect();
    let lists = arguments.iter().map(|argument| {
        let ty = with_lifetime(&argument.ty, "'static");
        described_as(argument, quote!(::arroyo_udf_plugin::sdk::udaf::Rows<'static, #ty>))
    });
    let state = quote!(::arroyo_udf_plugin::sdk::Argument::new::<&'static [u8]>("state"));
    let any_state = quote!(::arroyo_udf_plugin::sdk::Argument::new::<::core::option::Option<&'static [u8]>>("state"));
    let other = quote!(::arroyo_udf_plugin::sdk::Argument::new::<&'static [u8]>("other"));
    let of_state = quote!(::arroyo_udf_plugin::sdk::Type::returned::<::std::vec::Vec<u8>>());
    let of_value = quote_spanned!(place(returns.span())=> ::arroyo_udf_plugin::sdk::Type::returned::<#returns>());

    let seen = register(&Registered {
        name: name.clone(),
        after: 0,
        arguments: quote!(#(#described),*),
        returns: of_value.clone(),
        body: quote!(::arroyo_udf_plugin::sdk::Body::Aggregate),
        documentation: documentation(&item.attrs),
        volatility: chosen.volatility,
        code: quote!(),
    });
    let step = |after: u32, step: &str, arguments: TokenStream, returns: &TokenStream, call: &TokenStream| {
        register(&Registered {
            name: format!("{name}.{step}"),
            after,
            arguments,
            returns: returns.clone(),
            body: quote!(::arroyo_udf_plugin::sdk::Body::Step(__arroyo_udf_run)),
            documentation: String::new(),
            volatility: 0,
            code: quote_spanned! {place(item.self_ty.span())=>
                fn __arroyo_udf_run<'a>(batch: &'a ::arroyo_udf_plugin::arrow::Batch) -> ::arroyo_udf_plugin::sdk::Results {
                    ::arroyo_udf_plugin::sdk::sync::run(&__ARROYO_UDF, batch, #call)
                }
            },
        })
    };
    let update = step(1, "update", quote!(#any_state, #(#lists),*), &of_state, &update_call);
    let merge = step(2, "merge", quote!(#state, #other), &of_state, &merge_call);
    let finish = step(3, "finish", quote!(#any_state), &of_value, &finish_call);
    Ok(quote!(#seen #update #merge #finish))
}

fn step<'a>(item: &'a ItemImpl, name: &str) -> Result<&'a ImplItemFn> {
    let functions = item.items.iter().filter_map(|item| match item {
        ImplItem::Fn(function) => Some(function),
        _ => None,
    });
    let found = functions.into_iter().find(|function| function.sig.ident == name);
    let step = found.ok_or_else(|| Error::new(item.self_ty.span(), format!("an aggregate needs `{name}`: write {STEPS}")))?;
    if step.sig.asyncness.is_some() || step.sig.receiver().is_none() || !step.sig.generics.params.is_empty() {
        return Err(Error::new(step.sig.span(), format!("a step is a plain method without generics: write {STEPS}")));
    }
    Ok(step)
}

/// Those of `update`, without `self`.
fn arguments(update: &ImplItemFn) -> Result<Vec<Argument>> {
    let mut signature = update.sig.clone();
    signature.inputs = signature.inputs.into_iter().skip(1).collect();
    signature.output = syn::parse_quote!(-> bool);
    if signature.inputs.is_empty() {
        return Err(Error::new(
            update.sig.span(),
            "`update` has no arguments; they are the columns: write `fn update(&mut self, value: f64)`",
        ));
    }
    Ok(signature::check(&signature)?.arguments)
}

fn described(argument: &Argument, ty: &Type) -> TokenStream {
    let ty = with_lifetime(ty, "'static");
    described_as(argument, quote!(#ty))
}

fn described_as(argument: &Argument, ty: TokenStream) -> TokenStream {
    let name = &argument.name;
    quote_spanned!(place(argument.ty.span())=> ::arroyo_udf_plugin::sdk::Argument::new::<#ty>(#name))
}

/// `GeometricMean` is `geometric_mean`.
fn snake_case(group: &Type) -> Result<String> {
    let last = match group {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    };
    let ident = last.ok_or_else(|| Error::new(group.span(), "#[udaf] belongs on the `impl` of a struct"))?;
    let mut name = String::new();
    for (i, letter) in signature::name(&ident.ident).chars().enumerate() {
        if letter.is_uppercase() && i > 0 {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    Ok(name)
}

/// Whether a type names another one.
fn names(ty: &Type, ident: &Ident) -> bool {
    struct Finder<'a>(&'a Ident, bool);
    impl VisitMut for Finder<'_> {
        fn visit_path_mut(&mut self, path: &mut Path) {
            self.1 |= path.is_ident(self.0) || path.is_ident("Self");
            visit_mut::visit_path_mut(self, path);
        }
    }
    let mut finder = Finder(ident, false);
    finder.visit_type_mut(&mut ty.clone());
    finder.1
}

pub fn derive_state(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new(input.ident.span(), "#[derive(State)] is for a struct, whose fields are the state"));
    };
    if data.fields.is_empty() || !input.generics.params.is_empty() {
        return Err(Error::new(
            input.ident.span(),
            "a state is a struct with fields and without generics: `struct Mean { total: f64, count: i64 }`",
        ));
    }
    let ident = &input.ident;
    let members: Vec<_> = data.fields.members().collect();
    let types: Vec<_> = data.fields.iter().map(|field| &field.ty).collect();
    if let Some(own) = types.iter().find(|ty| names(ty, ident)) {
        return Err(Error::new(
            own.span(),
            "a state cannot hold itself, because bytes from outside could nest without an end: keep a `Vec` of items, with \
             the number of each one's parent",
        ));
    }
    let read = types.iter().map(|ty| quote_spanned!(ty.span()=> <#ty as ::arroyo_udf_plugin::State>::restore(from)?));
    let made = match &data.fields {
        Fields::Named(_) => quote!(Self { #(#members: #read),* }),
        _ => quote!(Self(#(#read),*)),
    };
    let levels: Vec<_> = types.iter().map(|ty| quote_spanned!(ty.span()=> <#ty as ::arroyo_udf_plugin::State>::LEVELS)).collect();
    let written = types
        .iter()
        .zip(&members)
        .map(|(ty, member)| quote_spanned!(ty.span()=> <#ty as ::arroyo_udf_plugin::State>::store(&self.#member, to);));
    Ok(quote! {
        impl ::arroyo_udf_plugin::State for #ident {
            const LEVELS: usize = {
                let mut most = 0;
                #(if most < #levels { most = #levels; })*
                1 + most
            };

            fn store(&self, to: &mut ::std::vec::Vec<u8>) {
                #(#written)*
            }

            fn restore(from: &mut &[u8]) -> ::core::option::Option<Self> {
                ::core::option::Option::Some(#made)
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    const UPDATE: &str = "fn update(&mut self, value: f64) {}";
    const MERGE: &str = "fn merge(&mut self, other: Self) {}";
    const FINISH: &str = "fn finish(&self) -> f64 { 0.0 }";

    fn mistake(steps: &[&str]) -> String {
        let item = syn::parse_str(&format!("impl Mean {{ {} }}", steps.concat())).unwrap();
        udaf(quote!(), &item).err().map(|error| error.to_string()).unwrap_or_default()
    }

    /// F5
    #[test]
    fn each_mistake_has_its_own_text() {
        assert_eq!(mistake(&[UPDATE, MERGE, FINISH]), "");
        assert!(mistake(&[UPDATE, FINISH]).contains("needs `merge`"));
        assert!(mistake(&["async fn update(&mut self, a: i64) {}", MERGE, FINISH]).contains("a plain method"));
        assert!(mistake(&["fn update(a: i64) {}", MERGE, FINISH]).contains("a plain method"));
        assert!(mistake(&["fn update(&mut self) {}", MERGE, FINISH]).contains("has no arguments"));
        assert!(mistake(&["fn update(&mut self, (a, b): (i64, i64)) {}", MERGE, FINISH]).contains("needs a name"));
        assert!(mistake(&[UPDATE, "fn merge(&mut self) {}", FINISH]).contains("takes another state"));
        assert!(mistake(&[UPDATE, MERGE, "fn finish(&self) {}"]).contains("returns the group's value"));
        assert!(mistake(&[UPDATE, MERGE, "fn finish(&self, a: i64) -> i64 { a }"]).contains("the state alone"));
        let of_trait: ItemImpl = parse_quote!(impl Clone for Mean {});
        assert!(udaf(quote!(), &of_trait).unwrap_err().to_string().contains("without a trait"));
        let whole: ItemImpl = syn::parse_str(&format!("impl Mean {{ {UPDATE} {MERGE} {FINISH} }}")).unwrap();
        for (options, text) in [(quote!(name = "a b"), "is a word"), (quote!(ordered), "unknown option"), (quote!(volatility = 1), "write")]
        {
            assert!(udaf(options, &whole).unwrap_err().to_string().contains(text), "{text}");
        }
    }

    #[test]
    fn a_state_is_a_struct_with_fields() {
        for wrong in [
            quote!(
                enum A {
                    B,
                }
            ),
            quote!(
                struct A;
            ),
            quote!(
                struct A<T> {
                    a: T,
                }
            ),
        ] {
            assert!(derive_state(&syn::parse2(wrong).unwrap()).is_err());
        }
        assert!(derive_state(&parse_quote!(
            struct A(i64, f64);
        ))
        .is_ok());
        let mistake = |item: DeriveInput| derive_state(&item).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(mistake(parse_quote!(
            struct Tree {
                size: u8,
                children: Vec<Option<Tree>>,
            }
        ))
        .contains("cannot hold itself"));
        assert!(mistake(parse_quote!(
            struct Tree(Vec<Self>);
        ))
        .contains("cannot hold itself"));
    }

    #[test]
    fn names_are_those_of_functions() {
        let named = |group: Type| snake_case(&group).unwrap();
        assert_eq!(named(parse_quote!(GeometricMean)), "geometric_mean");
        assert_eq!(named(parse_quote!(mean)), "mean");
    }
}
