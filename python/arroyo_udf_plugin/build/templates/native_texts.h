/* native_texts.h: what Python's methods and operators of texts mean, for functions that are compiled to C.
 *
 * GUARANTEES  As native_numbers.h. A text is a view: of an argument, of the program's constants, or of the row's arena.
 *             Bytes suffice for what UTF-8 keeps in order and apart: comparisons, searches, cuts at found texts. What
 *             counts characters, or knows more letters than ASCII's, defers a text that is not ASCII.
 * ASSUMES     Texts are valid UTF-8. */
#ifndef NATIVE_TEXTS_H
#define NATIVE_TEXTS_H

#include "native_numbers.h"

#include <string.h>

/* Two words, so that functions take it in registers: a copy through memory would wait for the stores of its fields. No
 * text has 2 GiB, because offsets of arguments have 32 bits, and what a row makes is in its arena. */
typedef struct native_text {
  const char* data; /* never NULL */
  int32_t length;   /* bytes */
  bool is_ascii;    /* true: certainly */
} native_text;

#define NATIVE_EMPTY ((native_text){"", 0, true})

/* Memory for the texts that a row makes; empty again with the next row. */
typedef struct native_arena {
  char* data; /* NULL until it is needed */
  int64_t used;
  const char* raised; /* what Python raises in the row that is deferred; NULL: see Python. Of libraries without Python */
} native_arena;

/* Notes it, just before the row is deferred. */
#ifdef NATIVE_ALONE
#define NATIVE_RAISES(condition, text) \
  if (condition) arena->raised = text
#else
#define NATIVE_RAISES(condition, text)
#endif

#define NATIVE_ARENA_BYTES 65536 /* a row that needs more is deferred */

NATIVE char* native_allocate(native_arena* arena, int64_t length) {
  if (arena->data == NULL) arena->data = (char*)malloc(NATIVE_ARENA_BYTES);
  if (arena->data == NULL || length > NATIVE_ARENA_BYTES - arena->used) return NULL;
  char* const start = arena->data + arena->used;
  arena->used += length;
  return start;
}

/* ---- Comparisons and searches ----------------------------------------------------------------------------------- */

NATIVE bool native_equal(native_text a, native_text b) {
  return a.length == b.length && memcmp(a.data, b.data, (size_t)a.length) == 0;
}

