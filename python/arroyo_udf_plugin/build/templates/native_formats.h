/* native_formats.h: numbers as texts, and the formats of f-strings, for functions that are compiled to C.
 *
 * GUARANTEES  As native_texts.h. The C library prints a double's decimal value exactly, as Python does; what it prints by
 *             the decimal point of another locale is deferred.
 * ASSUMES     Formats that formats.py takes. */
#ifndef NATIVE_FORMATS_H
#define NATIVE_FORMATS_H

#include "native_texts.h"

#include <stdio.h>

/* A format of Python's mini-language. */
typedef struct native_format {
  char fill, align; /* '<', '>', '^', or '=': between the sign and the digits */
  char sign;        /* '-', '+' or ' ' */
  char group;       /* between thousands; 0: nothing */
  char type;        /* of numbers: 'd', 'x', 'X'; 'e', 'E', 'f', 'F', 'g', 'G', '%'; 'r': as `str` */
  int width, precision; /* precision: -1: none */
} native_format;

/* More than the longest double with the largest precision of formats.py, and its group marks. */
#define NATIVE_MOST_DIGITS 600

/* A text of a number without its sign. */
typedef struct native_digits {
  char text[NATIVE_MOST_DIGITS];
  int length;
  bool is_negative;
} native_digits;

NATIVE bool native_pad(native_arena* arena, native_format format, const char* sign, int n_sign, const char* body,
                       int64_t length, native_text* out) {
  const int64_t pad = format.width > length + n_sign ? format.width - length - n_sign : 0;
  const int64_t left = format.align == '<' ? 0 : format.align == '^' ? pad / 2 : pad;
  char* end = native_allocate(arena, n_sign + length + pad);
  if (end == NULL) return true;
  *out = (native_text){end, n_sign + length + pad, true};
  if (format.align == '=') end = (char*)mempcpy(end, sign, (size_t)n_sign);
  memset(end, format.fill, (size_t)left);
  end += left;
  if (format.align != '=') end = (char*)mempcpy(end, sign, (size_t)n_sign);
  end = (char*)mempcpy(end, body, (size_t)length);
  memset(end, format.fill, (size_t)(pad - left));
  return false;
}

NATIVE bool native_put_number(native_arena* arena, native_format format, native_digits* digits, native_text* out) {
  const char sign = digits->is_negative ? '-' : format.sign;
  if (format.group != 0) {
    char grouped[NATIVE_MOST_DIGITS + NATIVE_MOST_DIGITS / 3];
    int n = 0, whole = 0;
    while (whole < digits->length && digits->text[whole] >= '0' && digits->text[whole] <= '9') whole++;
    for (int i = 0; i < digits->length; i++) {
      if (i != 0 && i < whole && (whole - i) % 3 == 0) grouped[n++] = format.group;
      grouped[n++] = digits->text[i];
    }
    return native_pad(arena, format, &sign, sign != '-' || digits->is_negative, grouped, n, out);
  }
  return native_pad(arena, format, &sign, sign != '-' || digits->is_negative, digits->text, digits->length, out);
}

NATIVE bool native_format_int(native_arena* arena, int64_t value, native_format format, native_text* out) {
  native_digits digits;
  digits.is_negative = value < 0;
  digits.length = 0;
  uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  const uint64_t base = format.type == 'd' ? 10 : 16;
  const char* const letters = format.type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
  char reversed[20];
  int n = 0;
  do reversed[n++] = letters[left % base];
  while ((left /= base) != 0);
  while (n > 0) digits.text[digits.length++] = reversed[--n];
  return native_put_number(arena, format, &digits, out);
}

/* A finite double without its sign: bits * 2 ** -shift. */
typedef struct native_binary {
  uint64_t bits; /* 53 of them at most */
  int shift;     /* below 0 for large integers */
} native_binary;

NATIVE native_binary native_binary_of(double size) {
  int exponent;
  const double fraction = frexp(size, &exponent);
  return (native_binary){(uint64_t)ldexp(fraction, 53), 53 - exponent};
}

static const uint64_t native_tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000,
    10000000000, 100000000000, 1000000000000, 10000000000000, 100000000000000, 1000000000000000};

NATIVE void native_put_digits(native_digits* digits, uint64_t value, int least) {
  char reversed[24];
  int n = 0;
  do reversed[n++] = (char)('0' + value % 10);
  while ((value /= 10) != 0 || n < least);
  while (n > 0) digits->text[digits->length++] = reversed[--n];
}

