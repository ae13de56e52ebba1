//! The options in `#[udf(...)]`. Their words are those of the header's options and of Arroyo's attribute.

use proc_macro2::TokenStream;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Error, Lit, LitInt, LitStr, Result};

/// The options that the author set, in the order of the attribute.
#[derive(Debug, Default, PartialEq)]
pub struct Attribute {
    /// Each call of an `fn` gets a thread.
    pub blocking: bool,
    /// What the result depends on: a value of the header's enum; 0: not said.
    pub volatility: u32,
    /// Field of the header's options -> its value.
    pub fields: Vec<(&'static str, u64)>,
}

const KNOWN: &str = "`blocking`, `ordered`, `unordered`, `timeout = \"10s\"`, `allowed_in_flight = 100`, `deadline = \"1m\"`, \
    `rate = \"500/s\"`, `max_rows = 16384`, `max_bytes = 67108864`, `max_attempts = 3`, `retry_on = \"timeout, error\"`, \
    `backoff = \"100ms\"`, `max_backoff = \"10s\"`, `seed = 1`, `idempotent`, `max_stuck = 100`, `deterministic`, \
    `cache = 100000`, `cache_bytes = 67108864`, `cache_ttl = \"1m\"`, `cache_errors` or `volatility = \"stable\"`";
const LIMIT: &str = "allowed_in_flight is a number of calls, from 1 to 4294967295: write `allowed_in_flight = 100`; \
    or a limit that adapts: \"auto\", or \"auto:500\" for 500 at most";
const SECOND: u64 = 1_000_000_000;
const ALREADY_SET: &str = "this option is already set: write it once";

/// Options that are a duration: name, field, example.
const TIMES: [(&str, &str, &str); 5] = [
    ("timeout", "timeout_ns", "timeout = \"500ms\""),
    ("deadline", "deadline_ns", "deadline = \"1m\""),
    ("backoff", "backoff_ns", "backoff = \"100ms\""),
    ("max_backoff", "max_backoff_ns", "max_backoff = \"10s\""),
    ("cache_ttl", "cache_ttl_ns", "cache_ttl = \"1m\""),
];
/// Options that are a whole number: name (also of the field), maximum, meaning.
const NUMBERS: [(&str, u64, &str); 7] = [
    ("max_rows", u64::MAX, "a number of rows"),
    ("max_bytes", u64::MAX, "a number of bytes"),
    ("max_attempts", u16::MAX as u64, "a number of attempts"),
    ("seed", u64::MAX, "a number"),
    ("max_stuck", u32::MAX as u64, "a number of calls"),
    ("cache", u64::MAX, "a number of values"),
    ("cache_bytes", u64::MAX, "a number of bytes"),
];

/// Options that are chosen by their names, which are also those of their fields.
const FLAGS: [&str; 3] = ["idempotent", "deterministic", "cache_errors"];

pub fn parse(attribute: TokenStream, is_async: bool) -> Result<Attribute> {
    let place = attribute.span();
    let mut options = Attribute::default();
    syn::meta::parser(|meta| parse_one(&meta, &mut options)).parse2(attribute)?;
    match (is_async, options.blocking) {
        (true, true) => Err(Error::new(place, "`blocking` is for an `fn`; an `async fn` must not block: remove one of the two")),
        (false, false) if !options.fields.is_empty() => Err(Error::new(
            place,
            "a synchronous function has no options but `volatility`: write `#[udf]`, or `#[udf(blocking, ...)]` if it waits, or `async fn` below it",
        )),
        _ => check_cache(&options).map_or(Ok(options), |text| Err(Error::new(place, text))),
    }
}

/// What is wrong with the choice of a cache.
fn check_cache(options: &Attribute) -> Option<&'static str> {
    let is_set = |field: &str| options.fields.iter().any(|(known, _)| *known == field);
    let keeps = ["cache", "cache_bytes", "cache_ttl_ns", "cache_errors"].into_iter().any(is_set);
    match is_set("deterministic") {
        false if keeps => {
            Some("a cache is for functions that return the same for equal arguments: if this one does, write `deterministic`, too")
        }
        true if options.volatility > 1 => Some("`deterministic` and a volatility other than \"immutable\": remove one of the two"),
        true if keeps && !is_set("cache") => Some("no cache: write how many values it keeps, too, `cache = 100000`"),
        _ => None,
    }
}

