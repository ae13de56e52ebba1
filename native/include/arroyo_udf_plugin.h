/* arroyo_udf_plugin.h: functions written in C. One .c file that includes this is a plugin; nothing is linked to it.
 *
 *     #include "arroyo_udf_plugin.h"
 *
 *     static const char* mph(int64_t distance, int64_t air_time, double* out) {
 *       *out = (double)distance * 60.0 / (double)air_time;
 *       return NULL;
 *     }
 *     ARROYO_UDF_FUNCTION(mph, float64, (int64, distance), (int64, air_time));
 *     ARROYO_UDF_PLUGIN(mph);
 *
 * The function is plain C and sync: it gets one row and writes the row's value to *out (zero or empty until then).
 * It returns NULL; or the text of this row's error, read before the next call (arroyo_udf_failure makes one as printf
 * does); or arroyo_udf_null, if its result is declared nullable. It may be called in several threads at once.
 *
 *   declared as      argument                          out
 *   bool             bool                              bool*
 *   int8 ... uint64  int8_t ... uint64_t               int8_t* ... uint64_t*
 *   float32 float64  float, double                     float*, double*
 *   utf8             arroyo_udf_utf8: data and         arroyo_udf_text*: append to it with arroyo_udf_append
 *                    length, no zero at the end
 *   nullable_T       arroyo_udf_nullable_T: `value`    as for T
 *                    and `is_null`
 *
 * A null in an argument that is not nullable: the function is not called, and the result is null. One to 16 arguments,
 * one to 16 functions. A declaration that does not fit the function is a compiler error ("conflicting types").
 * Functions that wait for something: arroyo_udf_async.h.
 *
 * What is named arroyo_udf_c_... is private to this header.
 */
#ifndef ARROYO_UDF_PLUGIN_H
#define ARROYO_UDF_PLUGIN_H

#include "arroyo_udf_c_slots.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "arroyo_udf_plugin.h reads validity bits in words: little-endian machines only"
#endif

/* The builder says who the plugin is; without it these will do. */
#ifndef ARROYO_UDF_PLUGIN_NAME
#define ARROYO_UDF_PLUGIN_NAME "unnamed"
#endif
#ifndef ARROYO_UDF_PLUGIN_HASH
#define ARROYO_UDF_PLUGIN_HASH "0"
#endif
#ifndef ARROYO_UDF_TOOLKIT_VERSION
#define ARROYO_UDF_TOOLKIT_VERSION "none"
#endif

#define ARROYO_UDF_C_COLD __attribute__((noinline, cold))
#define ARROYO_UDF_C_UNUSED __attribute__((unused))
#define ARROYO_UDF_C_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* ---- What authors use ------------------------------------------------------------------------------------------ */

typedef struct arroyo_udf_utf8 {
  const char* data;
  size_t length; /* bytes */
} arroyo_udf_utf8;

typedef struct arroyo_udf_c_buffer {
  char* data;
  size_t length;
  size_t capacity;
} arroyo_udf_c_buffer;

/* The text of one row's result, while the function writes it. */
typedef struct arroyo_udf_text {
  arroyo_udf_c_buffer* buffer; /* of the whole batch: texts lie end to end */
  const char* failure;
} arroyo_udf_text;

/* "The value is null": compared by address. */
ARROYO_UDF_C_UNUSED static const char arroyo_udf_null[] = "null";

