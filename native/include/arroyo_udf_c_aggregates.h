/* arroyo_udf_c_aggregates.h: what ARROYO_UDF_AGGREGATE makes of three functions: the description of an aggregate, and
 * its steps, which `run` calls with a row for each group. A part of arroyo_udf_plugin.h.
 *
 * A state crosses as the bytes of its struct (Arrow's binary). They may lie anywhere, so they are copied first. */
#ifndef ARROYO_UDF_C_AGGREGATES_H
#define ARROYO_UDF_C_AGGREGATES_H

#ifndef ARROYO_UDF_PLUGIN_H
#error "include arroyo_udf_plugin.h, of which this is a part"
#endif

/* ---- States ----------------------------------------------------------------------------------------------------- */

/* Why a state cannot be read; NULL if it can, or if it is null. */
static inline const char* arroyo_udf_c_check_state(arroyo_udf_c_column column, int64_t row, size_t size) {
  if (arroyo_udf_c_is_null(column, row)) return NULL;
  const int32_t start = arroyo_udf_c_offset(column.values, column.offset + row);
  const int32_t end = arroyo_udf_c_offset(column.values, column.offset + row + 1);
  if (start < 0 || end < start || end > column.last) return "the value has invalid offsets";
  return (size_t)(end - start) == size ? NULL : "it has the size of another plugin's states, or of another build's";
}

/* A null state is that of a new group: zeros. */
static inline void arroyo_udf_c_load_state(arroyo_udf_c_column column, int64_t row, void* state, size_t size) {
  if (arroyo_udf_c_is_null(column, row))
    memset(state, 0, size);
  else
    memcpy(state, arroyo_udf_c_view(column, row).data, size);
}

static inline const char* arroyo_udf_c_store_state(arroyo_udf_c_sink sink, int64_t row, const void* state,
                                                   size_t size) {
  const char* const failure = arroyo_udf_c_append(sink.text, (const char*)state, size);
  if (failure == NULL) ((int32_t*)sink.values)[row + 1] = (int32_t)sink.text->length;
  return failure;
}

/* The two types of a state in steps: NAME_state, and NAME_state_or_new, which may be null. See arroyo_udf_c_types.h. */
#define ARROYO_UDF_C_STATE_ARGUMENT(word, state_type)                                            \
  static inline const char* arroyo_udf_c_check_##word(arroyo_udf_c_column column, int64_t row) { \
    return arroyo_udf_c_check_state(column, row, sizeof(state_type));                            \
  }                                                                                              \
  static inline state_type arroyo_udf_c_load_##word(arroyo_udf_c_column column, int64_t row) {   \
    state_type loaded;                                                                           \
    arroyo_udf_c_load_state(column, row, &loaded, sizeof loaded);                                \
    return loaded;                                                                               \
  }
