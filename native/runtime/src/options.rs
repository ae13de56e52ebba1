//! Options -> the machine's settings: those of a start win over those of the author, and those over the defaults (R4-R8).

use crate::failure::Failure;
use crate::machine::{Gather, Rate, Retry, Settings, Share};
use crate::timer::now;
use arroyo_udf_abi as abi;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

const SECOND: u64 = 1_000_000_000;

/// The choices for one start. `lineage` and a row's id are the idempotency key of the row's calls (R10).
#[derive(Debug, Clone, Copy)]
pub struct Chosen {
    pub settings: Settings,
    pub lineage: [u8; 16],
}

/// Fails for an invalid value; `name` goes into the error text.
pub fn choose(start: &abi::Options, author: &abi::Options, name: &str) -> Result<Chosen, Failure> {
    let pick =
        |field: fn(&abi::Options) -> u64, default: u64| [field(start), field(author), default].into_iter().find(|&x| x != 0).unwrap_or(0);
    let one_of = |what: &str, value: u64, most: u64, names: &str| match value {
        1.. if value <= most => Ok(value as u32),
        _ => Err(Failure::argument(format!("{name}: {what} is {value}; it is {names}"))),
    };
    let unlimited = |nanoseconds: u64| Some(nanoseconds).filter(|&t| t != u64::MAX);

    let order = pick(|o| o.order.into(), abi::ORDERED.into());
    let ordered = one_of("order", order, 2, "ARROYO_UDF_ORDERED or ARROYO_UDF_UNORDERED")? == abi::ORDERED;
    let retry_on = pick(|o| o.retry_on.into(), abi::RETRY_TIMEOUTS.into());
    let retry_on = one_of("retry_on", retry_on, 3, "ARROYO_UDF_RETRY_TIMEOUTS, ARROYO_UDF_RETRY_ERRORS or both")?;
    let idempotent = one_of("idempotent", pick(|o| o.idempotent.into(), abi::NO.into()), 2, "ARROYO_UDF_YES or ARROYO_UDF_NO")?;
    let max_attempts = pick(|o| o.max_attempts.into(), if ordered { 1 } else { 3 });
    let max_attempts = u16::try_from(max_attempts)
        .map_err(|_| Failure::argument(format!("{name}: max_attempts is {max_attempts}; it is at most {}", u16::MAX)))?;
    // Chosen together: a number at the start is no bound for a limit of the author's that adapts.
    let limit = [start, author].into_iter().find(|o| o.allowed_in_flight != 0 || o.adaptive != 0).unwrap_or(start);
    let adaptive = limit.adaptive != 0 && one_of("adaptive", limit.adaptive.into(), 2, "ARROYO_UDF_YES or ARROYO_UDF_NO")? == abi::YES;
    let allowed_in_flight = match limit.allowed_in_flight {
        0 if adaptive => 1_000,
        0 => 100,
        chosen => chosen,
    };
    let batch_size = match (start.batch_size, author.batch_size) {
        (0, size) => size,
        (_, 0) => return Err(Failure::argument(format!("{name}: takes rows one by one, so it has no batch_size; leave it out"))),
        (size, _) => size,
    };
    let gather = (batch_size > 0).then(|| Gather {
        rows: batch_size,
        bytes: pick(|o| o.batch_bytes, 1 << 20),
        wait: pick(|o| o.max_wait_ns, SECOND / 500),
    });
    let share = share(start, author, name)?;
    let rate = [start, author]
        .into_iter()
        .find(|options| options.rate != 0)
        .map(|options| Rate { starts: options.rate, window: u64::from(options.rate_seconds.max(1)) * SECOND });
    let lineage = [start.lineage, author.lineage].into_iter().find(|l| *l != [0; 16]).unwrap_or_else(random);

    Ok(Chosen {
        settings: Settings {
            ordered,
            allowed_in_flight,
            adaptive,
            timeout: unlimited(pick(|o| o.timeout_ns, 10 * SECOND)),
            deadline: unlimited(pick(|o| o.deadline_ns, u64::MAX)),
            max_rows: pick(|o| o.max_rows, (4 * u64::from(allowed_in_flight)).saturating_mul(batch_size.max(1)).max(16_384)),
            max_bytes: pick(|o| o.max_bytes, 64 << 20),
            retry: Retry {
                max_attempts,
                timeouts: retry_on & abi::RETRY_TIMEOUTS != 0,
                errors: retry_on & abi::RETRY_ERRORS != 0,
                backoff: pick(|o| o.backoff_ns, SECOND / 10),
                max_backoff: pick(|o| o.max_backoff_ns, 10 * SECOND),
                seed: pick(|o| o.seed, u64::from_le_bytes(lineage[..8].try_into().unwrap_or_default())),
                idempotent: idempotent == abi::YES,
            },
            max_stuck: pick(|o| o.max_stuck.into(), allowed_in_flight.into()) as u32,
            gather,
            share,
            rate,
        },
        lineage,
    })
}