static inline const char* arroyo_udf_c_append(arroyo_udf_c_buffer* buffer, const char* data, size_t length) {
  if (length > (size_t)INT32_MAX - buffer->length) return "the texts of this batch exceed 2 GiB: send smaller batches";
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

/* Adds bytes to a result. When memory runs out the row becomes an error by itself. */
static inline void arroyo_udf_append(arroyo_udf_text* out, const char* data, size_t length) {
  const char* const failure = arroyo_udf_c_append(out->buffer, data, length);
  if (failure != NULL) out->failure = failure;
}

/* The text of a row's error, as printf makes it; up to 511 bytes, good until the next one in this thread. */
ARROYO_UDF_C_PRINTF(1, 2) static inline const char* arroyo_udf_failure(const char* format, ...) {
  static __thread char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

/* ---- One batch's results --------------------------------------------------------------------------------------- */

/* Results live in one block: this, then validity, then values or offsets. Texts and errors are beside it, when there
 * are any. The struct and its children can be moved apart and released in any order, so the block counts them. */
typedef struct arroyo_udf_c_result {
  int64_t references;
  struct ArrowArray children[3]; /* value, outcome, error */
  struct ArrowArray* child_list[3];
  const void* no_buffer[1];
  const void* value_buffers[3];
  const void* outcome_buffers[2];
  const void* error_buffers[3];

  int64_t length;
  int64_t nulls;
  uint64_t* validity;
  void* values; /* offsets, if the values are texts */
  arroyo_udf_c_buffer text;

  bool nullable; /* may the function answer null? */
  bool out_of_memory;
  uint64_t* error_block; /* the next three, one allocation; NULL until a row fails */
  uint64_t* error_validity;
  int32_t* error_offsets;
  uint8_t* outcomes;
  int64_t errors;
  int64_t error_offsets_written;
  arroyo_udf_c_buffer error_text;
} arroyo_udf_c_result;

static inline void arroyo_udf_c_free(arroyo_udf_c_result* result) {
  free(result->text.data);
  free(result->error_text.data);
  free(result->error_block);
  free(result);
}

static inline void arroyo_udf_c_release(struct ArrowArray* array) {
  arroyo_udf_c_result* const result = (arroyo_udf_c_result*)array->private_data;
  for (int64_t i = 0; i < array->n_children; i++)
    if (array->children[i]->release != NULL) array->children[i]->release(array->children[i]);
  array->release = NULL;
  if (__atomic_sub_fetch(&result->references, 1, __ATOMIC_ACQ_REL) == 0) arroyo_udf_c_free(result);
}

static inline int64_t arroyo_udf_c_words(int64_t rows) { return (rows + 63) / 64; }

/* Bits of one value (of one offset, for texts), by the first letter of its Arrow format. */
static inline int64_t arroyo_udf_c_value_bits(char format) {
  switch (format) {
    case 'b':
      return 1;
    case 'c':
    case 'C':
      return 8;
    case 's':
    case 'S':
      return 16;
    case 'i':
    case 'I':
    case 'f':
    case 'u':
      return 32;
    default:
      return 64;
  }
}

static inline arroyo_udf_c_result* arroyo_udf_c_new_result(int64_t length, const struct ArrowSchema* returns) {
  const int64_t words = arroyo_udf_c_words(length);
  /* Whole words of 64 rows, and one more offset than texts; buffers begin at 64 bytes, as Arrow recommends. */
  const int64_t value_words = (words + (returns->format[0] == 'u')) * arroyo_udf_c_value_bits(returns->format[0]);
  const size_t validity_bytes = ((size_t)words * 8 + 63) / 64 * 64;
  char* const block = (char*)malloc(sizeof(arroyo_udf_c_result) + 64 + validity_bytes + (size_t)value_words * 8);
  if (block == NULL) return NULL;
  arroyo_udf_c_result* const result = (arroyo_udf_c_result*)(void*)block;
  memset(result, 0, sizeof *result);
  char* const buffers = block + sizeof(arroyo_udf_c_result);
  char* const aligned = buffers + (64 - (uintptr_t)buffers % 64) % 64;
  result->length = length;
  result->nullable = (returns->flags & ARROW_FLAG_NULLABLE) != 0;
  result->validity = (uint64_t*)(void*)aligned;
  result->values = aligned + validity_bytes;
  /* Bits are or-ed in, and the first offset is zero. */
  if (returns->format[0] == 'b') memset(result->values, 0, (size_t)value_words * 8);
  if (returns->format[0] == 'u') memset(result->values, 0, sizeof(int32_t));
  return result;
}

/* How many of these bytes are UTF-8, counted from the start. */
static inline size_t arroyo_udf_c_utf8_prefix(const char* text, size_t length) {
  const unsigned char* const bytes = (const unsigned char*)text;
  size_t i = 0;
  while (i < length) {
    uint64_t eight;
    while (length - i >= 8 && (memcpy(&eight, bytes + i, 8), (eight & UINT64_C(0x8080808080808080)) == 0)) i += 8;
    if (i == length) break;
    const unsigned char lead = bytes[i];
    size_t more = 0;                       /* bytes that continue this character */
    unsigned char low = 0x80, high = 0xBF; /* what the first of them may be: no overlong forms, no surrogates */
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

static inline bool arroyo_udf_c_make_errors(arroyo_udf_c_result* result) {
  const int64_t words = arroyo_udf_c_words(result->length);
  /* 1 bit of validity, 32 of offset and 8 of outcome for each row, and one offset more. */
  result->error_block = (uint64_t*)calloc((size_t)words * (1 + 32 + 8) + 1, sizeof(uint64_t));
  if (result->error_block == NULL) return false;
  result->error_validity = result->error_block;
  result->error_offsets = (int32_t*)(result->error_validity + words);
  result->outcomes = (uint8_t*)(result->error_block + words * (1 + 32) + 1);
  return true;
}

static inline void arroyo_udf_c_fill_error_offsets(arroyo_udf_c_result* result, int64_t row) {
  while (result->error_offsets_written < row)
    result->error_offsets[++result->error_offsets_written] = (int32_t)result->error_text.length;
}

/* A row without a value: null, or an error. Rows come here in rising order. */
ARROYO_UDF_C_COLD ARROYO_UDF_C_UNUSED static void arroyo_udf_c_no_value(arroyo_udf_c_result* result, int64_t row,
                                                                        const char* failure) {
  result->validity[row / 64] &= ~(UINT64_C(1) << (row % 64));
  result->nulls++;
  if (failure == arroyo_udf_null) {
    if (result->nullable) return;
    failure = "the function answered null, and its result is not declared nullable";
  }
  if (result->error_block == NULL && !arroyo_udf_c_make_errors(result)) {
    result->out_of_memory = true;
    return;
  }
  arroyo_udf_c_fill_error_offsets(result, row);
  if (arroyo_udf_c_append(&result->error_text, failure, arroyo_udf_c_utf8_prefix(failure, strlen(failure))) != NULL)
    result->out_of_memory = true;
  arroyo_udf_c_fill_error_offsets(result, row + 1);
  result->error_validity[row / 64] |= UINT64_C(1) << (row % 64);
  result->outcomes[row] = ARROYO_UDF_ERROR;
  result->errors++;
}

static inline void arroyo_udf_c_set_array(struct ArrowArray* array, arroyo_udf_c_result* result, int64_t nulls,
                                          int64_t n_buffers, const void** buffers) {
  memset(array, 0, sizeof *array);
  array->length = result->length;
  array->null_count = nulls;
  array->n_buffers = n_buffers;
  array->buffers = buffers;
  array->release = arroyo_udf_c_release;
  array->private_data = result;
  result->references++;
}

/* From here on the result belongs to whoever holds `array` and its children. */
static inline void arroyo_udf_c_export(arroyo_udf_c_result* result, bool is_text, struct ArrowArray* array) {
  result->value_buffers[0] = result->nulls == 0 ? NULL : result->validity;
  result->value_buffers[1] = result->values;
  /* Some receivers refuse a missing text buffer, even when there is no text: any address will do. */
  result->value_buffers[2] = result->text.data != NULL ? (const void*)result->text.data : (const void*)result;
  arroyo_udf_c_set_array(&result->children[0], result, result->nulls, is_text ? 3 : 2, result->value_buffers);
  if (result->errors != 0) {
    arroyo_udf_c_fill_error_offsets(result, result->length);
    result->outcome_buffers[1] = result->outcomes;
    arroyo_udf_c_set_array(&result->children[1], result, 0, 2, result->outcome_buffers);
    result->error_buffers[0] = result->error_validity;
    result->error_buffers[1] = result->error_offsets;
    result->error_buffers[2] = result->error_text.data != NULL ? (const void*)result->error_text.data : (const void*)result;
    arroyo_udf_c_set_array(&result->children[2], result, result->length - result->errors, 3, result->error_buffers);
  }
  for (int i = 0; i < 3; i++) result->child_list[i] = &result->children[i];
  arroyo_udf_c_set_array(array, result, 0, 1, result->no_buffer);
  array->n_children = result->errors != 0 ? 3 : 1;
  array->children = result->child_list;
}

/* ---- Types: how a value is read from a column and written to a result ------------------------------------------- */

/* One argument of a batch. `outer` is the validity of the struct around all arguments: a null there is a null here. */
typedef struct arroyo_udf_c_column {
  const void* values; /* offsets, if the values are texts */
  const char* text;
  const uint8_t* validity; /* NULL: no nulls */
  const uint8_t* outer;    /* NULL: no nulls */
  int64_t offset;          /* of row 0 in values and validity */
  int64_t outer_offset;
} arroyo_udf_c_column;

typedef struct arroyo_udf_c_sink {
  void* values;
  arroyo_udf_c_buffer* text;
} arroyo_udf_c_sink;

static inline bool arroyo_udf_c_bit(const void* bits, int64_t i) {
  return ((const uint8_t*)bits)[i / 8] >> (i % 8) & 1;
}

static inline bool arroyo_udf_c_is_null(arroyo_udf_c_column column, int64_t row) {
  return (column.validity != NULL && !arroyo_udf_c_bit(column.validity, column.offset + row)) ||
         (column.outer != NULL && !arroyo_udf_c_bit(column.outer, column.outer_offset + row));
}

static inline arroyo_udf_utf8 arroyo_udf_c_view(arroyo_udf_c_column column, int64_t row) {
  const int32_t* const offsets = (const int32_t*)column.values + column.offset + row;
  arroyo_udf_utf8 view;
  view.data = column.text + offsets[0];
  view.length = (size_t)(offsets[1] - offsets[0]);
  return view;
}

static inline const char* arroyo_udf_c_store_bit(arroyo_udf_c_sink sink, int64_t row, bool value) {
  ((uint64_t*)sink.values)[row / 64] |= (uint64_t)value << (row % 64);
  return NULL;
}

static inline arroyo_udf_text arroyo_udf_c_begin_text(arroyo_udf_c_sink sink) {
  arroyo_udf_text text;
  text.buffer = sink.text;
  text.failure = NULL;
  return text;
}

static inline const char* arroyo_udf_c_store_text(arroyo_udf_c_sink sink, int64_t row, arroyo_udf_text out) {
  int32_t* const offsets = (int32_t*)sink.values + row;
  const size_t length = sink.text->length - (size_t)offsets[0];
  if (out.failure != NULL) return out.failure;
  if (length != 0 && arroyo_udf_c_utf8_prefix(sink.text->data + offsets[0], length) != length)
    return "the result is not valid UTF-8";
  offsets[1] = (int32_t)sink.text->length;
  return NULL;
}

static inline void arroyo_udf_c_skip_text(arroyo_udf_c_sink sink, int64_t row) {
  int32_t* const offsets = (int32_t*)sink.values + row;
  sink.text->length = (size_t)offsets[0];
  offsets[1] = offsets[0];
}

/* For both T and nullable_T: names, and what a result needs; `begin`, `store` and `skip` are expressions over `sink`,
 * `row` and `value`. What differs (the argument) is in ARROYO_UDF_C_TYPE_. */
#define ARROYO_UDF_C_WORD(word, type, letter, flag, begin, store, skip)                                       \
  ARROYO_UDF_C_UNUSED static const char arroyo_udf_c_format_##word[] = letter;                                \
  enum { arroyo_udf_c_flags_##word = flag };                                                                  \
  typedef type arroyo_udf_c_out_##word;                                                                       \
  static inline type arroyo_udf_c_begin_##word(arroyo_udf_c_sink sink) {                                      \
    (void)sink;                                                                                               \
    return begin;                                                                                             \
  }                                                                                                           \
  static inline const char* arroyo_udf_c_store_##word(arroyo_udf_c_sink sink, int64_t row, type value) {      \
    return store;                                                                                             \
  }                                                                                                           \
  static inline void arroyo_udf_c_skip_##word(arroyo_udf_c_sink sink, int64_t row) {                          \
    (void)sink;                                                                                               \
    (void)row;                                                                                                \
    skip;                                                                                                     \
  }

#define ARROYO_UDF_C_TYPE_(word, nullable, argument, load, out, letter, begin, store, skip)                   \
  ARROYO_UDF_C_WORD(word, out, letter, 0, begin, store, skip)                                                 \
  ARROYO_UDF_C_WORD(nullable, out, letter, ARROW_FLAG_NULLABLE, begin, store, skip)                           \
  typedef struct arroyo_udf_##nullable {                                                                      \
    argument value;                                                                                           \
    bool is_null;                                                                                             \
  } arroyo_udf_##nullable;                                                                                    \
  typedef argument arroyo_udf_c_parameter_##word;                                                              \
  typedef arroyo_udf_##nullable arroyo_udf_c_parameter_##nullable;                                             \
  static inline argument arroyo_udf_c_load_##word(arroyo_udf_c_column column, int64_t row) { return load; }   \
  static inline arroyo_udf_##nullable arroyo_udf_c_load_##nullable(arroyo_udf_c_column column, int64_t row) { \
    arroyo_udf_##nullable loaded;                                                                             \
    memset(&loaded, 0, sizeof loaded);                                                                        \
    loaded.is_null = arroyo_udf_c_is_null(column, row);                                                       \
    if (!loaded.is_null) loaded.value = load;                                                                 \
    return loaded;                                                                                            \
  }
