//! What stands in `#[udf(...)]`: the words are those of the header's options and of Arroyo's attribute.

use proc_macro2::TokenStream;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Error, LitInt, LitStr, Result};

/// `None`: the author did not choose.
#[derive(Debug, Default, PartialEq)]
pub struct Options {
    /// A thread for each call of an `fn`.
    pub blocking: bool,
    pub ordered: Option<bool>,
    pub timeout_ns: Option<u64>,
    pub allowed_in_flight: Option<u32>,
}

const KNOWN: &str = "`blocking`, `ordered`, `unordered`, `timeout = \"10s\"` or `allowed_in_flight = 100`";
const CHOSEN: &str = "this option is chosen already: write it once";

pub fn parse(attribute: TokenStream, is_async: bool) -> Result<Options> {
    let place = attribute.span();
    let mut options = Options::default();
    syn::meta::parser(|meta| parse_one(&meta, &mut options)).parse2(attribute)?;
    match (is_async, options.blocking) {
        (true, true) => Err(Error::new(place, "`blocking` is for an `fn`, and an `async fn` must not block: leave one of the two out")),
        (false, false) if options != Options::default() => Err(Error::new(
            place,
            "a synchronous function has no options: write `#[udf]`, or `#[udf(blocking, ...)]` if it waits, or `async fn` below it",
        )),
        _ => Ok(options),
    }
}

fn parse_one(meta: &ParseNestedMeta<'_>, options: &mut Options) -> Result<()> {
    let Some(name) = meta.path.get_ident().map(ToString::to_string) else {
        return Err(meta.error(format!("unknown option: write {KNOWN}")));
    };
    match name.as_str() {
        "blocking" if options.blocking => Err(meta.error(CHOSEN)),
        "blocking" => {
            options.blocking = true;
            Ok(())
        }
        "ordered" | "unordered" => set(&mut options.ordered, name == "ordered", meta),
        "timeout" => {
            let text: LitStr = value(meta, "timeout = \"500ms\"")?;
            let timeout = nanoseconds(&text.value()).map_err(|what| Error::new(text.span(), what))?;
            set(&mut options.timeout_ns, timeout, meta)
        }
        "allowed_in_flight" => {
            let number: LitInt = value(meta, "allowed_in_flight = 100")?;
            match number.base10_parse::<u32>() {
                Ok(limit) if limit > 0 => set(&mut options.allowed_in_flight, limit, meta),
                _ => Err(Error::new(number.span(), "allowed_in_flight is a number of calls, from 1 to 4294967295")),
            }
        }
        _ => Err(meta.error(format!("unknown option `{name}`: write {KNOWN}"))),
    }
}

/// The literal after `=`; anything else is answered with the `example`.
fn value<T: syn::parse::Parse>(meta: &ParseNestedMeta<'_>, example: &str) -> Result<T> {
    let example = |error: Error| Error::new(error.span(), format!("write `{example}`"));
    meta.value().map_err(example)?.parse().map_err(example)
}

fn set<T>(option: &mut Option<T>, value: T, meta: &ParseNestedMeta<'_>) -> Result<()> {
    if option.replace(value).is_some() {
        return Err(meta.error(CHOSEN));
    }
    Ok(())
}

fn nanoseconds(text: &str) -> std::result::Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "us" => Some(1_000),
        "ms" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        "m" => Some(60_000_000_000),
        "h" => Some(3_600_000_000_000_u64),
        _ => None,
    };
    let product = factor.and_then(|factor| number.parse::<u64>().ok()?.checked_mul(factor));
    product
        .filter(|timeout| *timeout > 0)
        .ok_or_else(|| format!("timeout is a whole number above 0 with a unit (us, ms, s, m, h), such as \"500ms\", not \"{text}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    fn error(attribute: TokenStream) -> String {
        parse(attribute, true).unwrap_err().to_string()
    }

    #[test]
    fn nothing_chosen_is_nothing() {
        assert_eq!(parse(quote!(), true).unwrap(), Options::default());
        assert_eq!(parse(quote!(), false).unwrap(), Options::default());
    }

    #[test]
    fn all_options_are_read() {
        let options = parse(quote!(unordered, timeout = "10ms", allowed_in_flight = 7), true).unwrap();
        let expected = Options { blocking: false, ordered: Some(false), timeout_ns: Some(10_000_000), allowed_in_flight: Some(7) };
        assert_eq!(options, expected);
        let options = parse(quote!(allowed_in_flight = 7, blocking), false).unwrap();
        assert_eq!(options, Options { blocking: true, allowed_in_flight: Some(7), ..Options::default() });
    }

    #[test]
    fn each_unit_is_known() {
        let all = ["3us", "3ms", "3s", "3m", "3h"].map(|text| nanoseconds(text).unwrap());
        assert_eq!(all, [3_000, 3_000_000, 3_000_000_000, 180_000_000_000, 10_800_000_000_000]);
    }

    #[test]
    fn a_timeout_that_is_no_time_is_refused() {
        for text in ["", "10", "ms", "0s", "-1s", "1.5s", "1 s", "9999999999999h"] {
            assert!(nanoseconds(text).is_err(), "{text}");
        }
    }

    /// F5
    #[test]
    fn mistakes_say_what_to_write() {
        assert!(error(quote!(retries = 3)).starts_with("unknown option `retries`: write `blocking`, `ordered`"));
        assert!(error(quote!(timeout = 10)).contains("write `timeout = \"500ms\"`"));
        assert!(error(quote!(timeout)).contains("write `timeout = \"500ms\"`"));
        assert!(error(quote!(allowed_in_flight = 0)).contains("from 1"));
        assert!(error(quote!(allowed_in_flight = "2")).contains("write `allowed_in_flight = 100`"));
        assert!(error(quote!(ordered, unordered)).contains("write it once"));
        assert!(error(quote!(blocking)).contains("must not block"));
        assert!(parse(quote!(blocking, blocking), false).unwrap_err().to_string().contains("write it once"));
        assert!(parse(quote!(ordered), false).unwrap_err().to_string().contains("synchronous"));
    }
}