/// How rows with equal arguments share calls (R21). A start that says `deterministic` is ARROYO_UDF_NO has no cache either.
fn share(start: &abi::Options, author: &abi::Options, name: &str) -> Result<Option<Share>, Failure> {
    let refused = |text: &str| Err(Failure::argument(format!("{name}: {text}")));
    let said = [start.deterministic, author.deterministic].into_iter().find(|&said| said != 0).unwrap_or(abi::NO);
    if ![abi::YES, abi::NO].contains(&said) || ![0, abi::YES, abi::NO].contains(&start.cache_errors.max(author.cache_errors)) {
        return refused("deterministic and cache_errors are ARROYO_UDF_YES or ARROYO_UDF_NO");
    }
    let caches = |options: &abi::Options| {
        options.cache != 0 || options.cache_bytes != 0 || options.cache_ttl_ns != 0 || options.cache_errors == abi::YES
    };
    if said == abi::NO {
        let is_refused = caches(start) || caches(author) && start.deterministic == 0;
        return if is_refused {
            refused("has a cache, but may return other values for the same arguments; choose deterministic, too")
        } else {
            Ok(None)
        };
    }
    let pick = |field: fn(&abi::Options) -> u64| [field(start), field(author)].into_iter().find(|&x| x != 0);
    let cache = pick(|o| o.cache);
    if cache.is_none() && (caches(start) || caches(author)) {
        return refused("has cache_bytes, cache_ttl or cache_errors, but no cache; choose how many outcomes it keeps: cache");
    }
    Ok(Some(Share {
        entries: cache.unwrap_or(u64::MAX),
        bytes: pick(|o| o.cache_bytes).unwrap_or(64 << 20),
        ttl: pick(|o| o.cache_ttl_ns).filter(|&ttl| ttl != u64::MAX),
        errors: pick(|o| o.cache_errors.into()) == Some(abi::YES.into()),
        across_batches: cache.is_some(),
    }))
}

