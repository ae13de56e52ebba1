/* arroyo_udf_c_types.h: how a value of each type is read from a column and written to a result. A part of
 * arroyo_udf_plugin.h.
 *
 * For each type T, also for nullable ones, it defines what ARROYO_UDF_FUNCTION uses:
 *
 *   arroyo_udf_c_format_T, flags_T    of the Arrow schema
 *   arroyo_udf_c_parameter_T          the C type of an argument
 *   arroyo_udf_c_out_T                the C type of a result
 *   arroyo_udf_c_check_T              why an argument cannot be read; NULL if it can
 *   arroyo_udf_c_load_T               reads an argument
 *   arroyo_udf_c_begin_T              makes *out before the call
 *   arroyo_udf_c_store_T              writes *out after it
 *   arroyo_udf_c_skip_T               writes a placeholder for a row without a value
 *   arroyo_udf_c_put_T                writes a value of a table function's row, of the type of an argument */
#ifndef ARROYO_UDF_C_TYPES_H
#define ARROYO_UDF_C_TYPES_H

#ifndef ARROYO_UDF_PLUGIN_H
#error "include arroyo_udf_plugin.h, of which this is a part"
#endif

/* Not inlined, so that the loop over rows stays small. */
__attribute__((noinline, unused)) static const char* arroyo_udf_c_check_range(const char* texts, int32_t last,
                                                                              int32_t start, int32_t end) {
  if (start < 0 || end < start || end > last) return "the value has invalid offsets";
  const size_t length = (size_t)(end - start);
  if (arroyo_udf_c_is_ascii(texts + start, length)) return NULL;
  return arroyo_udf_c_utf8_prefix(texts + start, length) == length ? NULL : "the text is not UTF-8";
}

static inline const char* arroyo_udf_c_check_text(arroyo_udf_c_column column, int64_t row) {
  const int64_t place = column.offset + (row & column.mask);
  const int32_t start = arroyo_udf_c_offset(column.values, place);
  const int32_t end = arroyo_udf_c_offset(column.values, place + 1);
  if (column.ascii_start <= start && start <= end && end <= column.ascii_end) return NULL;
  return arroyo_udf_c_check_range(column.text, column.last, start, end);
}

static inline arroyo_udf_utf8 arroyo_udf_c_view(arroyo_udf_c_column column, int64_t row) {
  const int64_t place = column.offset + (row & column.mask);
  const int32_t start = arroyo_udf_c_offset(column.values, place);
  arroyo_udf_utf8 view;
  view.data = column.text + start;
  view.length = (size_t)(arroyo_udf_c_offset(column.values, place + 1) - start);
  return view;
}

/* Where results are written. */
typedef struct arroyo_udf_c_sink {
  void* values;
  arroyo_udf_c_buffer* text;
  arroyo_udf_c_rows* rows;
} arroyo_udf_c_sink;

static inline arroyo_udf_c_sink arroyo_udf_c_sink_of(arroyo_udf_c_result* result) {
  arroyo_udf_c_sink sink;
  sink.values = result->values;
  sink.text = &result->text;
  sink.rows = result->rows;
  return sink;
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

/* What T and nullable_T have in common: all except the argument. `begin`, `store` and `skip` are expressions over
 * `sink`, `row` and `value`. */
#define ARROYO_UDF_C_NAME(name, type, letter, flag, begin, store, skip)                                  \
  ARROYO_UDF_C_UNUSED static const char arroyo_udf_c_format_##name[] = letter;                           \
  enum { arroyo_udf_c_flags_##name = flag };                                                             \
  typedef type arroyo_udf_c_out_##name;                                                                  \
  static inline type arroyo_udf_c_begin_##name(arroyo_udf_c_sink sink) {                                 \
    (void)sink;                                                                                          \
    return begin;                                                                                        \
  }                                                                                                      \
  static inline const char* arroyo_udf_c_store_##name(arroyo_udf_c_sink sink, int64_t row, type value) { \
    return store;                                                                                        \
  }                                                                                                      \
  static inline void arroyo_udf_c_skip_##name(arroyo_udf_c_sink sink, int64_t row) {                     \
    (void)sink;                                                                                          \
    (void)row;                                                                                           \
    skip;                                                                                                \
  }

