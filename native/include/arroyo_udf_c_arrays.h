/* arroyo_udf_c_arrays.h: Arrow arrays that come in: views of a batch's columns, and of the items of lists. A part of
 * arroyo_udf_plugin.h; knows nothing of functions and tables.
 *
 * GUARANTEES  Columns are checked before they are read, by the rules of the other languages: an array is refused if its
 *             numbers of buffers and children, its length and offset, its last offset or a missing buffer do not fit
 *             its type; a row is an error if its offsets do not ascend, end after the last one, or its text is not
 *             UTF-8. Buffers may be unaligned. No byte beyond a buffer is read.
 * ASSUMES     Buffers are as large as lengths and offsets imply, because Arrow C Data does not state their sizes. */
#ifndef ARROYO_UDF_C_ARRAYS_H
#define ARROYO_UDF_C_ARRAYS_H

#ifndef ARROYO_UDF_PLUGIN_H
#error "include arroyo_udf_plugin.h, of which this is a part"
#endif

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "arroyo_udf_c_arrays.h reads validity bits in words: little-endian machines only"
#endif

#define ARROYO_UDF_C_COLD __attribute__((noinline, cold))
#define ARROYO_UDF_C_UNUSED __attribute__((unused))
/* Of what runs once for a batch: as fast code it would take a third of the compiler's time. */
#define ARROYO_UDF_C_ONCE ARROYO_UDF_C_COLD ARROYO_UDF_C_UNUSED
/* Of what has a loop over rows and is called from there: else compilers take it for as rare. */
#define ARROYO_UDF_C_LOOP __attribute__((noinline, hot)) ARROYO_UDF_C_UNUSED

/* ---- Texts ----------------------------------------------------------------------------------------------------- */

typedef struct arroyo_udf_c_buffer {
  char* data;
  size_t length;
  size_t capacity;
} arroyo_udf_c_buffer;

static inline const char* arroyo_udf_c_append(arroyo_udf_c_buffer* buffer, const char* data, size_t length) {
  if (length > (size_t)INT32_MAX - buffer->length) return "the results exceed 2 GiB: send smaller batches";
  if (buffer->length + length > buffer->capacity) {
    const size_t capacity = 2 * (buffer->length + length) + 64;
    char* const grown = (char*)realloc(buffer->data, capacity);
    if (grown == NULL) return "out of memory";
    buffer->data = grown;
    buffer->capacity = capacity;
  }
  if (length != 0) memcpy(buffer->data + buffer->length, data, length);
  buffer->length += length;
  return NULL;
}

static inline void arroyo_udf_append(arroyo_udf_text* out, const char* data, size_t length) {
  const char* const failure = arroyo_udf_c_append(out->buffer, data, length);
  if (failure != NULL) out->failure = failure;
}

