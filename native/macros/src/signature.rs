//! What can be a UDF, and what is said to the author of a function that cannot (F5). Types are judged by the SDK's
//! traits; here only what a trait could not say well: forms, and references in an `async fn`.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Error, FnArg, Ident, Lifetime, Pat, ReturnType, Signature, Type, TypeReference};

/// As many as `sdk::arguments` implements.
const MOST_ARGUMENTS: usize = 12;

pub struct Checked {
    pub is_async: bool,
    pub arguments: Vec<Argument>,
    pub returns: Type,
}

pub struct Argument {
    pub name: String,
    pub ty: Type,
}

/// All mistakes of a signature at once, each on its own tokens.
pub fn check(signature: &Signature) -> syn::Result<Checked> {
    let mut mistakes = Mistakes(None);
    let is_async = signature.asyncness.is_some();

    if !signature.generics.params.is_empty() || signature.generics.where_clause.is_some() {
        mistakes.add(
            signature.generics.span(),
            "a UDF has no generics or named lifetimes, its columns have one type each: write the types, such as `i64` or `&str`",
        );
    }
    if let Some(token) = &signature.unsafety {
        mistakes.add(token.span(), "the host calls a UDF with whatever a column holds, so it cannot be `unsafe`: remove that");
    }
    if let Some(token) = &signature.abi {
        mistakes.add(token.span(), "a UDF is a plain Rust function: remove `extern`");
    }
    if let Some(token) = &signature.variadic {
        mistakes.add(token.span(), "a UDF has a fixed number of arguments: name each one");
    }
    if signature.inputs.len() > MOST_ARGUMENTS {
        mistakes.add(signature.inputs.span(), &format!("a UDF has at most {MOST_ARGUMENTS} arguments"));
    }

    let mut arguments = Vec::new();
    for input in &signature.inputs {
        match input {
            FnArg::Receiver(receiver) => {
                mistakes.add(receiver.span(), "a UDF has no `self`: move it out of the `impl` and write an argument for each column")
            }
            FnArg::Typed(argument) => match &*argument.pat {
                Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => {
                    check_type(&argument.ty, is_async, &mut mistakes);
                    arguments.push(Argument { name: name(&pattern.ident), ty: (*argument.ty).clone() });
                }
                pattern => mistakes.add(
                    pattern.span(),
                    "an argument of a UDF needs a name, which is its column's: write `name: Type` and take it apart inside",
                ),
            },
        }
    }

    let returns = match &signature.output {
        ReturnType::Default => {
            let place = Span::join(&signature.ident.span(), signature.paren_token.span.join()).unwrap_or(signature.ident.span());
            mistakes.add(place, "a UDF returns a value for each row: write its type, such as `-> i64` or `-> Option<String>`");
            None
        }
        ReturnType::Type(_, ty) => {
            check_type(ty, is_async, &mut mistakes);
            Some((**ty).clone())
        }
    };
    match (mistakes.0, returns) {
        (None, Some(returns)) => Ok(Checked { is_async, arguments, returns }),
        (Some(error), _) => Err(error),
        (None, None) => unreachable!("a missing return type is a mistake"),
    }
}

/// The name of a function or argument as its author says it: `r#type` is `type`.
pub fn name(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// The type with `lifetime` in each reference that has none.
pub fn with_lifetime(ty: &Type, lifetime: &str) -> Type {
    struct Filler(Lifetime);
    impl VisitMut for Filler {
        fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
            reference.lifetime.get_or_insert_with(|| self.0.clone());
            visit_mut::visit_type_reference_mut(self, reference);
        }
    }
    let mut ty = ty.clone();
    Filler(Lifetime::new(lifetime, Span::call_site())).visit_type_mut(&mut ty);
    ty
}

fn check_type(ty: &Type, is_async: bool, mistakes: &mut Mistakes) {
    struct Checker<'a>(bool, &'a mut Mistakes);
    impl VisitMut for Checker<'_> {
        fn visit_type_mut(&mut self, ty: &mut Type) {
            match ty {
                Type::ImplTrait(_) | Type::Infer(_) => {
                    self.1.add(ty.span(), "a column has one type: write it, such as `i64` or `String`");
                }
                Type::Reference(reference) if self.0 => self.1.add(
                    reference.span(),
                    "an `async fn` outlives the batch that its row came in, so it owns its arguments: write `String` for `&str`, `Vec<u8>` for `&[u8]`",
                ),
                _ => visit_mut::visit_type_mut(self, ty),
            }
        }
    }
    Checker(is_async, mistakes).visit_type_mut(&mut ty.clone());
}

struct Mistakes(Option<Error>);

impl Mistakes {
    fn add(&mut self, place: Span, what: &str) {
        let error = Error::new(place, what);
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::ToTokens;
    use syn::parse_quote;

    fn mistakes(signature: Signature) -> Vec<String> {
        match check(&signature) {
            Ok(_) => vec![],
            Err(error) => error.into_iter().map(|one| one.to_string()).collect(),
        }
    }

    /// F5
    #[test]
    fn each_mistake_has_its_own_text() {
        let cases: Vec<(Signature, &str)> = vec![
            (parse_quote!(fn f(a: i64)), "write its type"),
            (parse_quote!(fn f<T>(a: T) -> T), "no generics"),
            (parse_quote!(fn f<'a>(a: &'a str) -> &'a str), "no generics or named lifetimes"),
            (parse_quote!(fn f(&self) -> i64), "no `self`"),
            (parse_quote!(fn f((a, b): (i64, i64)) -> i64), "needs a name"),
            (parse_quote!(fn f(a: impl Into<i64>) -> i64), "one type"),
            (parse_quote!(unsafe fn f(a: i64) -> i64), "`unsafe`"),
            (parse_quote!(extern "C" fn f(a: i64) -> i64), "`extern`"),
            (parse_quote!(async fn f(a: &str) -> i64), "`String` for `&str`"),
            (parse_quote!(async fn f(a: Option<&[u8]>) -> i64), "owns its arguments"),
            (parse_quote!(async fn f(a: i64) -> &'static str), "owns its arguments"),
            (
                parse_quote!(fn f(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8, h: u8, i: u8, j: u8, k: u8, l: u8, m: u8) -> u8),
                "at most 12",
            ),
        ];
        for (signature, expected) in cases {
            let found = mistakes(signature);
            assert!(found.len() == 1 && found[0].contains(expected), "{expected}: {found:?}");
        }
    }

    #[test]
    fn several_mistakes_are_told_together() {
        assert_eq!(mistakes(parse_quote!(unsafe fn f<T>(&self, a: T))).len(), 4);
    }

    #[test]
    fn what_is_right_is_taken() {
        let right: Signature = parse_quote!(fn r#type(mut r#in: &str, b: Option<&[u8]>) -> Result<Option<i64>, String>);
        let checked = check(&right).unwrap();
        let names: Vec<_> = checked.arguments.iter().map(|argument| argument.name.as_str()).collect();
        assert_eq!((names, name(&right.ident).as_str()), (vec!["in", "b"], "type"));
        assert!(!checked.is_async);
        assert!(check(&parse_quote!(async fn f() -> i64)).unwrap().is_async);
    }

    #[test]
    fn references_get_the_lifetime_that_they_lack() {
        let filled = |ty: Type| with_lifetime(&ty, "'a").to_token_stream().to_string();
        let text = |ty: Type| ty.to_token_stream().to_string();
        assert_eq!(filled(parse_quote!(Option<&[u8]>)), text(parse_quote!(Option<&'a [u8]>)));
        assert_eq!(filled(parse_quote!(&'static str)), text(parse_quote!(&'static str)));
    }
}