/// Sixteen bytes that no other start has. The standard library seeds its hash maps from the system's randomness.
fn random() -> [u8; 16] {
    let half = || {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(now());
        hasher.finish().to_le_bytes()
    };
    let mut lineage = [0; 16];
    lineage[..8].copy_from_slice(&half());
    lineage[8..].copy_from_slice(&half());
    lineage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_wins_over_the_author_and_the_author_over_the_default() {
        let author = abi::Options { allowed_in_flight: 7, timeout_ns: 5, ..abi::Options::unset() };
        let start = abi::Options { timeout_ns: 9, lineage: [3; 16], ..abi::Options::unset() };
        let chosen = choose(&start, &author, "f").unwrap();
        assert_eq!((chosen.settings.allowed_in_flight, chosen.settings.timeout, chosen.lineage), (7, Some(9), [3; 16]));
        assert_eq!((chosen.settings.max_rows, chosen.settings.max_stuck, chosen.settings.deadline), (16_384, 7, None));
    }

    #[test]
    fn r7_unordered_retries_timeouts_and_ordered_does_not() {
        let unordered = abi::Options { order: abi::UNORDERED, ..abi::Options::unset() };
        let attempts = |o: &abi::Options| choose(o, &abi::Options::unset(), "f").unwrap().settings.retry.max_attempts;
        assert_eq!((attempts(&unordered), attempts(&abi::Options::unset())), (3, 1));
    }

    #[test]
    fn invalid_values_are_refused_by_name() {
        let refused = |o: abi::Options| choose(&o, &abi::Options::unset(), "p.f").unwrap_err().text;
        assert!(refused(abi::Options { order: 3, ..abi::Options::unset() }).starts_with("p.f: order is 3"));
        assert!(refused(abi::Options { retry_on: 4, ..abi::Options::unset() }).contains("retry_on is 4"));
        assert!(refused(abi::Options { idempotent: 9, ..abi::Options::unset() }).contains("idempotent is 9"));
        assert!(refused(abi::Options { max_attempts: 70_000, ..abi::Options::unset() }).contains("at most 65535"));
    }

    #[test]
    fn rows_are_gathered_only_if_the_author_takes_micro_batches() {
        let size = |batch_size| abi::Options { batch_size, max_wait_ns: 9, ..abi::Options::unset() };
        let settings = |start, author| choose(&start, &author, "p.f").map(|chosen| chosen.settings);
        let chosen = settings(size(7), size(1_000)).unwrap();
        assert_eq!(chosen.gather, Some(Gather { rows: 7, bytes: 1 << 20, wait: 9 }));
        assert_eq!(settings(size(0), size(1_000)).unwrap().max_rows, 400_000);
        let text = settings(size(7), size(0)).unwrap_err().text;
        assert!(text.contains("p.f: takes rows one by one"), "{text}");
    }

    /// R21
    #[test]
    fn a_cache_needs_a_deterministic_function() {
        let unset = abi::Options::unset;
        let cached = |deterministic| abi::Options { deterministic, cache: 7, cache_ttl_ns: 9, ..unset() };
        let share = |start: abi::Options, author: abi::Options| choose(&start, &author, "p.f").map(|chosen| chosen.settings.share);
        let expected = Share { entries: 7, bytes: 64 << 20, ttl: Some(9), errors: false, across_batches: true };
        assert_eq!(share(unset(), cached(abi::YES)).unwrap(), Some(expected));
        assert_eq!(share(cached(0), abi::Options { deterministic: abi::YES, ..unset() }).unwrap(), Some(expected));
        assert_eq!(share(abi::Options { deterministic: abi::NO, ..unset() }, cached(abi::YES)).unwrap(), None);
        assert_eq!(share(unset(), unset()).unwrap(), None);
        for (start, author) in [(cached(0), unset()), (unset(), cached(0)), (unset(), cached(abi::NO)), (cached(abi::NO), cached(abi::YES))]
        {
            let text = share(start, author).unwrap_err().text;
            assert!(text.starts_with("p.f: has a cache, but may return other values"), "{text}");
        }
        let text =
            share(abi::Options { cache_ttl_ns: 9, ..unset() }, abi::Options { deterministic: abi::YES, ..unset() }).unwrap_err().text;
        assert!(text.contains("but no cache; choose how many"), "{text}");
        assert!(share(cached(3), unset()).unwrap_err().text.contains("ARROYO_UDF_YES or ARROYO_UDF_NO"));
        let of_batches = share(unset(), abi::Options { deterministic: abi::YES, ..unset() }).unwrap();
        assert_eq!(of_batches.map(|share| share.across_batches), Some(false));
    }

    #[test]
    fn r23_a_number_and_a_limit_that_adapts_replace_each_other() {
        let limit =
            |start, author| choose(&start, &author, "f").map(|chosen| (chosen.settings.adaptive, chosen.settings.allowed_in_flight));
        let of = |adaptive, allowed_in_flight| abi::Options { adaptive, allowed_in_flight, ..abi::Options::unset() };
        assert_eq!(limit(of(0, 0), of(abi::YES, 0)).unwrap(), (true, 1_000));
        assert_eq!(limit(of(0, 7), of(abi::YES, 50)).unwrap(), (false, 7));
        assert_eq!(limit(of(abi::YES, 0), of(0, 7)).unwrap(), (true, 1_000));
        assert_eq!(limit(of(abi::YES, 50), of(0, 7)).unwrap(), (true, 50));
        assert!(limit(of(3, 0), of(0, 0)).unwrap_err().text.contains("adaptive is 3"));
    }

    #[test]
    fn r22_a_rate_is_chosen_as_a_whole() {
        let author = abi::Options { rate: 500, rate_seconds: 60, ..abi::Options::unset() };
        let rate = |start| choose(&start, &author, "f").unwrap().settings.rate;
        assert_eq!(rate(abi::Options::unset()), Some(Rate { starts: 500, window: 60 * SECOND }));
        assert_eq!(rate(abi::Options { rate: 7, ..abi::Options::unset() }), Some(Rate { starts: 7, window: SECOND }));
    }

    #[test]
    fn two_starts_have_two_lineages() {
        assert_ne!(random(), random());
    }
}