fn parse_one(meta: &ParseNestedMeta<'_>, options: &mut Attribute) -> Result<()> {
    let Some(name) = meta.path.get_ident().map(ToString::to_string) else {
        return Err(meta.error(format!("unknown option: write {KNOWN}")));
    };
    if let Some((_, field, example)) = TIMES.iter().find(|(known, ..)| *known == name) {
        let text: LitStr = value(meta, example)?;
        let time = nanoseconds(&text.value()).map_err(|what| Error::new(text.span(), format!("{name} is {what}")))?;
        return set(options, field, time, meta);
    }
    if let Some((field, most, what)) = NUMBERS.iter().find(|(known, ..)| *known == name) {
        let number: LitInt = value(meta, &format!("{name} = 100"))?;
        return match number.base10_parse::<u64>() {
            Ok(value) if (1..=*most).contains(&value) => set(options, field, value, meta),
            _ => Err(Error::new(number.span(), format!("{name} is {what}, from 1 to {most}"))),
        };
    }
    if let Some(field) = FLAGS.iter().find(|known| **known == name) {
        return set(options, field, 1, meta);
    }
    match name.as_str() {
        "blocking" if options.blocking => Err(meta.error(ALREADY_SET)),
        "blocking" => {
            options.blocking = true;
            Ok(())
        }
        "volatility" if options.volatility != 0 => Err(meta.error(ALREADY_SET)),
        "volatility" => {
            options.volatility = volatility(meta)?;
            Ok(())
        }
        "ordered" => set(options, "order", 1, meta),
        "unordered" => set(options, "order", 2, meta),
        "retry_on" => {
            let text: LitStr = value(meta, "retry_on = \"timeout, error\"")?;
            let flags = text.value().split(',').try_fold(0, |flags, word| match word.trim() {
                "timeout" => Some(flags | 1),
                "error" => Some(flags | 2),
                _ => None,
            });
            let flags = flags.ok_or_else(|| Error::new(text.span(), "retry_on is \"timeout\", \"error\" or \"timeout, error\""))?;
            set(options, "retry_on", flags, meta)
        }
        "allowed_in_flight" => {
            let limit: Lit = value(meta, "allowed_in_flight = 100")?;
            let (adaptive, most) = match &limit {
                Lit::Int(number) => (false, number.base10_parse::<u64>().ok()),
                Lit::Str(text) => match text.value().strip_prefix("auto") {
                    Some("") => (true, Some(0)),
                    Some(most) => (true, most.strip_prefix(':').and_then(|most| most.parse().ok()).filter(|most| *most > 0)),
                    None => (false, None),
                },
                _ => (false, None),
            };
            let fits = most.filter(|&most| most <= u64::from(u32::MAX) && (adaptive || most > 0));
            let most = fits.ok_or_else(|| Error::new(limit.span(), LIMIT))?;
            if adaptive {
                set(options, "adaptive", 1, meta)?;
            }
            set(options, "allowed_in_flight", most, meta)
        }
        "rate" => {
            let text: LitStr = value(meta, "rate = \"500/s\"")?;
            let (starts, seconds) = rate(&text.value()).map_err(|what| Error::new(text.span(), format!("rate is {what}")))?;
            set(options, "rate", starts, meta)?;
            set(options, "rate_seconds", seconds, meta)
        }
        _ => Err(meta.error(format!("unknown option `{name}`: write {KNOWN}"))),
    }
}