/* Through this one, because `bool` may be a macro, here and in an author's declaration alike. */
#define ARROYO_UDF_C_TYPE(...) ARROYO_UDF_C_TYPE_(__VA_ARGS__)
#define ARROYO_UDF_C_NUMBER(word, type, letter)                                                               \
  ARROYO_UDF_C_TYPE(word, nullable_##word, type, ((const type*)column.values)[column.offset + row], type, letter, 0, \
                    (((type*)sink.values)[row] = value, (const char*)NULL), ((type*)sink.values)[row] = 0)

ARROYO_UDF_C_NUMBER(int8, int8_t, "c")
ARROYO_UDF_C_NUMBER(int16, int16_t, "s")
ARROYO_UDF_C_NUMBER(int32, int32_t, "i")
ARROYO_UDF_C_NUMBER(int64, int64_t, "l")
ARROYO_UDF_C_NUMBER(uint8, uint8_t, "C")
ARROYO_UDF_C_NUMBER(uint16, uint16_t, "S")
ARROYO_UDF_C_NUMBER(uint32, uint32_t, "I")
ARROYO_UDF_C_NUMBER(uint64, uint64_t, "L")
ARROYO_UDF_C_NUMBER(float32, float, "f")
ARROYO_UDF_C_NUMBER(float64, double, "g")
ARROYO_UDF_C_TYPE(bool, nullable_bool, bool, arroyo_udf_c_bit(column.values, column.offset + row), bool, "b", false,
                  arroyo_udf_c_store_bit(sink, row, value), (void)0)