/* UTF-8 has the order of code points. */
NATIVE int native_compare(native_text a, native_text b) {
  const int order = memcmp(a.data, b.data, (size_t)(a.length < b.length ? a.length : b.length));
  return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

/* The byte at which `part` begins, at or after `from`; -1: nowhere. */
NATIVE int64_t native_search(native_text whole, native_text part, int64_t from) {
  if (part.length > whole.length - from) return -1;
  if (part.length == 0) return from;
  if (part.length == 1) {
    const char* const one = (const char*)memchr(whole.data + from, part.data[0], (size_t)(whole.length - from));
    return one == NULL ? -1 : one - whole.data;
  }
  const char* const found =
      (const char*)memmem(whole.data + from, (size_t)(whole.length - from), part.data, (size_t)part.length);
  return found == NULL ? -1 : found - whole.data;
}

/* The byte at which the last `part` begins that ends at or before `end`; -1: nowhere. */
NATIVE int64_t native_search_back(native_text whole, native_text part, int64_t end) {
  if (part.length == 0) return end;
  for (int64_t i = end - part.length; i >= 0; i--)
    if (whole.data[i] == part.data[0] && memcmp(whole.data + i, part.data, (size_t)part.length) == 0) return i;
  return -1;
}

NATIVE bool native_contains(native_text whole, native_text part) { return native_search(whole, part, 0) >= 0; }

NATIVE bool native_startswith(native_text text, native_text part) {
  return part.length <= text.length && memcmp(text.data, part.data, (size_t)part.length) == 0;
}

NATIVE bool native_endswith(native_text text, native_text part) {
  return part.length <= text.length &&
         memcmp(text.data + text.length - part.length, part.data, (size_t)part.length) == 0;
}

/* In arrays in ascending order; -1: it is not there. */
NATIVE int64_t native_search_str(const native_text* items, int64_t n, native_text text) {
  int64_t low = 0;
  for (int64_t high = n; low < high;) {
    const int64_t middle = low + (high - low) / 2;
    if (native_compare(items[middle], text) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low < n && native_equal(items[low], text) ? low : -1;
}

NATIVE int64_t native_search_int(const int64_t* items, int64_t n, int64_t value) {
  int64_t low = 0;
  for (int64_t high = n; low < high;) {
    const int64_t middle = low + (high - low) / 2;
    if (items[middle] < value)
      low = middle + 1;
    else
      high = middle;
  }
  return low < n && items[low] == value ? low : -1;
}

NATIVE bool native_find(native_text text, native_text part, int64_t* out) {
  *out = native_search(text, part, 0);
  return !text.is_ascii;
}
NATIVE bool native_rfind(native_text text, native_text part, int64_t* out) {
  *out = native_search_back(text, part, text.length);
  return !text.is_ascii;
}
NATIVE bool native_index(native_text text, native_text part, int64_t* out) {
  return native_find(text, part, out) || *out < 0;
}
NATIVE bool native_rindex(native_text text, native_text part, int64_t* out) {
  return native_rfind(text, part, out) || *out < 0;
}
NATIVE bool native_count(native_text text, native_text part, int64_t* out) {
  if (part.length == 0) return true;
  int64_t n = 0;
  for (int64_t i = 0; (i = native_search(text, part, i)) >= 0; i += part.length) n++;
  *out = n;
  return false;
}

/* ---- Parts ------------------------------------------------------------------------------------------------------ */

NATIVE native_text native_cut(native_text text, int64_t start, int64_t end) {
  return (native_text){text.data + start, end - start, text.is_ascii};
}

NATIVE int64_t native_length(native_text text) {
  if (text.is_ascii) return text.length;
  int64_t n = 0;
  for (int64_t i = 0; i < text.length; i++) n += ((unsigned char)text.data[i] & 0xC0) != 0x80;
  return n;
}

NATIVE bool native_item(native_text text, int64_t index, native_text* out) {
  int64_t place;
  if (!text.is_ascii || native_place(index, text.length, &place)) return true;
  *out = native_cut(text, place, place + 1);
  return false;
}

NATIVE bool native_slice(native_text text, int64_t start, int64_t end, native_text* out) {
  if (!text.is_ascii) return true;
  if (start < 0) start = start < -text.length ? 0 : start + text.length;
  if (end < 0) end = end < -text.length ? 0 : end + text.length;
  if (start > text.length) start = text.length;
  if (end > text.length) end = text.length;
  *out = native_cut(text, start, end < start ? start : end);
  return false;
}

NATIVE native_text native_removeprefix(native_text text, native_text part) {
  return native_startswith(text, part) ? native_cut(text, part.length, text.length) : text;
}
NATIVE native_text native_removesuffix(native_text text, native_text part) {
  return native_endswith(text, part) ? native_cut(text, 0, text.length - part.length) : text;
}

/* The whitespace of ASCII: \t \n \v \f \r, four separators, and the blank. */
NATIVE bool native_is_space(char c) { return (c >= 9 && c <= 13) || (c >= 28 && c <= 32); }

NATIVE bool native_strip_sides(native_text text, bool left, bool right, native_text* out) {
  int64_t start = 0, end = text.length;
  if (!text.is_ascii) return true;
  if (left)
    while (start < end && native_is_space(text.data[start])) start++;
  if (right)
    while (start < end && native_is_space(text.data[end - 1])) end--;
  *out = native_cut(text, start, end);
  return false;
}
NATIVE bool native_strip(native_text text, native_text* out) { return native_strip_sides(text, true, true, out); }
NATIVE bool native_lstrip(native_text text, native_text* out) { return native_strip_sides(text, true, false, out); }
NATIVE bool native_rstrip(native_text text, native_text* out) { return native_strip_sides(text, false, true, out); }

NATIVE bool native_strip_characters(native_text text, native_text set, bool left, bool right, native_text* out) {
  int64_t start = 0, end = text.length;
  if (!set.is_ascii) return true;
  if (left)
    while (start < end && memchr(set.data, text.data[start], (size_t)set.length) != NULL) start++;
  if (right)
    while (start < end && memchr(set.data, text.data[end - 1], (size_t)set.length) != NULL) end--;
  *out = native_cut(text, start, end);
  return false;
}
NATIVE bool native_strip_of(native_text text, native_text set, native_text* out) {
  return native_strip_characters(text, set, true, true, out);
}
NATIVE bool native_lstrip_of(native_text text, native_text set, native_text* out) {
  return native_strip_characters(text, set, true, false, out);
}
NATIVE bool native_rstrip_of(native_text text, native_text set, native_text* out) {
  return native_strip_characters(text, set, false, true, out);
}

/* text.split(separator)[index] */
NATIVE bool native_part(native_text text, native_text separator, int64_t index, native_text* out) {
  if (separator.length == 0) return true;
  /* Separators that overlap themselves are found elsewhere from the right than from the left. */
  if (index < 0 && separator.length > 1 && memchr(separator.data + 1, separator.data[0], (size_t)separator.length - 1)) {
    int64_t parts = 1, last = 0; /* where the last part begins */
    for (int64_t found; (found = native_search(text, separator, last)) >= 0; last = found + separator.length) parts++;
    if (index == -1) return *out = native_cut(text, last, text.length), false;
    index += parts;
    if (index < 0) return true;
  }
  if (index < 0) {
    int64_t end = text.length;
    for (;;) {
      const int64_t found = native_search_back(text, separator, end);
      if (++index == 0) {
        const int64_t start = found < 0 ? 0 : found + separator.length;
        *out = native_cut(text, start, end);
        return false;
      }
      if (found < 0) return true;
      end = found;
    }
  }
  int64_t start = 0;
  for (;;) {
    const int64_t found = native_search(text, separator, start);
    if (index-- == 0) {
      *out = native_cut(text, start, found < 0 ? text.length : found);
      return false;
    }
    if (found < 0) return true;
    start = found + separator.length;
  }
}

/* text.split()[index] */
NATIVE bool native_word(native_text text, int64_t index, native_text* out) {
  int64_t start = 0;
  if (!text.is_ascii || index < 0) return true;
  for (;;) {
    while (start < text.length && native_is_space(text.data[start])) start++;
    if (start == text.length) return true;
    int64_t end = start;
    while (end < text.length && !native_is_space(text.data[end])) end++;
    if (index-- == 0) {
      *out = native_cut(text, start, end);
      return false;
    }
    start = end;
  }
}

/* ---- New texts -------------------------------------------------------------------------------------------------- */

NATIVE bool native_join(native_arena* arena, native_text separator, const native_text* parts, int64_t n,
                        native_text* out) {
  int64_t length = separator.length * (n - 1);
  bool is_ascii = separator.is_ascii;
  for (int64_t i = 0; i < n; i++) {
    length += parts[i].length;
    is_ascii &= parts[i].is_ascii;
  }
  char* end = native_allocate(arena, length);
  if (end == NULL) return true;
  *out = (native_text){end, length, is_ascii};
  for (int64_t i = 0; i < n; i++) {
    if (i != 0 && separator.length != 0) end = (char*)mempcpy(end, separator.data, (size_t)separator.length);
    end = (char*)mempcpy(end, parts[i].data, (size_t)parts[i].length);
  }
  return false;
}

NATIVE bool native_replace(native_arena* arena, native_text text, native_text old, native_text by, native_text* out) {
  int64_t n, start = 0;
  if (native_count(text, old, &n)) return true;
  if (n == 0) return *out = text, false;
  if (by.length > NATIVE_ARENA_BYTES || n > NATIVE_ARENA_BYTES) return true;
  const int64_t length = text.length + n * (by.length - old.length);
  char* end = native_allocate(arena, length);
  if (end == NULL) return true;
  *out = (native_text){end, length, text.is_ascii && by.is_ascii};
  for (int64_t found; (found = native_search(text, old, start)) >= 0; start = found + old.length) {
    end = (char*)mempcpy(end, text.data + start, (size_t)(found - start));
    end = (char*)mempcpy(end, by.data, (size_t)by.length);
  }
  memcpy(end, text.data + start, (size_t)(text.length - start));
  return false;
}

NATIVE bool native_lower(native_arena* arena, native_text text, native_text* out) {
  char* const made = text.is_ascii ? native_allocate(arena, text.length) : NULL;
  if (made == NULL) return true;
  for (int64_t i = 0; i < text.length; i++) {
    const char c = text.data[i];
    made[i] = (char)(c + 32 * (c >= 'A' && c <= 'Z'));
  }
  *out = (native_text){made, text.length, true};
  return false;
}

NATIVE bool native_upper(native_arena* arena, native_text text, native_text* out) {
  char* const made = text.is_ascii ? native_allocate(arena, text.length) : NULL;
  if (made == NULL) return true;
  for (int64_t i = 0; i < text.length; i++) {
    const char c = text.data[i];
    made[i] = (char)(c - 32 * (c >= 'a' && c <= 'z'));
  }
  *out = (native_text){made, text.length, true};
  return false;
}

NATIVE bool native_text_of_int(native_arena* arena, int64_t value, native_text* out) {
  char digits[20];
  int n = 0;
  uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  do digits[n++] = (char)('0' + left % 10);
  while ((left /= 10) != 0);
  char* end = native_allocate(arena, n + (value < 0));
  if (end == NULL) return true;
  *out = (native_text){end, n + (value < 0), true};
  if (value < 0) *end++ = '-';
  while (n > 0) *end++ = digits[--n];
  return false;
}

NATIVE bool native_text_of_bool(native_arena* arena, bool value, native_text* out) {
  (void)arena;
  *out = value ? (native_text){"True", 4, true} : (native_text){"False", 5, true};
  return false;
}

/* ---- What texts say --------------------------------------------------------------------------------------------- */

/* int(text), of at most 18 digits; Python reads more: signs of other scripts, underscores, whitespace. */
NATIVE bool native_int_of_text(native_text text, int64_t* out) {
  int64_t i = 0, value = 0;
  const bool is_negative = text.length > 0 && text.data[0] == '-';
  if (text.length > 0 && (text.data[0] == '-' || text.data[0] == '+')) i = 1;
  if (text.length - i < 1 || text.length - i > 18) return true;
  for (; i < text.length; i++) {
    if (text.data[i] < '0' || text.data[i] > '9') return true;
    value = value * 10 + (text.data[i] - '0');
  }
  *out = is_negative ? -value : value;
  return false;
}

NATIVE bool native_ord_of_text(native_text text, int64_t* out) {
  if (text.length != 1) return true;
  *out = text.data[0];
  return false;
}

NATIVE bool native_is_lower_letter(char c) { return c >= 'a' && c <= 'z'; }
NATIVE bool native_is_upper_letter(char c) { return c >= 'A' && c <= 'Z'; }
NATIVE bool native_is_letter(char c) { return native_is_lower_letter(c) || native_is_upper_letter(c); }
NATIVE bool native_is_digit(char c) { return c >= '0' && c <= '9'; }
NATIVE bool native_is_letter_or_digit(char c) { return native_is_letter(c) || native_is_digit(c); }

/* True if there are characters, and all are such. The loop ends at the first other one, also because compilers make
 * vectors of one that does not, which costs more than it saves in texts of a few characters. */
#define NATIVE_ALL(name, test)                              \
  NATIVE bool native_##name(native_text text, bool* out) {  \
    int64_t i = 0;                                          \
    while (i < text.length && test(text.data[i])) i++;      \
    *out = i != 0 && i == text.length;                      \
    return !text.is_ascii;                                  \
  }
NATIVE_ALL(isdigit, native_is_digit)
NATIVE_ALL(isdecimal, native_is_digit)
NATIVE_ALL(isnumeric, native_is_digit)
NATIVE_ALL(isalpha, native_is_letter)
NATIVE_ALL(isalnum, native_is_letter_or_digit)
NATIVE_ALL(isspace, native_is_space)

NATIVE bool native_isascii(native_text text, bool* out) {
  *out = text.is_ascii || arroyo_udf_c_is_ascii(text.data, (size_t)text.length);
  return false;
}

/* True if there are letters, and none of the other case. */
NATIVE bool native_islower(native_text text, bool* out) {
  bool has = false, other = false;
  for (int64_t i = 0; i < text.length; i++) {
    has |= native_is_lower_letter(text.data[i]);
    other |= native_is_upper_letter(text.data[i]);
  }
  *out = has && !other;
  return !text.is_ascii;
}
NATIVE bool native_isupper(native_text text, bool* out) {
  bool has = false, other = false;
  for (int64_t i = 0; i < text.length; i++) {
    has |= native_is_upper_letter(text.data[i]);
    other |= native_is_lower_letter(text.data[i]);
  }
  *out = has && !other;
  return !text.is_ascii;
}

#endif /* NATIVE_TEXTS_H */
