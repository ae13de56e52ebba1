//! Which functions can be UDFs, and error texts for those that cannot (F5). The SDK's traits check the types; here only what a
//! trait could not report well: the form of the signature, and references in an `async fn`.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Error, FnArg, GenericArgument, Ident, Lifetime, Pat, PathArguments, ReturnType, Signature, Type, TypeReference};

/// The number that `sdk::arguments` implements.
const MOST_ARGUMENTS: usize = 12;

pub struct Checked {
    pub is_async: bool,
    /// `Context` of a first argument `Arc<Context>`.
    pub context: Option<Type>,
    pub arguments: Vec<Argument>,
    pub returns: Type,
}

pub struct Argument {
    pub name: String,
    pub ty: Type,
}

impl Argument {
    /// Whether it contains a reference. An `async fn` gets a copy then, because the batch may be gone during the call.
    pub fn borrows(&self) -> bool {
        struct Finder(bool);
        impl VisitMut for Finder {
            fn visit_type_reference_mut(&mut self, _: &mut TypeReference) {
                self.0 = true;
            }
        }
        let mut finder = Finder(false);
        finder.visit_type_mut(&mut self.ty.clone());
        finder.0
    }

    /// The type of that copy: each `&T` becomes the owned type of `T`.
    pub fn owned(&self) -> Type {
        struct Owner;
        impl VisitMut for Owner {
            fn visit_type_mut(&mut self, ty: &mut Type) {
                if let Type::Reference(reference) = ty {
                    let (place, borrowed) = (reference.span(), &reference.elem);
                    *ty = syn::parse_quote_spanned!(place=> <#borrowed as ::std::borrow::ToOwned>::Owned);
                } else {
                    visit_mut::visit_type_mut(self, ty);
                }
            }
        }
        let mut ty = self.ty.clone();
        Owner.visit_type_mut(&mut ty);
        ty
    }
}

/// Checks a signature. The error combines all mistakes, each on its own tokens.
pub fn check(signature: &Signature) -> syn::Result<Checked> {
    let mut mistakes = Mistakes(None);
    let is_async = signature.asyncness.is_some();

    if !signature.generics.params.is_empty() || signature.generics.where_clause.is_some() {
        mistakes.add(
            signature.generics.span(),
            "a UDF has no generics or named lifetimes, because a column has one type: write the types, such as `i64` or `&str`",
        );
    }
    if let Some(token) = &signature.unsafety {
        mistakes.add(token.span(), "the host calls a UDF with any value of a column, so it cannot be `unsafe`: remove that");
    }
    if let Some(token) = &signature.abi {
        mistakes.add(token.span(), "a UDF is a plain Rust function: remove `extern`");
    }
    if let Some(token) = &signature.variadic {
        mistakes.add(token.span(), "a UDF has a fixed number of arguments: name each one");
    }

    let context = signature.inputs.first().and_then(shared);
    if let Some(context) = context.as_ref().filter(|_| !is_async) {
        mistakes.add(context.span(), "only async calls share a Context: write `async fn`, or remove the Context");
    }

    let mut arguments = Vec::new();
    for input in signature.inputs.iter().skip(usize::from(context.is_some())) {
        match input {
            FnArg::Receiver(receiver) => {
                mistakes.add(receiver.span(), "a UDF has no `self`: move it out of the `impl` and write an argument for each column")
            }
            FnArg::Typed(argument) => match &*argument.pat {
                Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => {
                    if is_async {
                        refuse_constant(&argument.ty, &mut mistakes);
                    }
                    check_type(&argument.ty, false, &mut mistakes);
                    arguments.push(Argument { name: name(&pattern.ident), ty: (*argument.ty).clone() });
                }
                pattern => mistakes
                    .add(pattern.span(), "an argument of a UDF needs a name, for its column: write `name: Type` and destructure it inside"),
            },
        }
    }

    if arguments.len() > MOST_ARGUMENTS {
        mistakes.add(signature.inputs.span(), &format!("a UDF has at most {MOST_ARGUMENTS} arguments"));
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
        (None, Some(returns)) => Ok(Checked { is_async, context, arguments, returns }),
        (Some(error), _) => Err(error),
        (None, None) => unreachable!("a missing return type is a mistake"),
    }
}

/// `Context` of an argument `Arc<Context>`.
fn shared(input: &FnArg) -> Option<Type> {
    let FnArg::Typed(argument) = input else { return None };
    let Type::Path(path) = &*argument.ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Arc")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(context) => Some(context.clone()),
        _ => None,
    }
}