static inline const char* arroyo_udf_failure(const char* format, ...) {
  static __thread char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

/* The length of the longest prefix that is UTF-8. */
static inline size_t arroyo_udf_c_utf8_prefix(const char* text, size_t length) {
  const unsigned char* const bytes = (const unsigned char*)text;
  size_t i = 0;
  while (i < length) {
    uint64_t eight;
    while (length - i >= 8 && (memcpy(&eight, bytes + i, 8), (eight & UINT64_C(0x8080808080808080)) == 0)) i += 8;
    if (i == length) break;
    const unsigned char lead = bytes[i];
    size_t more = 0;                       /* bytes that continue this character */
    unsigned char low = 0x80, high = 0xBF; /* bounds of the first of them: no overlong forms, no surrogates */
    if (lead < 0x80) {
      more = 0;
    } else if (lead >= 0xC2 && lead <= 0xDF) {
      more = 1;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      more = 2;
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      more = 3;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    } else {
      return i;
    }
    if (length - i <= more) return i;
    for (size_t k = 1; k <= more; k++) {
      if (bytes[i + k] < low || bytes[i + k] > high) return i;
      low = 0x80;
      high = 0xBF;
    }
    i += 1 + more;
  }
  return length;
}

/* ---- A column --------------------------------------------------------------------------------------------------- */

/* One argument of a batch. `outer` is the validity of the struct around all arguments: a null there is one in each. */
typedef struct arroyo_udf_c_column {
  const void* values; /* of texts, states and lists: their offsets; may be unaligned */
  const char* text;   /* or the bytes of states */
  const struct arroyo_udf_c_column* items; /* of lists: all items, from the first one on */
  int32_t last;        /* the last offset of the array: no text and no item reaches beyond it */
  int32_t ascii_start; /* texts from here to ascii_end are known to be ASCII */
  int32_t ascii_end;
  const uint8_t* validity; /* NULL: no nulls */
  const uint8_t* outer;    /* NULL: no nulls */
  int64_t offset;          /* of row 0 in values and validity */
  int64_t mask;            /* of row numbers there: 0 for a text that is a constant, else all bits */
  int64_t outer_offset;
} arroyo_udf_c_column;

static inline bool arroyo_udf_c_bit(const void* bits, int64_t i) {
  return ((const uint8_t*)bits)[i / 8] >> (i % 8) & 1;
}

static inline bool arroyo_udf_c_is_null(arroyo_udf_c_column column, int64_t row) {
  return (column.validity != NULL && !arroyo_udf_c_bit(column.validity, column.offset + (row & column.mask))) ||
         (column.outer != NULL && !arroyo_udf_c_bit(column.outer, column.outer_offset + row));
}

/* Finds the validity buffer; NULL if there are no nulls. False: there are nulls, but no buffer. */
static inline bool arroyo_udf_c_validity(const struct ArrowArray* array, const uint8_t** validity) {
  *validity = array->null_count == 0 ? NULL : (const uint8_t*)array->buffers[0];
  return array->null_count <= 0 || *validity != NULL;
}

static inline int32_t arroyo_udf_c_offset(const void* offsets, int64_t i) {
  int32_t offset;
  memcpy(&offset, (const char*)offsets + i * (int64_t)sizeof offset, sizeof offset);
  return offset;
}

/* Short texts are read in two overlapping pieces, so that none needs a loop over its bytes. */
static inline bool arroyo_udf_c_is_ascii(const char* text, size_t length) {
  uint64_t bits = 0, eight;
  uint32_t first, last;
  if (length >= 8) {
    for (size_t i = 0; i + 8 <= length; i += 8) {
      memcpy(&eight, text + i, 8);
      bits |= eight;
    }
    memcpy(&eight, text + length - 8, 8);
    bits |= eight;
  } else if (length >= 4) {
    memcpy(&first, text, 4);
    memcpy(&last, text + length - 4, 4);
    bits = first | last;
  } else if (length > 0) {
    bits = (unsigned char)text[0] | (unsigned char)text[length / 2] | (unsigned char)text[length - 1];
  }
  return (bits & UINT64_C(0x8080808080808080)) == 0;
}

/* Whether an array of this format has 32-bit offsets, and whether these lead to bytes. */
static inline bool arroyo_udf_c_has_offsets(char format) { return format == 'u' || format == 'z' || format == '+'; }
static inline bool arroyo_udf_c_has_bytes(char format) { return format == 'u' || format == 'z'; }

/* Mostly, this saves the check of each text: texts `from` to `to` (not included) are ASCII. */
ARROYO_UDF_C_LOOP static void arroyo_udf_c_find_ascii(arroyo_udf_c_column* column, int64_t from, int64_t to) {
  const int32_t first = arroyo_udf_c_offset(column->values, column->offset + from);
  const int32_t end = arroyo_udf_c_offset(column->values, column->offset + to);
  if (0 <= first && first <= end && end <= column->last &&
      arroyo_udf_c_is_ascii(column->text + first, (size_t)(end - first))) {
    column->ascii_start = first;
    column->ascii_end = end;
  }
}

/* Checks an array whose rows from number `first` on are to be read, and fills in `column`. Returns NULL, or what is
 * wrong with the array; it is `too_short` if it has fewer rows than `end`. */
static inline const char* arroyo_udf_c_read_array(const struct ArrowArray* array, char format, int64_t first,
                                                  int64_t end, const char* too_short, arroyo_udf_c_column* column) {
  memset(column, 0, sizeof *column);
  column->mask = -1;
  column->text = "";
  if (array == NULL || array->release == NULL) return "is missing or released";
  if (array->dictionary != NULL) return "is dictionary-encoded: decode it first";
  if (array->n_buffers != (arroyo_udf_c_has_bytes(format) ? 3 : 2) || array->n_children != (format == '+') ||
      array->buffers == NULL || (format == '+' && array->children == NULL))
    return "does not have the buffers of its type: send what `describe` names";
  /* No memory holds more rows than this, so what is computed from them does not overflow. */
  if (array->length < 0 || array->offset < 0 || array->offset > INT64_MAX / 16 ||
      array->length > INT64_MAX / 16 - 1 - array->offset)
    return "has an invalid length or offset";
  if (array->length < end) return too_short;
  column->offset = array->offset + first;
  column->values = array->buffers[1];
  if (!arroyo_udf_c_validity(array, &column->validity)) return "has nulls, but no validity buffer";
  if (array->length == 0) return NULL;
  if (column->values == NULL) return "has no data buffer";
  if (!arroyo_udf_c_has_offsets(format)) return NULL;
  column->last = arroyo_udf_c_offset(column->values, array->offset + array->length);
  if (column->last < 0) return "has a negative last offset";
  if (column->last == 0 || format == '+') return NULL;
  if (array->buffers[2] == NULL) return "has no data buffer";
  column->text = (const char*)array->buffers[2];
  return NULL;
}

/* The same for one argument of a batch, and for the items of lists: they are read into *items. */
static inline const char* arroyo_udf_c_read_column(const struct ArrowArray* batch, const struct ArrowArray* array,
                                                   const struct ArrowSchema* type, arroyo_udf_c_column* column,
                                                   arroyo_udf_c_column* items) {
  const char* wrong = arroyo_udf_c_read_array(array, type->format[0], batch->offset, batch->offset + batch->length,
                                              "is shorter than the batch", column);
  if (wrong != NULL) return wrong;
  if (type->format[0] == 'u' && column->last != 0) arroyo_udf_c_find_ascii(column, 0, batch->length);
  if (type->format[0] != '+') return NULL;
  const char item_format = type->children[0]->format[0];
  wrong = arroyo_udf_c_read_array(array->children[0], item_format, 0, column->last, "ends before the lists do", items);
  if (wrong != NULL) return arroyo_udf_failure("has an array of items that %s", wrong);
  column->items = items;
  if (item_format != 'u' || items->last == 0 || column->last == 0) return NULL;
  const int32_t first = arroyo_udf_c_offset(column->values, column->offset);
  const int32_t end = arroyo_udf_c_offset(column->values, column->offset + batch->length);
  if (0 <= first && first <= end && end <= column->last) arroyo_udf_c_find_ascii(items, first, end);
  return NULL;
}

/* The same for an argument that has one value for all rows: a text. */
static inline const char* arroyo_udf_c_read_constant(const struct ArrowArray* array, const struct ArrowSchema* type,
                                                     arroyo_udf_c_column* column) {
  const char* const wrong = arroyo_udf_c_read_array(array, type->format[0], 0, 1, "is a constant without a row", column);
  if (wrong != NULL) return wrong;
  if (array->length != 1) return "is a constant with several rows";
  column->mask = 0;
  if (column->last != 0) arroyo_udf_c_find_ascii(column, 0, 1);
  return NULL;
}

static inline bool arroyo_udf_c_has_constants(const arroyo_udf_c_column* columns, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (columns[i].mask == 0) return true;
  return false;
}

/* `count` bits (1 to 64) from bit `first` on; higher bits are zero. Reads no byte beyond them. */
static inline uint64_t arroyo_udf_c_bits(const uint8_t* bits, int64_t first, int64_t count) {
  const uint8_t* const bytes = bits + first / 8;
  const int shift = (int)(first % 8);
  const int64_t n_bytes = (shift + count + 7) / 8;
  uint64_t word = 0;
  if (n_bytes >= 8) {
    memcpy(&word, bytes, 8);
  } else {
    for (int64_t i = 0; i < n_bytes; i++) word |= (uint64_t)bytes[i] << (8 * i);
  }
  word >>= shift;
  if (n_bytes == 9) word |= (uint64_t)bytes[8] << (64 - shift);
  return word & (UINT64_MAX >> (64 - count));
}

#endif /* ARROYO_UDF_C_ARRAYS_H */
