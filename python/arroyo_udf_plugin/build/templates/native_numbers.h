/* native_numbers.h: what operators and functions of Python's numbers mean, for functions that are compiled to C.
 *
 * GUARANTEES  A function answers false and writes its result, which is Python's to the last bit; or it answers true, and
 *             Python must run the row: it would raise, or the result may not fit.
 * ASSUMES     IEEE 754 doubles, rounded to nearest, without contraction (-ffp-contract=off). The C library's functions are
 *             those that Python calls; their names are no builtins of the compiler, which would compute some by itself. */
#ifndef NATIVE_NUMBERS_H
#define NATIVE_NUMBERS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define NATIVE_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define NATIVE_UNUSED __attribute__((unused))
#define NATIVE static inline NATIVE_UNUSED

/* Between these an int64 is exactly a double, and so is each integer on the way. */
#define NATIVE_EXACT (INT64_C(1) << 53)

NATIVE bool native_is_exact(int64_t x) { return -NATIVE_EXACT <= x && x <= NATIVE_EXACT; }

/* ---- Integers --------------------------------------------------------------------------------------------------- */

NATIVE bool native_add(int64_t a, int64_t b, int64_t* out) { return __builtin_add_overflow(a, b, out); }
NATIVE bool native_subtract(int64_t a, int64_t b, int64_t* out) { return __builtin_sub_overflow(a, b, out); }
NATIVE bool native_multiply(int64_t a, int64_t b, int64_t* out) { return __builtin_mul_overflow(a, b, out); }
NATIVE bool native_absolute(int64_t a, int64_t* out) { return a < 0 ? native_subtract(0, a, out) : (*out = a, false); }

NATIVE bool native_cannot_divide(int64_t a, int64_t b) { return b == 0 || (b == -1 && a == INT64_MIN); }

/* Rounded down, where C rounds to zero. */
NATIVE bool native_floor_divide(int64_t a, int64_t b, int64_t* out) {
  if (native_cannot_divide(a, b)) return true;
  *out = a / b - (a % b != 0 && (a ^ b) < 0);
  return false;
}

/* With the sign of the divisor. */
NATIVE bool native_modulo(int64_t a, int64_t b, int64_t* out) {
  if (native_cannot_divide(a, b)) return true;
  const int64_t rest = a % b;
  *out = rest != 0 && (rest ^ b) < 0 ? rest + b : rest;
  return false;
}

/* Both are exact doubles, so one division rounds once, as Python does. */
NATIVE bool native_divide(int64_t a, int64_t b, double* out) {
  if (b == 0 || !native_is_exact(a) || !native_is_exact(b)) return true;
  *out = (double)a / (double)b;
  return false;
}

NATIVE bool native_shift_left(int64_t a, int64_t b, int64_t* out) {
  if (a == 0 && b >= 0) return *out = 0, false;
  if (b < 0 || b > 62) return true;
  return __builtin_mul_overflow(a, INT64_C(1) << b, out);
}

NATIVE bool native_shift_right(int64_t a, int64_t b, int64_t* out) {
  if (b < 0) return true;
  const int64_t bits = b < 63 ? b : 63;
  *out = a < 0 ? ~(~a >> bits) : a >> bits;
  return false;
}

NATIVE bool native_power(int64_t base, int64_t exponent, int64_t* out) {
  int64_t result = 1;
  if (exponent < 0) return true;
  for (;;) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return true;
    exponent >>= 1;
    if (exponent == 0) break;
    if (__builtin_mul_overflow(base, base, &base)) return true;
  }
  *out = result;
  return false;
}

/* The place of an item in a sequence. */
NATIVE bool native_place(int64_t index, int64_t length, int64_t* out) {
  if (index < -length || index >= length) return true;
  *out = index < 0 ? index + length : index;
  return false;
}

NATIVE uint64_t native_range_length(int64_t start, int64_t stop, int64_t step) {
  if (step > 0) return start < stop ? ((uint64_t)stop - (uint64_t)start - 1) / (uint64_t)step + 1 : 0;
  return start > stop ? ((uint64_t)start - (uint64_t)stop - 1) / (0 - (uint64_t)step) + 1 : 0;
}

/* ---- Floats ----------------------------------------------------------------------------------------------------- */

NATIVE bool native_divide_float(double a, double b, double* out) {
  if (b == 0.0) return true;
  *out = a / b;
  return false;
}

/* Python makes quotient and remainder fit to each other: the remainder is exact and has the sign of the divisor. */
NATIVE bool native_divide_with_rest(double a, double b, double* quotient, double* rest) {
  if (b == 0.0 || !isfinite(a) || !isfinite(b)) return true;
  double left = fmod(a, b);
  double whole = (a - left) / b;
  if (left == 0.0) {
    left = copysign(0.0, b);
  } else if (signbit(left) != signbit(b)) {
    left += b;
    whole -= 1.0;
  }
  if (whole == 0.0) {
    whole = copysign(0.0, a / b);
  } else {
    const double down = floor(whole);
    whole = whole - down > 0.5 ? down + 1.0 : down;
  }
  *quotient = whole;
  *rest = left;
  return false;
}

