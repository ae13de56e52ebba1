//! Types of time. `Date` and the timestamps wrap the column's number. `SystemTime` and `Duration` are microseconds there; a
//! value out of range is the error of its row.

use super::builders::Numbers;
use super::numbers::number;
use super::types::{ArgumentType, Date, ResultType, TimestampMicrosecond, TimestampMillisecond, TimestampNanosecond, TimestampSecond};
use crate::arrow::Column;
use std::ffi::CStr;
use std::time::{Duration, SystemTime};

number!(Date, i32, c"tdD", |x| Ok(Date(x)), |day: Date| Ok(day.0));
number!(TimestampSecond, i64, c"tss:", |x| Ok(TimestampSecond(x)), |time: TimestampSecond| Ok(time.0));
number!(TimestampMillisecond, i64, c"tsm:", |x| Ok(TimestampMillisecond(x)), |time: TimestampMillisecond| Ok(time.0));
number!(TimestampMicrosecond, i64, c"tsu:", |x| Ok(TimestampMicrosecond(x)), |time: TimestampMicrosecond| Ok(time.0));
number!(TimestampNanosecond, i64, c"tsn:", |x| Ok(TimestampNanosecond(x)), |time: TimestampNanosecond| Ok(time.0));
number!(SystemTime, i64, c"tsu:", |time| Ok(system_time(time)), microseconds);
number!(Duration, i64, c"tDu", duration, length);

fn system_time(microseconds: i64) -> SystemTime {
    let distance = Duration::from_micros(microseconds.unsigned_abs());
    if microseconds < 0 {
        SystemTime::UNIX_EPOCH - distance
    } else {
        SystemTime::UNIX_EPOCH + distance
    }
}

/// The microsecond of an instant, rounded down.
fn microseconds(time: SystemTime) -> Result<i64, String> {
    let microseconds = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_micros()),
        Err(before) => i64::try_from(-(before.duration().as_nanos().div_ceil(1_000) as i128)),
    };
    microseconds.map_err(|_| format!("{time:?} does not fit in a timestamp of microseconds"))
}

fn duration(microseconds: i64) -> Result<Duration, String> {
    let microseconds = u64::try_from(microseconds).map_err(|_| format!("a Duration cannot be negative: {microseconds} us"))?;
    Ok(Duration::from_micros(microseconds))
}

fn length(duration: Duration) -> Result<i64, String> {
    i64::try_from(duration.as_micros()).map_err(|_| format!("{duration:?} does not fit in a duration of microseconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_microseconds_on_both_sides_of_1970() {
        for instant in [0, 1, -1, 1_500_000, -1_500_001, i64::MAX, i64::MIN] {
            assert_eq!(microseconds(system_time(instant)), Ok(instant));
        }
        let within = SystemTime::UNIX_EPOCH - Duration::from_nanos(1_001);
        assert_eq!((microseconds(within), microseconds(within + Duration::from_nanos(2_000))), (Ok(-2), Ok(0)));
    }

    #[test]
    fn an_instant_that_does_not_fit_is_an_error() {
        for instant in [i64::MAX, i64::MIN] {
            let far = system_time(instant);
            let farther = if instant > 0 { far + Duration::from_micros(1) } else { far - Duration::from_micros(1) };
            assert!(microseconds(farther).unwrap_err().contains("does not fit"));
        }
    }

    #[test]
    fn a_duration_has_no_sign_and_is_short_enough() {
        for microseconds in [0, 1, i64::MAX] {
            assert_eq!(duration(microseconds).and_then(length), Ok(microseconds));
        }
        assert!(duration(-1).unwrap_err().contains("negative: -1 us"));
        assert!(length(Duration::from_secs(u64::MAX)).unwrap_err().contains("does not fit"));
    }
}