#define ARROYO_UDF_C_TYPE_(name, nullable, argument, check, load, out, letter, begin, store, skip, put)          \
  ARROYO_UDF_C_NAME(name, out, letter, 0, begin, store, skip)                                                    \
  ARROYO_UDF_C_NAME(nullable, out, letter, ARROW_FLAG_NULLABLE, begin, store, skip)                              \
  typedef struct arroyo_udf_##nullable {                                                                         \
    argument value;                                                                                              \
    bool is_null;                                                                                                \
  } arroyo_udf_##nullable;                                                                                       \
  typedef argument arroyo_udf_c_parameter_##name;                                                                \
  typedef arroyo_udf_##nullable arroyo_udf_c_parameter_##nullable;                                               \
  static inline const char* arroyo_udf_c_check_##name(arroyo_udf_c_column column, int64_t row) {                 \
    (void)column, (void)row;                                                                                     \
    return check;                                                                                                \
  }                                                                                                              \
  static inline const char* arroyo_udf_c_check_##nullable(arroyo_udf_c_column column, int64_t row) {             \
    return arroyo_udf_c_is_null(column, row) ? (const char*)NULL : check;                                        \
  }                                                                                                              \
  static inline argument arroyo_udf_c_load_##name(arroyo_udf_c_column column, int64_t row) { return load; }      \
  static inline arroyo_udf_##nullable arroyo_udf_c_load_##nullable(arroyo_udf_c_column column, int64_t row) {    \
    arroyo_udf_##nullable loaded;                                                                                \
    memset(&loaded, 0, sizeof loaded);                                                                           \
    loaded.is_null = arroyo_udf_c_is_null(column, row);                                                          \
    if (!loaded.is_null) loaded.value = load;                                                                    \
    return loaded;                                                                                               \
  }                                                                                                              \
  static inline const char* arroyo_udf_c_put_##name(arroyo_udf_c_growing* column, int64_t row, argument value) { \
    (void)row;                                                                                                   \
    return put;                                                                                                  \
  }                                                                                                              \
  static inline const char* arroyo_udf_c_put_##nullable(arroyo_udf_c_growing* column, int64_t row,               \
                                                        arroyo_udf_##nullable given) {                           \
    argument value;                                                                                              \
    const char* const failure = arroyo_udf_c_put_bit(&column->validity, row, !given.is_null);                    \
    if (failure != NULL) return failure;                                                                         \
    memset(&value, 0, sizeof value);                                                                             \
    if (!given.is_null) value = given.value;                                                                     \
    return put;                                                                                                  \
  }
/* One more expansion, because `bool` may be a macro, both here and in an author's declaration. */
#define ARROYO_UDF_C_TYPE(...) ARROYO_UDF_C_TYPE_(__VA_ARGS__)
#define ARROYO_UDF_C_NUMBER(name, type, letter)                                                                  \
  static inline type arroyo_udf_c_number_##name(arroyo_udf_c_column column, int64_t row) {                       \
    type value;                                                                                                  \
    memcpy(&value, (const char*)column.values + (column.offset + row) * (int64_t)sizeof value, sizeof value);    \
    return value;                                                                                                \
  }                                                                                                              \
  ARROYO_UDF_C_TYPE(name, nullable_##name, type, NULL, arroyo_udf_c_number_##name(column, row), type, letter, 0, \
                    (((type*)sink.values)[row] = value, (const char*)NULL), ((type*)sink.values)[row] = 0,       \
                    arroyo_udf_c_put(column, &value, sizeof value))

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
ARROYO_UDF_C_TYPE(bool, nullable_bool, bool, NULL, arroyo_udf_c_bit(column.values, column.offset + row), bool, "b",
                  false, arroyo_udf_c_store_bit(sink, row, value), (void)0,
                  arroyo_udf_c_put_bit(&column->values, row, value))
ARROYO_UDF_C_TYPE(utf8, nullable_utf8, arroyo_udf_utf8, arroyo_udf_c_check_text(column, row),
                  arroyo_udf_c_view(column, row), arroyo_udf_text, "u", arroyo_udf_c_begin_text(sink),
                  arroyo_udf_c_store_text(sink, row, value), arroyo_udf_c_skip_text(sink, row),
                  arroyo_udf_c_put_text(column, value))

#endif /* ARROYO_UDF_C_TYPES_H */
