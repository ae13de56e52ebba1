/* arroyo_udf_c_rows.h: the rows that a table function gives for a batch: columns that grow. A part of
 * arroyo_udf_plugin.h. The rows of one call lie behind those of the calls before it; if a call fails, its rows are
 * taken back. */
#ifndef ARROYO_UDF_C_ROWS_H
#define ARROYO_UDF_C_ROWS_H

#ifndef ARROYO_UDF_PLUGIN_H
#error "include arroyo_udf_plugin.h, of which this is a part"
#endif

#define ARROYO_UDF_C_MOST_ARGUMENTS 16

typedef struct arroyo_udf_c_growing {
  arroyo_udf_c_buffer validity; /* empty if the column is not nullable */
  arroyo_udf_c_buffer values;   /* of texts: their offsets */
  arroyo_udf_c_buffer text;
  const void* buffers[3];
  struct ArrowArray array;
} arroyo_udf_c_growing;

typedef struct arroyo_udf_c_rows {
  int64_t length;
  const struct ArrowSchema* type; /* a struct of the columns */
  const void* no_buffer[1];
  struct ArrowArray array;
  struct ArrowArray* row_list[1];
  struct ArrowArray* column_list[ARROYO_UDF_C_MOST_ARGUMENTS];
  arroyo_udf_c_growing columns[ARROYO_UDF_C_MOST_ARGUMENTS];
} arroyo_udf_c_rows;

static inline void arroyo_udf_c_free_rows(arroyo_udf_c_rows* rows) {
  if (rows == NULL) return;
  for (int64_t i = 0; i < rows->type->n_children; i++) {
    free(rows->columns[i].validity.data);
    free(rows->columns[i].values.data);
    free(rows->columns[i].text.data);
  }
  free(rows);
}

/* NULL: no memory. */
static inline arroyo_udf_c_rows* arroyo_udf_c_new_rows(const struct ArrowSchema* type) {
  const int32_t first_offset = 0;
  arroyo_udf_c_rows* const rows = (arroyo_udf_c_rows*)calloc(1, sizeof *rows);
  if (rows == NULL) return NULL;
  rows->type = type;
  for (int64_t i = 0; i < type->n_children; i++) {
    if (type->children[i]->format[0] == 'u' &&
        arroyo_udf_c_append(&rows->columns[i].values, (const char*)&first_offset, sizeof first_offset) != NULL) {
      arroyo_udf_c_free_rows(rows);
      return NULL;
    }
  }
  return rows;
}

/* Bits per value (for texts and lists: per offset), by the first letter of the Arrow format. */
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
    case 'z':
    case '+':
      return 32;
    default:
      return 64;
  }
}

/* Takes back the rows from number `length` on, also a half one. */
static inline void arroyo_udf_c_take_back(arroyo_udf_c_rows* rows, int64_t length) {
  rows->length = length;
  for (int64_t i = 0; i < rows->type->n_children; i++) {
    arroyo_udf_c_growing* const column = &rows->columns[i];
    const char format = rows->type->children[i]->format[0];
    const size_t bytes = (size_t)((length * arroyo_udf_c_value_bits(format) + 7) / 8);
    column->values.length = bytes;
    if (column->validity.length > 0) column->validity.length = (size_t)(length + 7) / 8;
    if (format != 'u') continue;
    column->values.length += sizeof(int32_t);
    column->text.length = (size_t)arroyo_udf_c_offset(column->values.data, length);
  }
}

/* ---- One value of row `row`, which is the last one. NULL, or why there is none ----------------------------------- */

static inline const char* arroyo_udf_c_put(arroyo_udf_c_growing* column, const void* value, size_t bytes) {
  return arroyo_udf_c_append(&column->values, (const char*)value, bytes);
}

static inline const char* arroyo_udf_c_put_bit(arroyo_udf_c_buffer* bits, int64_t row, bool bit) {
  if (row % 8 == 0) {
    const char* const failure = arroyo_udf_c_append(bits, "", 1);
    if (failure != NULL) return failure;
  }
  /* It may have been set for a row that was taken back. */
  unsigned char* const byte = (unsigned char*)bits->data + row / 8;
  *byte = (unsigned char)((*byte & ~(1u << (row % 8))) | (unsigned)bit << (row % 8));
  return NULL;
}

static inline const char* arroyo_udf_c_put_text(arroyo_udf_c_growing* column, arroyo_udf_utf8 text) {
  const char* const failure = arroyo_udf_c_append(&column->text, text.data, text.length); /* refuses wild lengths */
  if (failure != NULL) return failure;
  if (text.length != 0 && arroyo_udf_c_utf8_prefix(text.data, text.length) != text.length)
    return "the text is not valid UTF-8";
  const int32_t end = (int32_t)column->text.length;
  return arroyo_udf_c_put(column, &end, sizeof end);
}

static inline const char* arroyo_udf_c_end_row(arroyo_udf_c_rows* rows) {
  if (rows->length == INT32_MAX) return "the rows of this batch exceed 2 billion: send smaller batches";
  rows->length++;
  return NULL;
}

#endif /* ARROYO_UDF_C_ROWS_H */