NATIVE bool native_floor_divide_float(double a, double b, double* out) {
  double rest;
  return native_divide_with_rest(a, b, out, &rest);
}

NATIVE bool native_modulo_float(double a, double b, double* out) {
  double quotient;
  return native_divide_with_rest(a, b, &quotient, out);
}

/* Results that are denormal or zero are deferred too, since C libraries differ in whether they call them errors. */
NATIVE bool native_power_float(double base, double exponent, double* out) {
  if (!isfinite(base) || !isfinite(exponent)) return true;
  if (base < 0.0 && floor(exponent) != exponent) return true; /* a complex number */
  *out = pow(base, exponent);
  return !isnormal(*out) && !(*out == 0.0 && base == 0.0 && exponent > 0.0);
}

/* Doubles of at least 2^63 are no int64. */
NATIVE bool native_is_int64(double x) { return -0x1p63 <= x && x < 0x1p63; }

NATIVE bool native_truncate(double x, int64_t* out) {
  if (!native_is_int64(x)) return true;
  *out = (int64_t)x;
  return false;
}
NATIVE bool native_floor(double x, int64_t* out) { return native_truncate(floor(x), out); }
NATIVE bool native_ceil(double x, int64_t* out) { return native_truncate(ceil(x), out); }
NATIVE bool native_round(double x, int64_t* out) { return native_truncate(rint(x), out); }

/* round(x, digits): the double that is nearest to the decimal to which x, as the exact number that it is, rounds.
 *
 * If x times 10^digits is away from the middle between two integers by more than its own rounding error, the nearest
 * integer is certain, and one division by an exact power of ten gives the double nearest to the decimal. Else C's exact
 * decimals decide. */
NATIVE bool native_round_to(double x, int digits, double* out) {
  static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  if (!isfinite(x)) return true;
  if (digits <= 22) {
    const double scaled = x * powers[digits];
    if (fabs(scaled) < 0x1p51) {
      const double nearest = rint(scaled);
      if (0.5 - fabs(scaled - nearest) > fabs(scaled) * 0x1p-51) {
        *out = nearest == 0.0 ? copysign(0.0, x) : nearest / powers[digits];
        return false;
      }
    }
  }
  char decimals[800];
  if (digits > 350 || snprintf(decimals, sizeof decimals, "%.*f", digits, x) >= (int)sizeof decimals) return true;
  *out = strtod(decimals, NULL);
  return !isfinite(*out);
}

/* ---- The module math -------------------------------------------------------------------------------------------- */

#define NATIVE_RADIANS 0x1.1df46a2529d39p-6 /* pi / 180 */
#define NATIVE_DEGREES 0x1.ca5dc1a63c1f8p+5 /* 180 / pi */

#define NATIVE_MATH(name, condition)                            \
  NATIVE bool native_math_##name(double x, double* out) {       \
    if (!isfinite(x) || !(condition)) return true;              \
    *out = name(x);                                             \
    return !isfinite(*out);                                     \
  }
NATIVE_MATH(sqrt, x >= 0.0)
NATIVE_MATH(exp, true)
NATIVE_MATH(expm1, true)
NATIVE_MATH(sin, true)
NATIVE_MATH(cos, true)
NATIVE_MATH(tan, true)
NATIVE_MATH(asin, fabs(x) <= 1.0)
NATIVE_MATH(acos, fabs(x) <= 1.0)
NATIVE_MATH(atan, true)
NATIVE_MATH(sinh, true)
NATIVE_MATH(cosh, true)
NATIVE_MATH(tanh, true)
NATIVE_MATH(asinh, true)
NATIVE_MATH(acosh, x >= 1.0)
NATIVE_MATH(atanh, fabs(x) < 1.0)
NATIVE_MATH(log, x > 0.0)
NATIVE_MATH(log2, x > 0.0)
NATIVE_MATH(log10, x > 0.0)
NATIVE_MATH(log1p, x > -1.0 && x != 0.0)

#define NATIVE_MATH_2(name, condition)                                   \
  NATIVE bool native_math_##name(double x, double y, double* out) {      \
    if (!isfinite(x) || !isfinite(y) || !(condition)) return true;       \
    *out = name(x, y);                                                   \
    return !isfinite(*out);                                              \
  }
NATIVE_MATH_2(pow, x > 0.0)
NATIVE_MATH_2(fmod, y != 0.0)
NATIVE_MATH_2(atan2, x != 0.0 || y != 0.0)

#endif /* NATIVE_NUMBERS_H */
