/* The functions of tests/native_functions/corpus.py that are native, in C, as one writes them who knows the data: texts
 * are ASCII, and numbers in them are digits. Of texts that are otherwise, Python's meaning is not kept. */
#include "arroyo_udf_plugin.h"

#include <math.h>

typedef arroyo_udf_utf8 text;

static text cut(text whole, size_t start, size_t end) { return (text){whole.data + start, end - start}; }

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static text strip(text whole) {
  while (whole.length > 0 && is_space(whole.data[0])) whole.data++, whole.length--;
  while (whole.length > 0 && is_space(whole.data[whole.length - 1])) whole.length--;
  return whole;
}

static bool are_digits(text whole) {
  for (size_t i = 0; i < whole.length; i++)
    if (whole.data[i] < '0' || whole.data[i] > '9') return false;
  return whole.length > 0;
}

static int64_t number(text digits) {
  int64_t value = 0;
  for (size_t i = 0; i < digits.length; i++) value = value * 10 + (digits.data[i] - '0');
  return value;
}

static bool ends_with(text whole, const char* end, size_t length) {
  return whole.length >= length && memcmp(whole.data + whole.length - length, end, length) == 0;
}

/* Appends a text in small letters, in pieces. */
static void append_lower(arroyo_udf_text* out, text whole) {
  char piece[64];
  for (size_t done = 0; done < whole.length; done += sizeof piece) {
    const size_t length = whole.length - done < sizeof piece ? whole.length - done : sizeof piece;
    for (size_t i = 0; i < length; i++) {
      const char c = whole.data[done + i];
      piece[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    arroyo_udf_append(out, piece, length);
  }
}

/* ---- Dates ------------------------------------------------------------------------------------------------------ */

static const char* cleandate(arroyo_udf_utf8 given, arroyo_udf_text* out) {
  static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const text day = strip(given);
  if (day.length != 10 || (day.data[4] != '-' && day.data[4] != '/') || !are_digits(cut(day, 0, 4)) ||
      !are_digits(cut(day, 5, 7)) || !are_digits(cut(day, 8, 10)))
    return arroyo_udf_null;
  const int64_t y = number(cut(day, 0, 4)), m = number(cut(day, 5, 7)), d = number(cut(day, 8, 10));
  if (y < 1 || m < 1 || m > 12 || d < 1 || d > 31) return arroyo_udf_null;
  const bool is_leap = y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
  if (d > days[m - 1] + (m == 2 && is_leap)) return "ValueError: day is out of range for month";
  arroyo_udf_append(out, day.data, 4);
  arroyo_udf_append(out, "-", 1);
  arroyo_udf_append(out, day.data + 5, 2);
  arroyo_udf_append(out, "-", 1);
  arroyo_udf_append(out, day.data + 8, 2);
  return NULL;
}
ARROYO_UDF_FUNCTION(cleandate, nullable_utf8, (utf8, text));

static const char* extractday(arroyo_udf_utf8 given, int64_t* out) {
  if (given.length < 10) return "ValueError: no day";
  *out = number(cut(given, 8, 10));
  return NULL;
}
ARROYO_UDF_FUNCTION(extractday, int64, (utf8, text));

static const char* extractmonth(arroyo_udf_utf8 given, int64_t* out) {
  const char* const first = (const char*)memchr(given.data, '-', given.length);
  if (first == NULL) return "IndexError: no month";
  const size_t start = (size_t)(first - given.data) + 1;
  const char* const second = (const char*)memchr(given.data + start, '-', given.length - start);
  *out = number(cut(given, start, second == NULL ? given.length : (size_t)(second - given.data)));
  return NULL;
}
ARROYO_UDF_FUNCTION(extractmonth, int64, (utf8, text));

static const char* extractyear(arroyo_udf_utf8 given, int64_t* out) {
  const text year = cut(given, 0, given.length < 4 ? given.length : 4);
  *out = are_digits(year) ? number(year) : 0;
  return NULL;
}
ARROYO_UDF_FUNCTION(extractyear, int64, (utf8, text));

/* ---- Fundings: funder::class::project --------------------------------------------------------------------------- */

/* The place of "::" from `start` on; the text's length: there is none. */
static size_t colons(text whole, size_t start) {
  for (size_t i = start; i + 1 < whole.length; i++)
    if (whole.data[i] == ':' && whole.data[i + 1] == ':') return i;
  return whole.length;
}

static const char* part(text funding, int number_of_it, arroyo_udf_text* out) {
  size_t start = 0;
  for (int i = 0; i < number_of_it; i++) {
    start = colons(funding, start) + 2;
    if (start > funding.length) return "IndexError: list index out of range";
  }
  arroyo_udf_append(out, funding.data + start, colons(funding, start) - start);
  return NULL;
}

static const char* extractfunder(arroyo_udf_utf8 funding, arroyo_udf_text* out) { return part(funding, 0, out); }
static const char* extractclass(arroyo_udf_utf8 funding, arroyo_udf_text* out) { return part(funding, 1, out); }
static const char* extractid(arroyo_udf_utf8 funding, arroyo_udf_text* out) { return part(funding, 2, out); }
ARROYO_UDF_FUNCTION(extractfunder, utf8, (utf8, funding));
ARROYO_UDF_FUNCTION(extractclass, utf8, (utf8, funding));
ARROYO_UDF_FUNCTION(extractid, utf8, (utf8, funding));

static const char* extractcode(arroyo_udf_utf8 funding, arroyo_udf_text* out) {
  size_t start = funding.length;
  while (start > 1 && !(funding.data[start - 1] == ':' && funding.data[start - 2] == ':')) start--;
  if (start < 2) start = 0;
  const text last = cut(funding, start, funding.length);
  const char* const bracket = (const char*)memchr(last.data, '(', last.length);
  const text code = strip(bracket == NULL ? last : cut(last, 0, (size_t)(bracket - last.data)));
  arroyo_udf_append(out, code.data, code.length);
  return NULL;
}
ARROYO_UDF_FUNCTION(extractcode, utf8, (utf8, funding));

/* ---- Numbers and words ------------------------------------------------------------------------------------------ */

static const char* converttoeuro(double amount, arroyo_udf_utf8 currency, double* out) {
  static const struct {
    char code[4];
    double rate;
  } rates[] = {{"EUR", 1.0}, {"USD", 0.92}, {"GBP", 1.17}, {"CHF", 1.05}, {"JPY", 0.0061}};
  if (currency.length != 3) return arroyo_udf_null;
  char code[3];
  for (int i = 0; i < 3; i++) {
    const char c = currency.data[i];
    code[i] = c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
  }
  for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
    if (memcmp(rates[i].code, code, 3) != 0) continue;
    *out = rint(amount * rates[i].rate * 100.0) / 100.0;
    return NULL;
  }
  return arroyo_udf_null;
}
ARROYO_UDF_FUNCTION(converttoeuro, nullable_float64, (float64, amount), (utf8, currency));

static const char* log_10(double value, double* out) {
  *out = value > 0 ? log10(value) : 0.0;
  return NULL;
}
ARROYO_UDF_FUNCTION(log_10, float64, (float64, value));

static const char* lowerize(arroyo_udf_utf8 given, arroyo_udf_text* out) {
  append_lower(out, given);
  return NULL;
}
ARROYO_UDF_FUNCTION(lowerize, utf8, (utf8, text));

static const char* stem(arroyo_udf_utf8 given, arroyo_udf_text* out) {
  char small[64];
  text word = given;
  if (given.length > sizeof small) {
    append_lower(out, given); /* longer than any word */
    return NULL;
  }
  for (size_t i = 0; i < given.length; i++) {
    const char c = given.data[i];
    small[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
  }
  word.data = small;
  bool ends_in_y = false;
  if (word.length > 5 && ends_with(word, "ing", 3)) {
    word.length -= 3;
  } else if (word.length > 4 && ends_with(word, "ies", 3)) {
    word.length -= 3;
    ends_in_y = true;
  } else if (word.length > 4 && (ends_with(word, "ed", 2) || ends_with(word, "es", 2))) {
    word.length -= 2;
  } else if (word.length > 3 && ends_with(word, "s", 1) && !ends_with(word, "ss", 2)) {
    word.length -= 1;
  }
  arroyo_udf_append(out, word.data, word.length);
  if (ends_in_y) arroyo_udf_append(out, "y", 1);
  return NULL;
}
ARROYO_UDF_FUNCTION(stem, utf8, (utf8, word));

ARROYO_UDF_PLUGIN(cleandate, converttoeuro, extractclass, extractcode, extractday, extractfunder, extractid,
                  extractmonth, extractyear, log_10, lowerize, stem);