/* Prints a double with so many decimal places, without its sign. True: it is too large for this. */
NATIVE bool native_print_places(native_digits* digits, double size, int places) {
  const native_binary binary = native_binary_of(size);
  if (places > 15 || binary.shift < 1) return true;
  const unsigned __int128 scaled = (unsigned __int128)binary.bits * native_tens[places]; /* of 103 bits */
  uint64_t rounded = 0;
  if (binary.shift < 120) {
    const unsigned __int128 whole = scaled >> binary.shift, half = (unsigned __int128)1 << (binary.shift - 1);
    const unsigned __int128 rest = scaled - (whole << binary.shift);
    if (whole >> 63 != 0) return true;
    rounded = (uint64_t)whole;
    rounded += rest > half || (rest == half && (rounded & 1) != 0);
  }
  digits->length = 0;
  native_put_digits(digits, rounded, places + 1);
  if (places != 0) {
    char* const point = digits->text + digits->length++ - places;
    memmove(point + 1, point, (size_t)places);
    *point = '.';
  }
  return false;
}

/* Prints a finite double without its sign. True: it is deferred, because the locale has another decimal point. */
NATIVE bool native_print(native_digits* digits, double size, char type, int precision) {
  char how[] = "%.*f";
  if ((type == 'f' || type == 'F') && !native_print_places(digits, size, precision)) return false;
  how[3] = type;
  digits->length = snprintf(digits->text, sizeof digits->text, how, precision, size);
  if (digits->length < 0 || (size_t)digits->length >= sizeof digits->text) return true;
  for (int i = 0; i < digits->length; i++) {
    const char c = digits->text[i];
    if (!native_is_digit(c) && c != '.' && c != 'e' && c != 'E' && c != '+' && c != '-') return true;
  }
  return false;
}

/* The shortest digits that are read as this double: the nearest ones of 15 digits, else of 16, else of 17. True: Python
 * writes an exponent, or two texts are equally near. */
NATIVE bool native_print_shortest(native_digits* digits, double size) {
  digits->length = 0;
  if (size == 0) {
    digits->length = (int)((char*)mempcpy(digits->text, "0.0", 3) - digits->text);
    return false;
  }
  if (!(size >= 1e-4 && size < 1e15)) return true;
  const native_binary binary = native_binary_of(size);
  int places = 16 - (int)floor(log10(size)); /* of 17 digits, or one less or more */
  unsigned __int128 ulp, exact;
  uint64_t whole;
  for (;;) {
    ulp = (unsigned __int128)native_tens[places / 2] * native_tens[places - places / 2];
    exact = binary.bits * ulp; /* of 123 bits */
    whole = (uint64_t)(exact >> binary.shift);
    if (whole < UINT64_C(10000000000000000))
      places++;
    else if (whole >= UINT64_C(100000000000000000))
      places--;
    else
      break;
  }
  uint64_t nearest = 0;
  for (uint64_t step = 100; step != 0; step /= 10) {
    const uint64_t below = whole - whole % step;
    const unsigned __int128 down = exact - ((unsigned __int128)below << binary.shift);
    const unsigned __int128 up = ((unsigned __int128)(below + step) << binary.shift) - exact;
    const unsigned __int128 far = down < up ? down : up;
    nearest = down < up ? below : below + step;
    if (down == up || far * 2 == ulp) return true;
    if (far * 2 < ulp) break;
  }
  while (nearest % 10 == 0 && places > 1) {
    nearest /= 10;
    places--;
  }
  native_put_digits(digits, nearest, places + 1);
  char* const point = digits->text + digits->length++ - places;
  memmove(point + 1, point, (size_t)places);
  *point = '.';
  return false;
}

NATIVE bool native_format_float(native_arena* arena, double value, native_format format, native_text* out) {
  native_digits digits;
  digits.is_negative = signbit(value) != 0;
  if (format.type == '%') value *= 100;
  if (!isfinite(value)) return true;
  if (format.type == 'r') {
    if (native_print_shortest(&digits, fabs(value))) return true;
  } else if (native_print(&digits, fabs(value), format.type == '%' ? 'f' : format.type, format.precision)) {
    return true;
  }
  if (format.type == '%') digits.text[digits.length++] = '%';
  return native_put_number(arena, format, &digits, out);
}

NATIVE bool native_text_of_float(native_arena* arena, double value, native_text* out) {
  return native_format_float(arena, value, (native_format){' ', '>', '-', 0, 'r', 0, -1}, out);
}

/* Only ASCII, because the width counts characters. */
NATIVE bool native_format_str(native_arena* arena, native_text text, native_format format, native_text* out) {
  if (!text.is_ascii) return true;
  if (format.precision >= 0 && format.precision < text.length) text.length = format.precision;
  return native_pad(arena, format, "", 0, text.data, text.length, out);
}

#endif /* NATIVE_FORMATS_H */
