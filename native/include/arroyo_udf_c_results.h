/* arroyo_udf_c_results.h: the block that holds the results of a batch, and how it goes out. A part of
 * arroyo_udf_plugin.h.
 *
 * GUARANTEES  The arrays of a result can be released in any order, from any thread. */
#ifndef ARROYO_UDF_C_RESULTS_H
#define ARROYO_UDF_C_RESULTS_H

#ifndef ARROYO_UDF_PLUGIN_H
#error "include arroyo_udf_plugin.h, of which this is a part"
#endif

/* One block holds this struct, then validity, then values or offsets. Texts, rows of lists and errors, if any, have
 * blocks of their own. A receiver may move the children out of the struct array and release all of them in any order,
 * so `references` counts them. */
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
  void* values; /* of texts, states and lists: their offsets */
  arroyo_udf_c_buffer text; /* or the bytes of states */
  arroyo_udf_c_rows* rows; /* of lists: their items; else NULL */

  void* caller;  /* for the one who calls rows; not used here */
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
  arroyo_udf_c_free_rows(result->rows);
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

static inline arroyo_udf_c_result* arroyo_udf_c_new_result(int64_t length, const struct ArrowSchema* returns) {
  const char format = returns->format[0];
  const int64_t words = arroyo_udf_c_words(length);
  /* Whole words of 64 rows; one more offset than texts. Buffers are aligned to 64 bytes, as Arrow recommends. */
  const int64_t value_words = (words + arroyo_udf_c_has_offsets(format)) * arroyo_udf_c_value_bits(format);
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
  if (format == 'b') memset(result->values, 0, (size_t)value_words * 8);
  if (arroyo_udf_c_has_offsets(format)) memset(result->values, 0, sizeof(int32_t));
  if (format == '+' && (result->rows = arroyo_udf_c_new_rows(returns->children[0])) == NULL) {
    free(result);
    return NULL;
  }
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

/* Records a row that has failed. Rows must come in ascending order. The text has the one form of all languages:
 * "plugin.function, row 7: text". */
ARROYO_UDF_C_COLD ARROYO_UDF_C_UNUSED static void arroyo_udf_c_failed(arroyo_udf_c_result* result, const char* function,
                                                                      int64_t row, const char* failure, size_t length) {
  char number[32];
  result->validity[row / 64] &= ~(UINT64_C(1) << (row % 64));
  result->nulls++;
  if (result->error_block == NULL && !arroyo_udf_c_make_errors(result)) {
    result->out_of_memory = true;
    return;
  }
  arroyo_udf_c_fill_error_offsets(result, row);
  snprintf(number, sizeof number, ", row %lld: ", (long long)row);
  if (arroyo_udf_c_append(&result->error_text, function, strlen(function)) != NULL ||
      arroyo_udf_c_append(&result->error_text, number, strlen(number)) != NULL ||
      arroyo_udf_c_append(&result->error_text, failure, arroyo_udf_c_utf8_prefix(failure, length)) != NULL)
    result->out_of_memory = true;
  arroyo_udf_c_fill_error_offsets(result, row + 1);
  result->error_validity[row / 64] |= UINT64_C(1) << (row % 64);
  result->outcomes[row] = ARROYO_UDF_ERROR;
  result->errors++;
}

/* Records a row whose value is null. */
static inline void arroyo_udf_c_set_null(arroyo_udf_c_result* result, int64_t row) {
  result->validity[row / 64] &= ~(UINT64_C(1) << (row % 64));
  result->nulls++;
}

/* Records a row without a value: null or an error. Rows must come in ascending order. */
ARROYO_UDF_C_COLD ARROYO_UDF_C_UNUSED static void arroyo_udf_c_no_value(arroyo_udf_c_result* result,
                                                                        const char* function, int64_t row,
                                                                        const char* failure) {
  if (failure == arroyo_udf_null && result->nullable) {
    arroyo_udf_c_set_null(result, row);
    return;
  }
  if (failure == arroyo_udf_null) failure = "the function answered null, and its result is not declared nullable";
  arroyo_udf_c_failed(result, function, row, failure, strlen(failure));
}

static inline void arroyo_udf_c_set_array(struct ArrowArray* array, arroyo_udf_c_result* result, int64_t length,
                                          int64_t nulls, int64_t n_buffers, const void** buffers) {
  memset(array, 0, sizeof *array);
  array->length = length;
  array->null_count = nulls;
  array->n_buffers = n_buffers;
  array->buffers = buffers;
  array->release = arroyo_udf_c_release;
  array->private_data = result;
  result->references++;
}

/* Some receivers refuse a NULL buffer of values or texts, even if there are none: any address will do. */
static inline const void* arroyo_udf_c_data(const arroyo_udf_c_buffer* buffer) {
  return buffer->data != NULL ? (const void*)buffer->data : (const void*)buffer;
}

static inline void arroyo_udf_c_export_rows(arroyo_udf_c_result* result, arroyo_udf_c_rows* rows) {
  for (int64_t i = 0; i < rows->type->n_children; i++) {
    arroyo_udf_c_growing* const column = &rows->columns[i];
    const bool nullable = column->validity.length > 0;
    column->buffers[0] = nullable ? column->validity.data : NULL;
    column->buffers[1] = arroyo_udf_c_data(&column->values);
    column->buffers[2] = arroyo_udf_c_data(&column->text);
    arroyo_udf_c_set_array(&column->array, result, rows->length, nullable ? -1 : 0,
                           rows->type->children[i]->format[0] == 'u' ? 3 : 2, column->buffers);
    rows->column_list[i] = &column->array;
  }
  arroyo_udf_c_set_array(&rows->array, result, rows->length, 0, 1, rows->no_buffer);
  rows->array.n_children = rows->type->n_children;
  rows->array.children = rows->column_list;
  rows->row_list[0] = &rows->array;
}

/* Moves the result into `array`: releasing the array and its children frees it. */
static inline void arroyo_udf_c_export(arroyo_udf_c_result* result, char format, struct ArrowArray* array) {
  struct ArrowArray* const value = &result->children[0];
  result->value_buffers[0] = result->nulls == 0 ? NULL : result->validity;
  result->value_buffers[1] = result->values;
  result->value_buffers[2] = arroyo_udf_c_data(&result->text);
  arroyo_udf_c_set_array(value, result, result->length, result->nulls, arroyo_udf_c_has_bytes(format) ? 3 : 2,
                         result->value_buffers);
  if (result->rows != NULL) {
    arroyo_udf_c_export_rows(result, result->rows);
    value->n_children = 1;
    value->children = result->rows->row_list;
  }
  if (result->errors != 0) {
    arroyo_udf_c_fill_error_offsets(result, result->length);
    result->outcome_buffers[1] = result->outcomes;
    arroyo_udf_c_set_array(&result->children[1], result, result->length, 0, 2, result->outcome_buffers);
    result->error_buffers[0] = result->error_validity;
    result->error_buffers[1] = result->error_offsets;
    result->error_buffers[2] = arroyo_udf_c_data(&result->error_text);
    arroyo_udf_c_set_array(&result->children[2], result, result->length, result->length - result->errors, 3,
                           result->error_buffers);
  }
  for (int i = 0; i < 3; i++) result->child_list[i] = &result->children[i];
  arroyo_udf_c_set_array(array, result, result->length, 0, 1, result->no_buffer);
  array->n_children = result->errors != 0 ? 3 : 1;
  array->children = result->child_list;
}

#endif /* ARROYO_UDF_C_RESULTS_H */