/// Starts, and in how many seconds.
fn rate(text: &str) -> std::result::Result<(u64, u64), String> {
    let fits = |number: &u64| (1..=u64::from(u32::MAX)).contains(number);
    let split = text.split_once('/').map(|(starts, time)| (starts.trim().parse().ok(), time.trim()));
    let time =
        |time: &str| if time.starts_with(|c: char| c.is_ascii_digit()) { nanoseconds(time) } else { nanoseconds(&format!("1{time}")) };
    let known = split.and_then(|(starts, window)| Some((starts?, time(window).ok().filter(|window| window % SECOND == 0)? / SECOND)));
    known.filter(|(starts, seconds)| fits(starts) && fits(seconds)).ok_or_else(|| {
        format!("a number of calls for a time of whole seconds, such as \"500/s\", \"30/min\" or \"100/15min\", not \"{text}\"")
    })
}

/// A value of the header's enum.
pub fn volatility(meta: &ParseNestedMeta<'_>) -> Result<u32> {
    let text: LitStr = value(meta, "volatility = \"stable\"")?;
    let known = ["immutable", "stable", "volatile"].iter().position(|known| *known == text.value());
    let known = known.ok_or_else(|| Error::new(text.span(), "volatility is \"immutable\", \"stable\" or \"volatile\""))?;
    Ok(known as u32 + 1)
}

/// The literal after `=`; the error for anything else shows `example`.
fn value<T: syn::parse::Parse>(meta: &ParseNestedMeta<'_>, example: &str) -> Result<T> {
    let example = |error: Error| Error::new(error.span(), format!("write `{example}`"));
    meta.value().map_err(example)?.parse().map_err(example)
}

fn set(options: &mut Attribute, field: &'static str, value: u64, meta: &ParseNestedMeta<'_>) -> Result<()> {
    if options.fields.iter().any(|(known, _)| *known == field) {
        return Err(meta.error(ALREADY_SET));
    }
    options.fields.push((field, value));
    Ok(())
}