ARROYO_UDF_C_TYPE(utf8, nullable_utf8, arroyo_udf_utf8, arroyo_udf_c_view(column, row), arroyo_udf_text, "u",
                  arroyo_udf_c_begin_text(sink), arroyo_udf_c_store_text(sink, row, value),
                  arroyo_udf_c_skip_text(sink, row))

/* ---- A call ---------------------------------------------------------------------------------------------------- */

#define ARROYO_UDF_C_MOST 16

struct arroyo_udf_c_async;

typedef struct arroyo_udf_c_function {
  arroyo_udf_function function;
  const struct arroyo_udf_c_async* async; /* NULL for a sync function; the rest is NULL for an async one */
  const struct ArrowSchema* values; /* of results: {value} */
  const struct ArrowSchema* values_and_errors;
  /* Calls the function for rows first ... first + count - 1: for all of them if `wanted` is all ones, else (count is at
   * most 64) for those whose bit is set. */
  void (*rows)(const arroyo_udf_c_column* columns, arroyo_udf_c_result* result, int64_t first, int64_t count,
               uint64_t wanted);
} arroyo_udf_c_function;

typedef struct arroyo_udf_c_plugin {
  const arroyo_udf_descriptor* descriptor;
  const arroyo_udf_c_function* const* functions; /* as many as the descriptor has */
} arroyo_udf_c_plugin;

#define ARROYO_UDF_C_SCHEMA(format, name, flags, n, children) {format, name, NULL, flags, n, children, NULL, NULL, NULL}
ARROYO_UDF_C_UNUSED static const struct ArrowSchema arroyo_udf_c_outcome_schema =
    ARROYO_UDF_C_SCHEMA("C", "outcome", 0, 0, NULL);
ARROYO_UDF_C_UNUSED static const struct ArrowSchema arroyo_udf_c_error_schema =
    ARROYO_UDF_C_SCHEMA("u", "error", ARROW_FLAG_NULLABLE, 0, NULL);

static inline void arroyo_udf_c_release_error(arroyo_udf_error* error) {
  free(error->private_data);
  memset(error, 0, sizeof *error);
}

