/* native_dates.h: what dates, times and differences mean, for functions that are compiled to C.
 *
 * GUARANTEES  As native_numbers.h. A date is its days since 1970, a datetime (without a time zone) and a timedelta are
 *             microseconds. Dates stay within the years 1 to 9999, as Python's; whatever leaves them is deferred.
 * ASSUMES     The proleptic Gregorian calendar, which Python has. */
#ifndef NATIVE_DATES_H
#define NATIVE_DATES_H

#include "native_formats.h"

#define NATIVE_SECOND INT64_C(1000000)
#define NATIVE_DAY (86400 * NATIVE_SECOND)
#define NATIVE_FIRST_DAY INT64_C(-719162) /* 0001-01-01 */
#define NATIVE_LAST_DAY INT64_C(2932896)  /* 9999-12-31 */

NATIVE bool native_no_date(int64_t days) { return days < NATIVE_FIRST_DAY || days > NATIVE_LAST_DAY; }
NATIVE bool native_no_datetime(int64_t time) {
  return time < NATIVE_FIRST_DAY * NATIVE_DAY || time >= (NATIVE_LAST_DAY + 1) * NATIVE_DAY;
}

/* Rounded down; the divisor is positive. */
NATIVE int64_t native_floor_of(int64_t a, int64_t b) { return a / b - (a % b < 0); }
NATIVE int64_t native_rest_of(int64_t a, int64_t b) { return a - native_floor_of(a, b) * b; }

/* ---- Parts of a date -------------------------------------------------------------------------------------------- */

typedef struct native_civil {
  uint32_t year, month, day;
} native_civil;

/* In years that begin in March, the day that a leap year adds is the last one. Of Python's dates nothing here is
 * negative or needs more than 32 bits, and so divisions are cheap. */
NATIVE native_civil native_civil_of(int64_t days) {
  const uint32_t since = (uint32_t)(days + 719468); /* 0000-03-01 */
  const uint32_t era = since / 146097, of_era = since % 146097; /* 400 years */
  const uint32_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const uint32_t of_year = of_era - (365 * year + year / 4 - year / 100);
  const uint32_t march = (5 * of_year + 2) / 153; /* 153 days in five months */
  const uint32_t month = march < 10 ? march + 3 : march - 9;
  return (native_civil){year + era * 400 + (month <= 2), month, of_year - (153 * march + 2) / 5 + 1};
}

NATIVE int64_t native_days_of(uint32_t year, uint32_t month, uint32_t day) {
  const uint32_t from_march = year - (month <= 2), era = from_march / 400, of_era = from_march % 400;
  const uint32_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  return (int64_t)(era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year) - 719468;
}

NATIVE int64_t native_year(int64_t days) { return native_civil_of(days).year; }
NATIVE int64_t native_month(int64_t days) { return native_civil_of(days).month; }
NATIVE int64_t native_day(int64_t days) { return native_civil_of(days).day; }
/* Monday is 0. */
NATIVE int64_t native_weekday(int64_t days) { return native_rest_of(days + 3, 7); }

/* ---- Making dates ----------------------------------------------------------------------------------------------- */

NATIVE bool native_date(int64_t year, int64_t month, int64_t day, int64_t* out) {
  static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (year < 1 || year > 9999 || month < 1 || month > 12 || day < 1) return true;
  const uint32_t y = (uint32_t)year;
  const bool is_leap = y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
  if (day > days[month - 1] + (month == 2 && is_leap)) return true;
  *out = native_days_of(y, (uint32_t)month, (uint32_t)day);
  return false;
}

NATIVE bool native_datetime(int64_t year, int64_t month, int64_t day, int64_t hour, int64_t minute, int64_t second,
                            int64_t microsecond, int64_t* out) {
  int64_t days;
  if (native_date(year, month, day, &days) || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
      second > 59 || microsecond < 0 || microsecond > 999999)
    return true;
  *out = days * NATIVE_DAY + ((hour * 60 + minute) * 60 + second) * NATIVE_SECOND + microsecond;
  return false;
}

NATIVE bool native_fromordinal(int64_t ordinal, int64_t* out) {
  if (ordinal < 1 || ordinal > NATIVE_LAST_DAY - NATIVE_FIRST_DAY + 1) return true;
  *out = ordinal - 1 + NATIVE_FIRST_DAY;
  return false;
}

/* ---- Differences ------------------------------------------------------------------------------------------------ */

/* Of a difference, only the whole days count. */
NATIVE bool native_date_plus(int64_t days, int64_t difference, int64_t* out) {
  *out = days + native_floor_of(difference, NATIVE_DAY);
  return native_no_date(*out);
}
NATIVE bool native_date_minus(int64_t days, int64_t difference, int64_t* out) {
  *out = days - native_floor_of(difference, NATIVE_DAY);
  return native_no_date(*out);
}
NATIVE bool native_datetime_plus(int64_t time, int64_t difference, int64_t* out) {
  return native_add(time, difference, out) || native_no_datetime(*out);
}
NATIVE bool native_datetime_minus(int64_t time, int64_t difference, int64_t* out) {
  return native_subtract(time, difference, out) || native_no_datetime(*out);
}

/* ---- Texts ------------------------------------------------------------------------------------------------------ */

/* So many digits of a number, before `end`. */
NATIVE void native_put_back(char* end, uint32_t value, int digits) {
  for (; digits > 0; digits--, value /= 10) *--end = (char)('0' + value % 10);
}

NATIVE bool native_text_of_date(native_arena* arena, int64_t days, native_text* out) {
  const native_civil civil = native_civil_of(days);
  char* const start = native_allocate(arena, 10);
  if (start == NULL) return true;
  memcpy(start, "0000-00-00", 10);
  native_put_back(start + 4, civil.year, 4);
  native_put_back(start + 7, civil.month, 2);
  native_put_back(start + 10, civil.day, 2);
  *out = (native_text){start, 10, true};
  return false;
}

NATIVE bool native_text_of_time(native_arena* arena, int64_t time, char between, native_text* out) {
  const int64_t of_day = native_rest_of(time, NATIVE_DAY);
  const uint32_t seconds = (uint32_t)(of_day / NATIVE_SECOND), rest = (uint32_t)(of_day % NATIVE_SECOND);
  native_text date;
  if (native_text_of_date(arena, native_floor_of(time, NATIVE_DAY), &date)) return true;
  char* const start = native_allocate(arena, 16); /* behind the date */
  if (start == NULL) return true;
  memcpy(start, " 00:00:00.000000", 16);
  *start = between;
  native_put_back(start + 3, seconds / 3600, 2);
  native_put_back(start + 6, seconds / 60 % 60, 2);
  native_put_back(start + 9, seconds % 60, 2);
  native_put_back(start + 16, rest, 6);
  *out = (native_text){date.data, date.length + (rest == 0 ? 9 : 16), true};
  return false;
}
NATIVE bool native_text_of_datetime(native_arena* arena, int64_t time, native_text* out) {
  return native_text_of_time(arena, time, ' ', out);
}

#endif /* NATIVE_DATES_H */