fn nanoseconds(text: &str) -> std::result::Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    // Includes the units of Arroyo's attribute.
    let factor = match unit.trim_start() {
        "ns" | "nanos" => Some(1),
        "us" | "µs" | "micros" => Some(1_000),
        "ms" | "millis" => Some(1_000_000),
        "s" | "secs" | "seconds" => Some(1_000_000_000),
        "m" | "min" | "mins" | "minutes" => Some(60_000_000_000),
        "h" | "hrs" | "hours" => Some(3_600_000_000_000_u64),
        _ => None,
    };
    let product = factor.and_then(|factor| number.parse::<u64>().ok()?.checked_mul(factor));
    product
        .filter(|timeout| *timeout > 0)
        .ok_or_else(|| format!("a whole number above 0 with a unit (ns, us, ms, s, m, h), such as \"500ms\", not \"{text}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    fn error(attribute: TokenStream) -> String {
        parse(attribute, true).unwrap_err().to_string()
    }

    #[test]
    fn an_empty_attribute_sets_no_option() {
        assert_eq!(parse(quote!(), true).unwrap(), Attribute::default());
        assert_eq!(parse(quote!(), false).unwrap(), Attribute::default());
    }

    #[test]
    fn all_options_are_read() {
        let options = parse(
            quote!(
                unordered,
                timeout = "10ms",
                allowed_in_flight = 7,
                deadline = "1m",
                rate = "30/min",
                max_rows = 2,
                max_bytes = 3,
                max_attempts = 4,
                retry_on = "timeout, error",
                backoff = "1us",
                max_backoff = "2us",
                seed = 5,
                idempotent,
                max_stuck = 6,
                deterministic,
                cache = 7,
                cache_bytes = 8,
                cache_ttl = "9s",
                cache_errors
            ),
            true,
        );
        let expected = vec![
            ("order", 2),
            ("timeout_ns", 10_000_000),
            ("allowed_in_flight", 7),
            ("deadline_ns", 60_000_000_000),
            ("rate", 30),
            ("rate_seconds", 60),
            ("max_rows", 2),
            ("max_bytes", 3),
            ("max_attempts", 4),
            ("retry_on", 3),
            ("backoff_ns", 1_000),
            ("max_backoff_ns", 2_000),
            ("seed", 5),
            ("idempotent", 1),
            ("max_stuck", 6),
            ("deterministic", 1),
            ("cache", 7),
            ("cache_bytes", 8),
            ("cache_ttl_ns", 9_000_000_000),
            ("cache_errors", 1),
        ];
        assert_eq!(options.unwrap(), Attribute { fields: expected, ..Attribute::default() });
    }

    #[test]
    fn each_unit_is_known() {
        let all = ["3us", "3ms", "3s", "3m", "3h"].map(|text| nanoseconds(text).unwrap());
        assert_eq!(all, [3_000, 3_000_000, 3_000_000_000, 180_000_000_000, 10_800_000_000_000]);
        let words = ["3nanos", "3 µs", "3micros", "3millis", "3  secs", "3 seconds", "3mins", "3minutes", "3hrs", "3hours"];
        let words = words.map(|text| nanoseconds(text).unwrap());
        assert_eq!(words[..6], [3, 3_000, 3_000, 3_000_000, 3_000_000_000, 3_000_000_000]);
        assert_eq!(words[6..], [180_000_000_000, 180_000_000_000, 10_800_000_000_000, 10_800_000_000_000]);
    }

    #[test]
    fn invalid_timeouts_are_refused() {
        for text in ["", "10", "ms", "0s", "-1s", "1.5s", "9999999999999h"] {
            assert!(nanoseconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_limit_may_adapt() {
        let fields = |attribute| parse(attribute, true).unwrap().fields;
        assert_eq!(fields(quote!(allowed_in_flight = "auto")), [("adaptive", 1), ("allowed_in_flight", 0)]);
        assert_eq!(fields(quote!(allowed_in_flight = "auto:500")), [("adaptive", 1), ("allowed_in_flight", 500)]);
    }

    #[test]
    fn rates_are_read() {
        let all = ["500/s", "30 / min", "1/h", "100/15min", "4294967295/10s"].map(|text| rate(text).unwrap());
        assert_eq!(all, [(500, 1), (30, 60), (1, 3_600), (100, 900), (4_294_967_295, 10)]);
        for text in ["", "500", "/s", "0/s", "500/", "500/ms", "1.5/s", "500/0s", "500/fortnight", "4294967296/s"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    /// F5
    #[test]
    fn mistakes_say_what_to_write() {
        assert!(error(quote!(retry_on = "always")).contains("retry_on is"));
        assert!(error(quote!(max_attempts = 65536)).contains("from 1 to 65535"));
        assert!(error(quote!(retries = 3)).starts_with("unknown option `retries`: write `blocking`, `ordered`"));
        assert!(error(quote!(rate = "500")).contains("such as \"500/s\""));
        assert!(error(quote!(timeout = 10)).contains("write `timeout = \"500ms\"`"));
        assert!(error(quote!(timeout)).contains("write `timeout = \"500ms\"`"));
        assert!(error(quote!(allowed_in_flight = 0)).contains("from 1"));
        for wrong in [quote!("2"), quote!("auto:0"), quote!("automatic"), quote!("auto:x"), quote!(1.5), quote!(4294967296)] {
            assert!(error(quote!(allowed_in_flight = #wrong)).contains("write `allowed_in_flight = 100`"), "{wrong}");
        }
        assert!(error(quote!(allowed_in_flight = "auto", allowed_in_flight = 2)).contains("write it once"));
        assert!(error(quote!(ordered, unordered)).contains("write it once"));
        assert!(error(quote!(cache = 100)).contains("write `deterministic`, too"));
        assert!(error(quote!(deterministic, cache_ttl = "1m")).contains("`cache = 100000`"));
        assert!(error(quote!(deterministic, volatility = "stable")).contains("remove one"));
        assert!(error(quote!(blocking)).contains("must not block"));
        assert!(parse(quote!(blocking, blocking), false).unwrap_err().to_string().contains("write it once"));
        assert!(parse(quote!(ordered), false).unwrap_err().to_string().contains("synchronous"));
    }
}