ARROYO_UDF_C_PRINTF(3, 4) ARROYO_UDF_C_COLD ARROYO_UDF_C_UNUSED static arroyo_udf_status arroyo_udf_c_fail(
    arroyo_udf_error* error, arroyo_udf_status status, const char* format, ...) {
  char text[512];
  va_list arguments;
  if (error == NULL) return status;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  char* const copy = (char*)malloc(strlen(text) + 1);
  error->text = copy == NULL ? "out of memory" : strcpy(copy, text);
  error->private_data = copy;
  error->release = arroyo_udf_c_release_error;
  return status;
}

/* Validity of an array whose rows begin at array->offset + first. False: the array is not to be believed. */
static inline bool arroyo_udf_c_validity(const struct ArrowArray* array, const uint8_t** validity) {
  *validity = array->null_count == 0 ? NULL : (const uint8_t*)array->buffers[0];
  return array->null_count <= 0 || *validity != NULL;
}

/* Looks at one argument before it is believed. NULL: fine; else what is wrong with it. */
static inline const char* arroyo_udf_c_read_column(const struct ArrowArray* batch, const struct ArrowArray* array,
                                                   char format, arroyo_udf_c_column* column) {
  const bool is_text = format == 'u';
  if (array == NULL || array->release == NULL) return "is missing or released";
  if (array->dictionary != NULL) return "is dictionary-encoded: decode it first";
  if (array->n_buffers != (is_text ? 3 : 2) || array->n_children != 0 || array->buffers == NULL)
    return "has not the buffers of its type: send what `describe` names";
  if (array->offset < 0 || array->length < batch->offset + batch->length || array->offset > INT64_MAX - array->length)
    return "is shorter than the batch";
  column->offset = array->offset + batch->offset;
  column->values = array->buffers[1];
  column->text = is_text ? (const char*)array->buffers[2] : NULL;
  if (!arroyo_udf_c_validity(array, &column->validity)) return "has nulls, but no validity buffer";
  if (batch->length == 0) return NULL;
  if (column->values == NULL) return "has no data buffer";
  if (is_text) {
    const int32_t* const offsets = (const int32_t*)column->values + column->offset;
    if (offsets[0] < 0 || offsets[batch->length] < offsets[0]) return "has offsets that fall";
    if (column->text == NULL && offsets[batch->length] != offsets[0]) return "has no data buffer";
  }
  return NULL;
}

/* `count` bits (1 to 64) from bit `first` on, never reading a byte beyond them; higher bits are zero. */
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

/* Which rows can be called: those without a null in an argument that is not nullable (rule F3). */
static inline void arroyo_udf_c_call(const arroyo_udf_c_function* function, const arroyo_udf_c_column* columns,
                                     arroyo_udf_c_result* result) {
  const uint8_t* masks[ARROYO_UDF_C_MOST + 1];
  int64_t offsets[ARROYO_UDF_C_MOST + 1];
  int n_masks = 0;
  bool outer = false; /* the struct's own validity counts once */
  for (int64_t i = 0; i < function->function.arguments->n_children; i++) {
    if (function->function.arguments->children[i]->flags & ARROW_FLAG_NULLABLE) continue;
    if (columns[i].validity != NULL) {
      masks[n_masks] = columns[i].validity;
      offsets[n_masks++] = columns[i].offset;
    }
    if (columns[i].outer != NULL && !outer) {
      masks[n_masks] = columns[i].outer;
      offsets[n_masks++] = columns[i].outer_offset;
      outer = true;
    }
  }
  if (n_masks == 0) {
    memset(result->validity, 0xFF, (size_t)arroyo_udf_c_words(result->length) * 8);
    function->rows(columns, result, 0, result->length, UINT64_MAX);
    return;
  }
  int64_t begin = 0; /* rows from here to `row` are all wanted, and not called yet */
  for (int64_t row = 0; row < result->length; row += 64) {
    const int64_t count = result->length - row < 64 ? result->length - row : 64;
    const uint64_t all = UINT64_MAX >> (64 - count);
    uint64_t wanted = all;
    for (int i = 0; i < n_masks; i++) wanted &= arroyo_udf_c_bits(masks[i], offsets[i] + row, count);
    result->validity[row / 64] = wanted;
    if (wanted == all) continue;
    if (begin < row) function->rows(columns, result, begin, row - begin, UINT64_MAX);
    function->rows(columns, result, row, count, wanted);
    result->nulls += count - __builtin_popcountll(wanted);
    begin = row + count;
  }
  if (begin < result->length) function->rows(columns, result, begin, result->length - begin, UINT64_MAX);
}