/// The name of a function or argument without the raw prefix: `r#type` is `type`.
pub fn name(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// The type with `lifetime` in each reference without one.
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

fn refuse_constant(ty: &Type, mistakes: &mut Mistakes) {
    struct Finder<'a>(&'a mut Mistakes);
    impl VisitMut for Finder<'_> {
        fn visit_path_segment_mut(&mut self, segment: &mut syn::PathSegment) {
            if segment.ident == "Constant" {
                self.0.add(segment.span(), "the call of an `async fn` outlives its batch: write the type without `Constant`");
            }
            visit_mut::visit_path_segment_mut(self, segment);
        }
    }
    Finder(mistakes).visit_type_mut(&mut ty.clone());
}

fn check_type(ty: &Type, must_own: bool, mistakes: &mut Mistakes) {
    struct Checker<'a>(bool, &'a mut Mistakes);
    impl VisitMut for Checker<'_> {
        fn visit_type_mut(&mut self, ty: &mut Type) {
            match ty {
                Type::ImplTrait(_) | Type::Infer(_) => {
                    self.1.add(ty.span(), "a column has one type: write it, such as `i64` or `String`");
                }
                Type::Reference(reference) if self.0 => self.1.add(
                    reference.span(),
                    "the result of an `async fn` outlives what it borrows: write `String` for `&str`, `Vec<u8>` for `&[u8]`",
                ),
                _ => visit_mut::visit_type_mut(self, ty),
            }
        }
    }
    Checker(must_own, mistakes).visit_type_mut(&mut ty.clone());
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
            (parse_quote!(async fn f(a: i64) -> &'static str), "`String` for `&str`"),
            (parse_quote!(async fn f(a: Option<types::Constant<&str>>) -> i64), "without `Constant`"),
            (parse_quote!(async fn f(a: i64) -> Option<&'static [u8]>), "outlives what it borrows"),
            (parse_quote!(fn f(context: Arc<Context>, a: i64) -> i64), "share a Context: write `async fn`"),
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
    fn several_mistakes_are_reported_together() {
        assert_eq!(mistakes(parse_quote!(unsafe fn f<T>(&self, a: T))).len(), 4);
    }

    #[test]
    fn a_valid_signature_is_accepted() {
        let right: Signature = parse_quote!(fn r#type(mut r#in: &str, b: Option<&[u8]>) -> Result<Option<i64>, String>);
        let checked = check(&right).unwrap();
        let names: Vec<_> = checked.arguments.iter().map(|argument| argument.name.as_str()).collect();
        assert_eq!((names, name(&right.ident).as_str()), (vec!["in", "b"], "type"));
        assert!(!checked.is_async);
        assert!(check(&parse_quote!(async fn f() -> i64)).unwrap().is_async);
    }

    #[test]
    fn a_context_is_the_first_argument_and_not_a_column() {
        let checked = |signature: Signature| check(&signature).map_err(|error| error.to_string()).unwrap();
        let text = |ty: &Type| ty.to_token_stream().to_string();
        let both = checked(parse_quote!(async fn f(shared: std::sync::Arc<Context>, id: i64) -> String));
        assert_eq!((both.context.as_ref().map(text), both.arguments[0].name.as_str()), (Some("Context".to_string()), "id"));
        let alone = checked(parse_quote!(async fn f(shared: Arc<my::Context>) -> String));
        assert_eq!((alone.context.as_ref().map(text), alone.arguments.len()), (Some("my :: Context".to_string()), 0));
        assert!(checked(parse_quote!(async fn f(id: i64) -> String)).context.is_none());
    }

    #[test]
    fn borrowed_arguments_are_owned_by_async_calls() {
        let argument = |ty: Type| Argument { name: "a".to_string(), ty };
        let owned = |ty: Type| argument(ty).owned().to_token_stream().to_string();
        let text = |ty: Type| ty.to_token_stream().to_string();
        assert_eq!(owned(parse_quote!(Option<&str>)), text(parse_quote!(Option<<str as ::std::borrow::ToOwned>::Owned>)));
        assert_eq!(owned(parse_quote!(&[u8])), text(parse_quote!(<[u8] as ::std::borrow::ToOwned>::Owned)));
        assert_eq!(owned(parse_quote!(Option<i64>)), text(parse_quote!(Option<i64>)));
        assert!(argument(parse_quote!(Option<&str>)).borrows() && !argument(parse_quote!(Option<String>)).borrows());
    }

    #[test]
    fn references_without_a_lifetime_get_one() {
        let filled = |ty: Type| with_lifetime(&ty, "'a").to_token_stream().to_string();
        let text = |ty: Type| ty.to_token_stream().to_string();
        assert_eq!(filled(parse_quote!(Option<&[u8]>)), text(parse_quote!(Option<&'a [u8]>)));
        assert_eq!(filled(parse_quote!(&'static str)), text(parse_quote!(&'static str)));
    }
}
