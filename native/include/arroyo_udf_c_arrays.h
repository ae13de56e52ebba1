/* arroyo_udf_c_arrays.h: Arrow arrays for functions in C: views of a batch's columns, and the block that holds its
 * results. A part of arroyo_udf_plugin.h; knows nothing of functions and tables.
 *
 * GUARANTEES  Columns are checked before they are read, by the rules of the other languages: an array is refused if its
 *             numbers of buffers and children, its length and offset, its last offset or a missing buffer do not fit
 *             its type; a row is an error if its offsets do not ascend, end after the last one, or its text is not
 *             UTF-8. Buffers may be unaligned. No byte beyond a buffer is read.
 *             The arrays of a result can be released in any order, from any thread.
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

/* ---- Texts ----------------------------------------------------------------------------------------------------- */

typedef struct arroyo_udf_c_buffer {
  char* data;
  size_t length;
  size_t capacity;
} arroyo_udf_c_buffer;

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
  const void* values; /* of texts: their offsets; may be unaligned */
  const char* text;
  int32_t text_length; /* the last offset of the array: no text reaches beyond it */
  int32_t ascii_start; /* texts from here to ascii_end are known to be ASCII */
  int32_t ascii_end;
  const uint8_t* validity; /* NULL: no nulls */
  const uint8_t* outer;    /* NULL: no nulls */
  int64_t offset;          /* of row 0 in values and validity */
  int64_t outer_offset;
} arroyo_udf_c_column;

static inline bool arroyo_udf_c_bit(const void* bits, int64_t i) {
  return ((const uint8_t*)bits)[i / 8] >> (i % 8) & 1;
}

static inline bool arroyo_udf_c_is_null(arroyo_udf_c_column column, int64_t row) {
  return (column.validity != NULL && !arroyo_udf_c_bit(column.validity, column.offset + row)) ||
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

/* Checks one argument and fills in `column`. Returns NULL, or what is wrong with the argument. */
static inline const char* arroyo_udf_c_read_column(const struct ArrowArray* batch, const struct ArrowArray* array,
                                                   char format, arroyo_udf_c_column* column) {
  const bool is_text = format == 'u';
  if (array == NULL || array->release == NULL) return "is missing or released";
  if (array->dictionary != NULL) return "is dictionary-encoded: decode it first";
  if (array->n_buffers != (is_text ? 3 : 2) || array->n_children != 0 || array->buffers == NULL)
    return "does not have the buffers of its type: send what `describe` names";
  /* No memory holds more rows than this, so what is computed from them does not overflow. */
  if (array->length < 0 || array->offset < 0 || array->offset > INT64_MAX / 16 ||
      array->length > INT64_MAX / 16 - 1 - array->offset)
    return "has an invalid length or offset";
  if (array->length < batch->offset + batch->length) return "is shorter than the batch";
  column->offset = array->offset + batch->offset;
  column->values = array->buffers[1];
  column->text = "";
  column->text_length = 0;
  column->ascii_start = column->ascii_end = 0;
  if (!arroyo_udf_c_validity(array, &column->validity)) return "has nulls, but no validity buffer";
  if (array->length == 0) return NULL;
  if (column->values == NULL) return "has no data buffer";
  if (!is_text) return NULL;
  column->text_length = arroyo_udf_c_offset(column->values, array->offset + array->length);
  if (column->text_length < 0) return "has a negative last offset";
  if (column->text_length == 0) return NULL;
  if (array->buffers[2] == NULL) return "has no data buffer";
  column->text = (const char*)array->buffers[2];
  /* Mostly, this saves the check of each text. */
  const int32_t first = arroyo_udf_c_offset(column->values, column->offset);
  const int32_t end = arroyo_udf_c_offset(column->values, column->offset + batch->length);
  if (0 <= first && first <= end && end <= column->text_length &&
      arroyo_udf_c_is_ascii(column->text + first, (size_t)(end - first))) {
    column->ascii_start = first;
    column->ascii_end = end;
  }
  return NULL;
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

/* ---- The results of a batch ------------------------------------------------------------------------------------ */

/* One block holds this struct, then validity, then values or offsets. Texts and errors, if any, have blocks of their
 * own. A receiver may move the children out of the struct array and release all of them in any order, so `references`
 * counts them. */
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
  void* values; /* of texts: their offsets */
  arroyo_udf_c_buffer text;

  bool nullable; /* the result type allows null */
  bool out_of_memory;
  uint64_t* error_block; /* holds the next three; NULL until a row fails */
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

/* Bits per value (for texts: per offset), by the first letter of the Arrow format. */
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
  /* Whole words of 64 rows; one more offset than texts. Buffers are aligned to 64 bytes, as Arrow recommends. */
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
  /* Bits are set one by one; the first offset is zero. */
  if (returns->format[0] == 'b') memset(result->values, 0, (size_t)value_words * 8);
  if (returns->format[0] == 'u') memset(result->values, 0, sizeof(int32_t));
  return result;
}

static inline bool arroyo_udf_c_make_errors(arroyo_udf_c_result* result) {
  const int64_t words = arroyo_udf_c_words(result->length);
  /* Per row 1 bit of validity, 32 of offset and 8 of outcome; and one more offset. */
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

/* Records a row without a value: null or an error. Rows must come in ascending order. The text of an error has the one
 * form of all languages: "plugin.function, row 7: text". */
ARROYO_UDF_C_COLD ARROYO_UDF_C_UNUSED static void arroyo_udf_c_no_value(arroyo_udf_c_result* result,
                                                                        const char* function, int64_t row,
                                                                        const char* failure) {
  char number[32];
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
  snprintf(number, sizeof number, ", row %lld: ", (long long)row);
  if (arroyo_udf_c_append(&result->error_text, function, strlen(function)) != NULL ||
      arroyo_udf_c_append(&result->error_text, number, strlen(number)) != NULL ||
      arroyo_udf_c_append(&result->error_text, failure, arroyo_udf_c_utf8_prefix(failure, strlen(failure))) != NULL)
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

/* Moves the result into `array`: releasing the array and its children frees it. */
static inline void arroyo_udf_c_export(arroyo_udf_c_result* result, bool is_text, struct ArrowArray* array) {
  result->value_buffers[0] = result->nulls == 0 ? NULL : result->validity;
  result->value_buffers[1] = result->values;
  /* Some receivers refuse a NULL text buffer, even if there is no text: any address will do. */
  result->value_buffers[2] = result->text.data != NULL ? (const void*)result->text.data : (const void*)result;
  arroyo_udf_c_set_array(&result->children[0], result, result->nulls, is_text ? 3 : 2, result->value_buffers);
  if (result->errors != 0) {
    arroyo_udf_c_fill_error_offsets(result, result->length);
    result->outcome_buffers[1] = result->outcomes;
    arroyo_udf_c_set_array(&result->children[1], result, 0, 2, result->outcome_buffers);
    result->error_buffers[0] = result->error_validity;
    result->error_buffers[1] = result->error_offsets;
    result->error_buffers[2] =
        result->error_text.data != NULL ? (const void*)result->error_text.data : (const void*)result;
    arroyo_udf_c_set_array(&result->children[2], result, result->length - result->errors, 3, result->error_buffers);
  }
  for (int i = 0; i < 3; i++) result->child_list[i] = &result->children[i];
  arroyo_udf_c_set_array(array, result, 0, 1, result->no_buffer);
  array->n_children = result->errors != 0 ? 3 : 1;
  array->children = result->child_list;
}

#endif /* ARROYO_UDF_C_ARRAYS_H */