static inline arroyo_udf_status arroyo_udf_c_run_function(const arroyo_udf_c_plugin* plugin, uint32_t number,
                                                          struct ArrowArray* batch, struct ArrowArray* results,
                                                          const struct ArrowSchema** schema, arroyo_udf_error* error) {
  if (number >= plugin->descriptor->n_functions)
    return arroyo_udf_c_fail(error, ARROYO_UDF_INVALID_ARGUMENT,
                             "plugin %s has %d functions, there is no number %u", ARROYO_UDF_PLUGIN_NAME,
                             (int)plugin->descriptor->n_functions, (unsigned)number);
  const arroyo_udf_c_function* const function = plugin->functions[number];
  const char* const name = function->function.name;
  const struct ArrowSchema* const arguments = function->function.arguments;
  arroyo_udf_c_column columns[ARROYO_UDF_C_MOST];
  const uint8_t* outer;
  if (function->async != NULL)
    return arroyo_udf_c_fail(error, ARROYO_UDF_NOT_IMPLEMENTED,
                             "plugin %s, function %s: run is not for this kind of function; start an async function",
                             ARROYO_UDF_PLUGIN_NAME, name);
  if (batch == NULL || batch->release == NULL || results == NULL || schema == NULL)
    return arroyo_udf_c_fail(error, ARROYO_UDF_INVALID_ARGUMENT,
                             "plugin %s, function %s: arguments, results or schema is missing or released",
                             ARROYO_UDF_PLUGIN_NAME, name);
  if (batch->n_children != arguments->n_children || batch->children == NULL || batch->n_buffers != 1 ||
      batch->buffers == NULL)
    return arroyo_udf_c_fail(error, ARROYO_UDF_INVALID_ARGUMENT,
                             "plugin %s, function %s: the batch must be a struct array with %lld children, one per argument",
                             ARROYO_UDF_PLUGIN_NAME, name, (long long)arguments->n_children);
  if (batch->length < 0 || batch->offset < 0 || batch->offset > INT64_MAX - batch->length ||
      !arroyo_udf_c_validity(batch, &outer))
    return arroyo_udf_c_fail(error, ARROYO_UDF_INVALID_ARGUMENT,
                             "plugin %s, function %s: the batch has a negative length or offset, or nulls without a "
                             "validity buffer",
                             ARROYO_UDF_PLUGIN_NAME, name);
  for (int64_t i = 0; i < arguments->n_children; i++) {
    const char* const wrong =
        arroyo_udf_c_read_column(batch, batch->children[i], arguments->children[i]->format[0], &columns[i]);
    if (wrong != NULL)
      return arroyo_udf_c_fail(error, ARROYO_UDF_INVALID_ARGUMENT, "plugin %s, function %s: argument %s %s",
                               ARROYO_UDF_PLUGIN_NAME, name, arguments->children[i]->name, wrong);
    columns[i].outer = outer;
    columns[i].outer_offset = batch->offset;
  }
  arroyo_udf_c_result* const result = arroyo_udf_c_new_result(batch->length, function->function.returns);
  if (result != NULL) arroyo_udf_c_call(function, columns, result);
  if (result == NULL || result->out_of_memory) {
    if (result != NULL) arroyo_udf_c_free(result);
    return arroyo_udf_c_fail(error, ARROYO_UDF_INTERNAL, "plugin %s, function %s: out of memory",
                             ARROYO_UDF_PLUGIN_NAME, name);
  }
  *schema = result->errors != 0 ? function->values_and_errors : function->values;
  arroyo_udf_c_export(result, function->function.returns->format[0] == 'u', results);
  batch->release(batch);
  return ARROYO_UDF_OK;
}

/* ---- Declarations: macros -------------------------------------------------------------------------------------- */

/* ARROYO_UDF_C_EACH(m, s, x, a, b, ...): m(x, a) s() m(x, b) s() ... */
#define ARROYO_UDF_C_EACH_1(m, s, x, a) m(x, a)
#define ARROYO_UDF_C_EACH_2(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_1(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_3(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_2(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_4(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_3(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_5(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_4(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_6(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_5(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_7(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_6(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_8(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_7(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_9(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_8(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_10(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_9(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_11(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_10(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_12(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_11(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_13(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_12(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_14(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_13(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_15(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_14(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_16(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_15(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, count, ...) count
#define ARROYO_UDF_C_COUNT(...) \
  ARROYO_UDF_C_COUNT_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define ARROYO_UDF_C_PASTE_(a, b) a##b