#define ARROYO_UDF_C_STATE(state_type)                                                                            \
  ARROYO_UDF_C_STATE_ARGUMENT(state_type, state_type)                                                             \
  ARROYO_UDF_C_STATE_ARGUMENT(state_type##_or_new, state_type)                                                    \
  static inline state_type arroyo_udf_c_new_##state_type(void) {                                                  \
    state_type made;                                                                                              \
    memset(&made, 0, sizeof made);                                                                                \
    return made;                                                                                                  \
  }                                                                                                               \
  ARROYO_UDF_C_NAME(state_type, state_type, "z", 0, arroyo_udf_c_new_##state_type(),                              \
                    arroyo_udf_c_store_state(sink, row, &value, sizeof value), arroyo_udf_c_skip_text(sink, row)) \
  ARROYO_UDF_C_UNUSED static const char arroyo_udf_c_format_##state_type##_or_new[] = "z";                        \
  enum { arroyo_udf_c_flags_##state_type##_or_new = ARROW_FLAG_NULLABLE };

/* ---- The lists of a group --------------------------------------------------------------------------------------- */

/* One argument's values for a group, as a column whose row 0 is the first of them. All lists of a group have *n_rows
 * items, which is -1 before the first list. */
static inline arroyo_udf_c_column arroyo_udf_c_items_of(arroyo_udf_c_column list, int64_t group, const char* argument,
                                                        int64_t* n_rows, const char** failure) {
  arroyo_udf_c_column items = *list.items;
  if (*failure != NULL) return items;
  const int32_t start = arroyo_udf_c_offset(list.values, list.offset + group);
  const int32_t end = arroyo_udf_c_offset(list.values, list.offset + group + 1);
  if (start < 0 || end < start || end > list.last)
    *failure = arroyo_udf_c_unreadable(argument, "the list has invalid offsets");
  else if (*n_rows >= 0 && end - start != *n_rows)
    *failure = arroyo_udf_c_unreadable(argument, "its list is not as long as that of the argument before it");
  *n_rows = (int64_t)end - start;
  items.offset += start;
  return items;
}

/* Each argument of an aggregate becomes the schema of a list, the schema's address, the column of its values in a
 * group, and the question whether a null keeps a row out. */
#define ARROYO_UDF_C_LIST_PART(part, function, argument) \
  ARROYO_UDF_C_PASTE(arroyo_udf_c_##function##_##part##_, ARROYO_UDF_C_NAME_OF argument)
#define ARROYO_UDF_C_LIST(function, argument)                                                       \
  static const struct ArrowSchema ARROYO_UDF_C_LIST_PART(item, function, argument) =                \
      ARROYO_UDF_C_SCHEMA(ARROYO_UDF_C_OF(format, argument), "item", ARROW_FLAG_NULLABLE, 0, NULL); \
  static struct ArrowSchema* const ARROYO_UDF_C_LIST_PART(items, function, argument)[] = {          \
      (struct ArrowSchema*)&ARROYO_UDF_C_LIST_PART(item, function, argument)};                      \
  static const struct ArrowSchema ARROYO_UDF_C_LIST_PART(list, function, argument) =                \
      ARROYO_UDF_C_SCHEMA("+l", ARROYO_UDF_C_STRING(ARROYO_UDF_C_NAME_OF argument), 0, 1,           \
                          (struct ArrowSchema**)ARROYO_UDF_C_LIST_PART(items, function, argument));
#define ARROYO_UDF_C_LIST_CHILD(function, argument) \
  (struct ArrowSchema*)&ARROYO_UDF_C_LIST_PART(list, function, argument)
#define ARROYO_UDF_C_ITEMS(function, argument)                                                 \
  arroyo_udf_c_column ARROYO_UDF_C_COLUMN_OF(argument) = arroyo_udf_c_items_of(                \
      *lists++, group, ARROYO_UDF_C_STRING(ARROYO_UDF_C_NAME_OF argument), &n_rows, &failure); \
  ARROYO_UDF_C_COLUMN_OF(argument).mask = -1; /* items are no constants */
#define ARROYO_UDF_C_IS_KEPT_OUT(function, argument)                \
  ((ARROYO_UDF_C_OF(flags, argument) & ARROW_FLAG_NULLABLE) == 0 && \
   arroyo_udf_c_is_null(ARROYO_UDF_C_COLUMN_OF(argument), row))
#define ARROYO_UDF_C_OR() ||

/* ---- Declarations: macros --------------------------------------------------------------------------------------- */

/* The step `update`, which calls the author's function once for each row of each group. */
#define ARROYO_UDF_C_UPDATE(name, state_type, ...)                                                                    \
  ARROYO_UDF_C_ARGUMENT(name##_update, (state_type##_or_new, state))                                                  \
  ARROYO_UDF_C_EACH(ARROYO_UDF_C_LIST, ARROYO_UDF_C_NOTHING, name, __VA_ARGS__)                                       \
  static struct ArrowSchema* const arroyo_udf_c_##name##_update_children[] = {                                        \
      ARROYO_UDF_C_CHILD(name##_update, (state_type##_or_new, state)),                                                \
      ARROYO_UDF_C_EACH(ARROYO_UDF_C_LIST_CHILD, ARROYO_UDF_C_COMMA, name, __VA_ARGS__)};                             \
  static const struct ArrowSchema arroyo_udf_c_##name##_update_arguments =                                            \
      ARROYO_UDF_C_SCHEMA("+s", "", 0, 1 + ARROYO_UDF_C_COUNT(__VA_ARGS__),                                           \
                          (struct ArrowSchema**)arroyo_udf_c_##name##_update_children);                               \
  ARROYO_UDF_C_RETURNS(name##_update, state_type, 0, NULL)                                                            \
  static inline const char* arroyo_udf_c_##name##_update_group(state_type* updated, const arroyo_udf_c_column* lists, \
                                                               int64_t group) {                                       \
    const char* failure = NULL;                                                                                       \
    int64_t n_rows = -1;                                                                                              \
    ARROYO_UDF_C_EACH(ARROYO_UDF_C_ITEMS, ARROYO_UDF_C_NOTHING, name, __VA_ARGS__)                                    \
    for (int64_t row = 0; failure == NULL && row < n_rows; row++) {                                                   \
      if (ARROYO_UDF_C_EACH(ARROYO_UDF_C_IS_KEPT_OUT, ARROYO_UDF_C_OR, name, __VA_ARGS__)) continue;                  \
      ARROYO_UDF_C_EACH(ARROYO_UDF_C_CHECK, ARROYO_UDF_C_NOTHING, name, __VA_ARGS__)                                  \
      if (failure == NULL)                                                                                            \
        failure = name##_update(updated,                                                                              \
                                ARROYO_UDF_C_EACH(ARROYO_UDF_C_VALUE, ARROYO_UDF_C_COMMA, name, __VA_ARGS__));        \
    }                                                                                                                 \
    return failure;                                                                                                   \
  }                                                                                                                   \
  static void arroyo_udf_c_##name##_update_loop(const arroyo_udf_c_column* columns, arroyo_udf_c_result* result,      \
                                                int64_t first, int64_t count, uint64_t wanted) {                      \
    const arroyo_udf_c_sink sink = arroyo_udf_c_sink_of(result);                                                      \
    for (int64_t row = first; row < first + count; row++) {                                                           \
      if (wanted != UINT64_MAX && !(wanted >> (row - first) & 1)) {                                                   \
        arroyo_udf_c_skip_##state_type(sink, row);                                                                    \
        continue;                                                                                                     \
      }                                                                                                               \
      const char* failure = arroyo_udf_c_check_##state_type##_or_new(columns[0], row);                                \
      if (failure != NULL) {                                                                                          \
        failure = arroyo_udf_c_unreadable("state", failure);                                                          \
      } else {                                                                                                        \
        state_type updated = arroyo_udf_c_load_##state_type##_or_new(columns[0], row);                                \
        failure = arroyo_udf_c_##name##_update_group(&updated, columns + 1, row);                                     \
        if (failure == NULL) failure = arroyo_udf_c_store_##state_type(sink, row, updated);                           \
      }                                                                                                               \
      if (failure != NULL) {                                                                                          \
        arroyo_udf_c_skip_##state_type(sink, row);                                                                    \
        arroyo_udf_c_no_value(result, ARROYO_UDF_PLUGIN_NAME "." #name ".update", row, failure);                      \
      }                                                                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  ARROYO_UDF_C_RUN(name##_update, #name ".update", ARROYO_UDF_STEP, NULL, 0, state_type, 0, NULL);

/* The steps `merge` and `finish` are functions of rows: these copy the states that they work with. */
#define ARROYO_UDF_C_MERGE(name, state_type)                                                                  \
  static inline const char* arroyo_udf_c_##name##_merged(state_type one, state_type other, state_type* out) { \
    *out = one;                                                                                               \
    return name##_merge(out, &other);                                                                         \
  }                                                                                                           \
  ARROYO_UDF_C_SIGNATURE(name##_merge, state_type, (state_type, state), (state_type, other))                  \
  ARROYO_UDF_C_ROWS(name##_merge, arroyo_udf_c_##name##_merged, #name ".merge", state_type,                   \
                    (state_type, state), (state_type, other))                                                 \
  ARROYO_UDF_C_RUN(name##_merge, #name ".merge", ARROYO_UDF_STEP, NULL, 0, state_type, 0, NULL);
#define ARROYO_UDF_C_FINISH(name, state_type, result_type)                                                         \
  static inline const char* arroyo_udf_c_##name##_finished(state_type last, arroyo_udf_c_out_##result_type* out) { \
    return name##_finish(&last, out);                                                                              \
  }                                                                                                                \
  ARROYO_UDF_C_SIGNATURE(name##_finish, result_type, (state_type##_or_new, state))                                 \
  ARROYO_UDF_C_ROWS(name##_finish, arroyo_udf_c_##name##_finished, #name ".finish", result_type,                   \
                    (state_type##_or_new, state))                                                                  \
  ARROYO_UDF_C_RUN(name##_finish, #name ".finish", ARROYO_UDF_STEP, NULL, 0, result_type, 0, NULL);

#define ARROYO_UDF_C_AGGREGATE(name, state_type, documentation, volatility, result_type, ...)                  \
  const char* name##_update(state_type*,                                                                       \
                            ARROYO_UDF_C_EACH(ARROYO_UDF_C_PARAMETER, ARROYO_UDF_C_COMMA, name, __VA_ARGS__)); \
  const char* name##_merge(state_type*, const state_type*);                                                    \
  const char* name##_finish(const state_type*, arroyo_udf_c_out_##result_type*);                               \
  ARROYO_UDF_C_STATE(state_type)                                                                               \
  ARROYO_UDF_C_UPDATE(name, state_type, __VA_ARGS__)                                                           \
  ARROYO_UDF_C_MERGE(name, state_type)                                                                         \
  ARROYO_UDF_C_FINISH(name, state_type, result_type)                                                           \
  static const arroyo_udf_c_function* const arroyo_udf_c_##name##_steps[] = {                                  \
      &arroyo_udf_c_##name##_update_function, &arroyo_udf_c_##name##_merge_function,                           \
      &arroyo_udf_c_##name##_finish_function};                                                                 \
  ARROYO_UDF_C_SIGNATURE(name, result_type, __VA_ARGS__)                                                       \
  static arroyo_udf_c_function arroyo_udf_c_##name##_function = {                                              \
      {sizeof(arroyo_udf_function), #name, ARROYO_UDF_AGGREGATE, 0, &arroyo_udf_c_##name##_arguments,          \
       &arroyo_udf_c_##name##_returns, NULL, documentation, volatility, 0, 0, 0, 0},                           \
      NULL,                                                                                                    \
      arroyo_udf_c_##name##_steps,                                                                             \
      NULL,                                                                                                    \
      NULL,                                                                                                    \
      NULL}
/* One more expansion, because `bool` may be a macro. */
#define ARROYO_UDF_C_AGGREGATE_(name, ...) ARROYO_UDF_C_AGGREGATE(name, name##_state, __VA_ARGS__)

#endif /* ARROYO_UDF_C_AGGREGATES_H */
