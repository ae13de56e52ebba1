/* arroyo_udf_c_table_functions.h: what ARROYO_UDF_TABLE_FUNCTION makes of a function: NAME_rows, NAME_emit, a
 * description, and the loop over rows. A part of arroyo_udf_plugin.h. */
#ifndef ARROYO_UDF_C_TABLE_FUNCTIONS_H
#define ARROYO_UDF_C_TABLE_FUNCTIONS_H

#ifndef ARROYO_UDF_PLUGIN_H
#error "include arroyo_udf_plugin.h, of which this is a part"
#endif

/* Ends the rows of a call. */
static inline const char* arroyo_udf_c_store_rows(arroyo_udf_c_sink sink, int64_t row, const char* column,
                                                  const char* failure) {
  if (failure != NULL && column != NULL) return arroyo_udf_failure("column %s: %s", column, failure);
  ((int32_t*)sink.values)[row + 1] = (int32_t)sink.rows->length;
  return failure;
}

static inline void arroyo_udf_c_skip_rows(arroyo_udf_c_sink sink, int64_t row) {
  int32_t* const offsets = (int32_t*)sink.values + row;
  arroyo_udf_c_take_back(sink.rows, offsets[0]);
  offsets[1] = offsets[0];
}

/* Each column becomes a parameter of NAME_emit, and a value that is written. */
#define ARROYO_UDF_C_EMITTED(function, argument) ARROYO_UDF_C_OF(parameter, argument) ARROYO_UDF_C_COLUMN_OF(argument)
#define ARROYO_UDF_C_PUT(function, argument)                                                                    \
  if (out->failure == NULL) {                                                                                   \
    out->failure = ARROYO_UDF_C_OF(put, argument)(next++, out->rows->length, ARROYO_UDF_C_COLUMN_OF(argument)); \
    out->column = ARROYO_UDF_C_STRING(ARROYO_UDF_C_NAME_OF argument);                                           \
  }

/* `row_columns` are in parentheses: ((utf8, word), (int64, place)). */
#define ARROYO_UDF_C_TABLE_FUNCTION(name, type, documentation, volatility, row_columns, ...)                           \
  typedef struct type {                                                                                                \
    arroyo_udf_c_rows* rows;                                                                                           \
    const char* failure; /* why a row of this call was not written */                                                  \
    const char* column;                                                                                                \
  } type;                                                                                                              \
  static inline void name##_emit(                                                                                      \
      type* out, ARROYO_UDF_C_EACH(ARROYO_UDF_C_EMITTED, ARROYO_UDF_C_COMMA, name, ARROYO_UDF_C_UNPACK row_columns)) { \
    arroyo_udf_c_growing* next = out->rows->columns;                                                                   \
    ARROYO_UDF_C_EACH(ARROYO_UDF_C_PUT, ARROYO_UDF_C_NOTHING, name, ARROYO_UDF_C_UNPACK row_columns)                   \
    if (out->failure != NULL) return;                                                                                  \
    out->column = NULL;                                                                                                \
    out->failure = arroyo_udf_c_end_row(out->rows);                                                                    \
  }                                                                                                                    \
  static inline type arroyo_udf_c_new_##type(arroyo_udf_c_rows* rows) {                                                \
    type made;                                                                                                         \
    memset(&made, 0, sizeof made);                                                                                     \
    made.rows = rows;                                                                                                  \
    return made;                                                                                                       \
  }                                                                                                                    \
  ARROYO_UDF_C_NAME(type, type, "+l", 0, arroyo_udf_c_new_##type(sink.rows),                                           \
                    arroyo_udf_c_store_rows(sink, row, value.column, value.failure),                                   \
                    arroyo_udf_c_skip_rows(sink, row))                                                                 \
  static const char* name(ARROYO_UDF_C_EACH(ARROYO_UDF_C_PARAMETER, ARROYO_UDF_C_COMMA, name, __VA_ARGS__), type*);    \
  ARROYO_UDF_C_ARGUMENTS(name, __VA_ARGS__)                                                                            \
  ARROYO_UDF_C_EACH(ARROYO_UDF_C_ARGUMENT, ARROYO_UDF_C_NOTHING, type, ARROYO_UDF_C_UNPACK row_columns)                \
  static struct ArrowSchema* const arroyo_udf_c_##type##_columns[] = {                                                 \
      ARROYO_UDF_C_EACH(ARROYO_UDF_C_CHILD, ARROYO_UDF_C_COMMA, type, ARROYO_UDF_C_UNPACK row_columns)};               \
  static const struct ArrowSchema arroyo_udf_c_##type##_row =                                                          \
      ARROYO_UDF_C_SCHEMA("+s", "item", 0, ARROYO_UDF_C_COUNT(ARROYO_UDF_C_UNPACK row_columns),                        \
                          (struct ArrowSchema**)arroyo_udf_c_##type##_columns);                                        \
  static struct ArrowSchema* const arroyo_udf_c_##type##_item[] = {(struct ArrowSchema*)&arroyo_udf_c_##type##_row};   \
  ARROYO_UDF_C_RETURNS(name, type, 1, (struct ArrowSchema**)arroyo_udf_c_##type##_item)                                \
  ARROYO_UDF_C_ROWS(name, name, #name, type, __VA_ARGS__)                                                              \
  ARROYO_UDF_C_RUN(name, #name, ARROYO_UDF_TABLE, documentation, volatility, type, 1,                                  \
                   (struct ArrowSchema**)arroyo_udf_c_##type##_item)
/* One more expansion, because `bool` may be a macro. */
#define ARROYO_UDF_C_TABLE_FUNCTION_(name, ...) ARROYO_UDF_C_TABLE_FUNCTION(name, name##_rows, __VA_ARGS__)

#endif /* ARROYO_UDF_C_TABLE_FUNCTIONS_H */