#define ARROYO_UDF_C_PASTE(a, b) ARROYO_UDF_C_PASTE_(a, b)
#define ARROYO_UDF_C_EACH(m, s, x, ...) \
  ARROYO_UDF_C_PASTE(ARROYO_UDF_C_EACH_, ARROYO_UDF_C_COUNT(__VA_ARGS__))(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_COMMA() ,
#define ARROYO_UDF_C_NOTHING()
#define ARROYO_UDF_C_TYPE_OF(type, name) type
#define ARROYO_UDF_C_NAME_OF(type, name) name
#define ARROYO_UDF_C_STRING_(text) #text
#define ARROYO_UDF_C_STRING(text) ARROYO_UDF_C_STRING_(text)
/* ARROYO_UDF_C_OF(load, (int64, distance)): arroyo_udf_c_load_int64 */
#define ARROYO_UDF_C_OF(what, argument) ARROYO_UDF_C_PASTE(arroyo_udf_c_##what##_, ARROYO_UDF_C_TYPE_OF argument)
#define ARROYO_UDF_C_COLUMN_OF(argument) ARROYO_UDF_C_PASTE(arroyo_udf_c_column_, ARROYO_UDF_C_NAME_OF argument)
#define ARROYO_UDF_C_SCHEMA_OF(function, argument) \
  ARROYO_UDF_C_PASTE(arroyo_udf_c_##function##_argument_, ARROYO_UDF_C_NAME_OF argument)

/* What becomes of each argument: a parameter, a constant schema, its address, a local column, a value in the call. */
#define ARROYO_UDF_C_PARAMETER(function, argument) ARROYO_UDF_C_OF(parameter, argument) ARROYO_UDF_C_NAME_OF argument
#define ARROYO_UDF_C_ARGUMENT(function, argument)                                                   \
  static const struct ArrowSchema ARROYO_UDF_C_SCHEMA_OF(function, argument) =                      \
      ARROYO_UDF_C_SCHEMA(ARROYO_UDF_C_OF(format, argument),                                        \
                          ARROYO_UDF_C_STRING(ARROYO_UDF_C_NAME_OF argument), ARROYO_UDF_C_OF(flags, argument), 0, NULL);
#define ARROYO_UDF_C_CHILD(function, argument) (struct ArrowSchema*)&ARROYO_UDF_C_SCHEMA_OF(function, argument)
#define ARROYO_UDF_C_COLUMN(function, argument) \
  const arroyo_udf_c_column ARROYO_UDF_C_COLUMN_OF(argument) = *columns++;
#define ARROYO_UDF_C_VALUE(function, argument) ARROYO_UDF_C_OF(load, argument)(ARROYO_UDF_C_COLUMN_OF(argument), row)

#define ARROYO_UDF_C_ROW(name, result_type, ...)                                                                  \
  {                                                                                                               \
    arroyo_udf_c_out_##result_type value = arroyo_udf_c_begin_##result_type(sink);                                \
    const char* failure =                                                                                         \
        name(ARROYO_UDF_C_EACH(ARROYO_UDF_C_VALUE, ARROYO_UDF_C_COMMA, name, __VA_ARGS__), &value);               \
    if (failure == NULL) failure = arroyo_udf_c_store_##result_type(sink, row, value);                            \
    if (failure != NULL) {                                                                                        \
      arroyo_udf_c_skip_##result_type(sink, row);                                                                 \
      arroyo_udf_c_no_value(result, row, failure);                                                                \
    }                                                                                                             \
  }

/* The types of a function, as its description has them. */
#define ARROYO_UDF_C_SIGNATURE(name, result_type, ...)                                                            \
  ARROYO_UDF_C_EACH(ARROYO_UDF_C_ARGUMENT, ARROYO_UDF_C_NOTHING, name, __VA_ARGS__)                               \
  static struct ArrowSchema* const arroyo_udf_c_##name##_children[] = {                                           \
      ARROYO_UDF_C_EACH(ARROYO_UDF_C_CHILD, ARROYO_UDF_C_COMMA, name, __VA_ARGS__)};                              \
  static const struct ArrowSchema arroyo_udf_c_##name##_arguments = ARROYO_UDF_C_SCHEMA(                          \
      "+s", "", 0, ARROYO_UDF_C_COUNT(__VA_ARGS__), (struct ArrowSchema**)arroyo_udf_c_##name##_children);        \
  static const struct ArrowSchema arroyo_udf_c_##name##_returns =                                                 \
      ARROYO_UDF_C_SCHEMA(arroyo_udf_c_format_##result_type, "", arroyo_udf_c_flags_##result_type, 0, NULL);

#define ARROYO_UDF_C_FUNCTION(name, result_type, ...)                                                             \
  const char* name(ARROYO_UDF_C_EACH(ARROYO_UDF_C_PARAMETER, ARROYO_UDF_C_COMMA, name, __VA_ARGS__),              \
                   arroyo_udf_c_out_##result_type* out);                                                          \
  ARROYO_UDF_C_SIGNATURE(name, result_type, __VA_ARGS__)                                                          \
  static const struct ArrowSchema arroyo_udf_c_##name##_value =                                                   \
      ARROYO_UDF_C_SCHEMA(arroyo_udf_c_format_##result_type, "value", ARROW_FLAG_NULLABLE, 0, NULL);              \
  static struct ArrowSchema* const arroyo_udf_c_##name##_fields[] = {                                             \
      (struct ArrowSchema*)&arroyo_udf_c_##name##_value, (struct ArrowSchema*)&arroyo_udf_c_outcome_schema,       \
      (struct ArrowSchema*)&arroyo_udf_c_error_schema};                                                           \
  static const struct ArrowSchema arroyo_udf_c_##name##_values =                                                  \
      ARROYO_UDF_C_SCHEMA("+s", "", 0, 1, (struct ArrowSchema**)arroyo_udf_c_##name##_fields);                    \
  static const struct ArrowSchema arroyo_udf_c_##name##_values_and_errors =                                       \
      ARROYO_UDF_C_SCHEMA("+s", "", 0, 3, (struct ArrowSchema**)arroyo_udf_c_##name##_fields);                    \
  static void arroyo_udf_c_##name##_rows(const arroyo_udf_c_column* columns, arroyo_udf_c_result* result,         \
                                         int64_t first, int64_t count, uint64_t wanted) {                         \
    ARROYO_UDF_C_EACH(ARROYO_UDF_C_COLUMN, ARROYO_UDF_C_NOTHING, name, __VA_ARGS__)                               \
    const arroyo_udf_c_sink sink = {result->values, &result->text};                                               \
    if (wanted == UINT64_MAX) {                                                                                   \
      for (int64_t row = first; row < first + count; row++) ARROYO_UDF_C_ROW(name, result_type, __VA_ARGS__)      \
      return;                                                                                                     \
    }                                                                                                             \
    for (int64_t row = first; row < first + count; row++)                                                         \
      if (wanted >> (row - first) & 1)                                                                            \
        ARROYO_UDF_C_ROW(name, result_type, __VA_ARGS__)                                                          \
      else                                                                                                        \
        arroyo_udf_c_skip_##result_type(sink, row);                                                               \
  }                                                                                                               \
  static const arroyo_udf_c_function arroyo_udf_c_##name##_function = {                                           \
      {#name, ARROYO_UDF_SYNC, 0, &arroyo_udf_c_##name##_arguments, &arroyo_udf_c_##name##_returns, NULL},        \
      NULL,                                                                                                       \
      &arroyo_udf_c_##name##_values,                                                                              \
      &arroyo_udf_c_##name##_values_and_errors,                                                                   \
      arroyo_udf_c_##name##_rows}
/* Through this one, as with types: `bool` may be a macro. */
#define ARROYO_UDF_C_FUNCTION_(name, ...) ARROYO_UDF_C_FUNCTION(name, __VA_ARGS__)

/* ARROYO_UDF_FUNCTION(name, result type, (type, argument name), ...); behind the function's definition. */
#define ARROYO_UDF_FUNCTION(name, result_type, ...) ARROYO_UDF_C_FUNCTION_(name, result_type, __VA_ARGS__)

#define ARROYO_UDF_C_FUNCTION_OF(x, name) &arroyo_udf_c_##name##_function
#define ARROYO_UDF_C_DESCRIPTION_OF(x, name) &arroyo_udf_c_##name##_function.function

/* ARROYO_UDF_PLUGIN(name, ...); once, at the end: the functions in the order in which hosts see them. */
#define ARROYO_UDF_PLUGIN(...)                                                                                    \
  static const arroyo_udf_c_function* const arroyo_udf_c_functions[] = {                                          \
      ARROYO_UDF_C_EACH(ARROYO_UDF_C_FUNCTION_OF, ARROYO_UDF_C_COMMA, 0, __VA_ARGS__)};                           \
  static const arroyo_udf_function* const arroyo_udf_c_descriptions[] = {                                         \
      ARROYO_UDF_C_EACH(ARROYO_UDF_C_DESCRIPTION_OF, ARROYO_UDF_C_COMMA, 0, __VA_ARGS__)};                        \
  static const arroyo_udf_descriptor arroyo_udf_c_descriptor = {sizeof(arroyo_udf_descriptor),                    \
                                                                ARROYO_UDF_PLUGIN_NAME,                           \
                                                                "c",                                              \
                                                                ARROYO_UDF_TOOLKIT_VERSION,                       \
                                                                ARROYO_UDF_PLUGIN_HASH,                           \
                                                                ARROYO_UDF_C_COUNT(__VA_ARGS__),                  \
                                                                arroyo_udf_c_descriptions};                       \
  ARROYO_UDF_C_LINKAGE const arroyo_udf_c_plugin arroyo_udf_c_this_plugin = {&arroyo_udf_c_descriptor,            \
                                                                             arroyo_udf_c_functions};             \
  ARROYO_UDF_C_LINKAGE arroyo_udf_status arroyo_udf_c_run(uint32_t function, struct ArrowArray* arguments,        \
                                                          struct ArrowArray* results,                             \
                                                          const struct ArrowSchema** schema,                      \
                                                          arroyo_udf_error* error) {                              \
    return arroyo_udf_c_run_function(&arroyo_udf_c_this_plugin, function, arguments, results, schema, error);     \
  }                                                                                                               \
  ARROYO_UDF_C_TABLE

/* ---- The table of a plugin that has only sync functions; with arroyo_udf_async.h the runtime has the table -------- */

#define ARROYO_UDF_C_LINKAGE static
#define ARROYO_UDF_C_TABLE                                                                             \
  static const arroyo_udf_descriptor* arroyo_udf_c_describe(void) { return &arroyo_udf_c_descriptor; } \
  const arroyo_udf_table arroyo_udf_plugin = {                                                         \
      ARROYO_UDF_MAGIC,      ARROYO_UDF_ABI_VERSION, sizeof(arroyo_udf_table),                         \
      arroyo_udf_c_describe, arroyo_udf_c_run,       arroyo_udf_c_no_start,                            \
      ARROYO_UDF_C_SLOTS(ARROYO_UDF_C_NO_SLOT_OF)}

static inline arroyo_udf_status arroyo_udf_c_no_async(arroyo_udf_error* error) {
  return arroyo_udf_c_fail(error, ARROYO_UDF_NOT_IMPLEMENTED,
                           "plugin %s is written in C and has only sync functions: call them through run",
                           ARROYO_UDF_PLUGIN_NAME);
}
static inline arroyo_udf_status arroyo_udf_c_no_start(uint32_t function, const arroyo_udf_options* options,
                                                      arroyo_udf_handle* handle, arroyo_udf_error* error) {
  (void)function, (void)options, (void)handle;
  return arroyo_udf_c_no_async(error);
}
#define ARROYO_UDF_C_NO_SLOT_OF(slot, parameters, arguments) arroyo_udf_c_no_##slot,
#define ARROYO_UDF_C_NO_SLOT(slot, parameters, arguments) \
  static inline arroyo_udf_status arroyo_udf_c_no_##slot parameters { return arroyo_udf_c_no_async(error); }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
ARROYO_UDF_C_SLOTS(ARROYO_UDF_C_NO_SLOT)
#pragma GCC diagnostic pop

#endif /* ARROYO_UDF_PLUGIN_H */
