//! Days since 1970-01-01 <-> dates of the proleptic Gregorian calendar.

/// Year, month and day of a number of days since 1970-01-01. Counts in eras of 400 years that begin on the first of March:
/// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
pub fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day = shifted.rem_euclid(146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, of_month)
}

/// The days of a date: the inverse of `civil`.
pub fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::{civil, days_of};

    #[test]
    fn days_and_dates_convert_back() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(-719_162), (1, 1, 1));
        assert_eq!(civil(2_932_896), (9999, 12, 31));
        for days in (-719_162..=2_932_896).step_by(97) {
            let (year, month, day) = civil(days);
            assert_eq!(days_of(year, month, day), days);
        }
    }
}
