/* duckdb_tables.h: table functions of DuckDB.
 *
 *     FROM words('a b')                          the arguments are constants, and there is one call for each scan
 *     SELECT unnest(words(text)) FROM t          as a function of rows, which gives a list of structs
 */
#ifndef ARROYO_UDF_ENGINES_DUCKDB_TABLES_H
#define ARROYO_UDF_ENGINES_DUCKDB_TABLES_H

#include "duckdb_values.h"
#include "packed.h"

static const struct ArrowSchema *duckdb_row_of(const arroyo_udf_function *function) {
  return function->returns->children[0];
}

/* Why DuckDB cannot call it; NULL: it can. */
static char *duckdb_table_refusal(const arroyo_udf_function *function) {
  const struct ArrowSchema *row = duckdb_row_of(function), *wrong = duckdb_unlike(function->arguments);
  for (int64_t i = 0; wrong == NULL && i < row->n_children; i++)
    if (!duckdb_type_of(row->children[i]).id) wrong = row->children[i];
  return wrong ? duckdb_refusal(function, wrong) : NULL;
}

/* The items of a list. */
static void items_of(const struct ArrowSchema *type, const struct ArrowArray *lists, int64_t row, int64_t *begin, int64_t *end) {
  int width = type->format[1] == 'L' ? 8 : 4;
  *begin = *end = 0;
  if (!is_valid(lists, row)) return;
  *begin = signed_at(lists->buffers[1], width, lists->offset + row);
  *end = signed_at(lists->buffers[1], width, lists->offset + row + 1);
}

/* A column of some rows, from row `begin` of the structs on. */
static void duckdb_give_column(duckdb_object vector, const struct ArrowSchema *row, const struct ArrowArray *structs, int64_t c,
                               int64_t begin, int64_t n, int64_t first) {
  struct ArrowArray column = *structs->children[c];
  column.offset += structs->offset + begin;
  column.length = n;
  column.null_count = -1;
  duckdb_give(vector, row->children[c], &column, first);
  for (int64_t i = 0; i < n; i++)
    if (!is_valid(structs, begin + i)) duckdb_give_null(vector, first + i);
}

/* ---- Scans ------------------------------------------------------------------------------------------------------ */

/* What a query has bound: it may be run several times. */
typedef struct {
  session *session;
  bytes arguments; /* packed */
} bound_table;

typedef struct {
  session *session;
  struct ArrowArray lists; /* released: none */
  int64_t at, end;
} table_scan;

static void free_bound(void *data) {
  free_bytes(&((bound_table *)data)->arguments);
  free(data);
}

static void free_scan(void *data) {
  table_scan *scan = data;
  if (scan->lists.release) scan->lists.release(&scan->lists);
  free(scan);
}

typedef struct {
  int32_t days;
} duckdb_date;
typedef struct {
  int64_t units;
} duckdb_time;
typedef struct {
  void *data;
  uint64_t length;
} duckdb_blob;
typedef struct {
  uint8_t precision, scale;
  uint64_t halves[2];
} duckdb_decimal;

#define PACK_GIVEN(slot, type)                                       \
  do {                                                               \
    type number = DUCKDB(slot, type, duckdb_object)(value);          \
    return append(to, "\1", 1) && append(to, &number, sizeof number); \
  } while (0)

/* A constant. A text ends at its first zero byte: the API passes on no length. */
static bool pack_constant(bytes *to, const struct ArrowSchema *type, duckdb_object value) {
  if (value == NULL || DUCKDB(DUCKDB_IS_NULL, bool, duckdb_object)(value)) return append(to, "\0", 1);
  int id = duckdb_type_of(type).id;
  switch (id) {
    case 1: PACK_GIVEN(DUCKDB_GET_BOOL, bool);
    case 2: PACK_GIVEN(DUCKDB_GET_INT8, int8_t);
    case 3: PACK_GIVEN(DUCKDB_GET_INT16, int16_t);
    case 4: PACK_GIVEN(DUCKDB_GET_INT32, int32_t);
    case 5: PACK_GIVEN(DUCKDB_GET_INT64, int64_t);
    case 6: PACK_GIVEN(DUCKDB_GET_UINT8, uint8_t);
    case 7: PACK_GIVEN(DUCKDB_GET_UINT16, uint16_t);
    case 8: PACK_GIVEN(DUCKDB_GET_UINT32, uint32_t);
    case 9: PACK_GIVEN(DUCKDB_GET_UINT64, uint64_t);
    case 10: PACK_GIVEN(DUCKDB_GET_FLOAT, float);
    case 11: PACK_GIVEN(DUCKDB_GET_DOUBLE, double);
    case 12: PACK_GIVEN(DUCKDB_GET_TIMESTAMP, duckdb_time);
    case 13: PACK_GIVEN(DUCKDB_GET_DATE, duckdb_date);
    case 14: PACK_GIVEN(DUCKDB_GET_TIME, duckdb_time);
    case 20: PACK_GIVEN(DUCKDB_GET_TIMESTAMP_S, duckdb_time);
    case 21: PACK_GIVEN(DUCKDB_GET_TIMESTAMP_MS, duckdb_time);
    case 22: PACK_GIVEN(DUCKDB_GET_TIMESTAMP_NS, duckdb_time);
    case 31: PACK_GIVEN(DUCKDB_GET_TIMESTAMP_TZ, duckdb_time);
    case DUCKDB_DECIMAL: {
      duckdb_decimal decimal = DUCKDB(DUCKDB_GET_DECIMAL, duckdb_decimal, duckdb_object)(value);
      return append(to, "\1", 1) && append(to, decimal.halves, sizeof decimal.halves);
    }
    default: {
      duckdb_blob text;
      if (id == DUCKDB_VARCHAR) {
        text.data = DUCKDB(DUCKDB_GET_VARCHAR, char *, duckdb_object)(value);
        text.length = text.data ? strlen(text.data) : 0;
      } else {
        text = DUCKDB(DUCKDB_GET_BLOB, duckdb_blob, duckdb_object)(value);
      }
      bool done = pack_text(to, text.data, (int64_t)text.length);
      DUCKDB(DUCKDB_FREE, void, void *)(text.data);
      return done;
    }
  }
}

static void duckdb_bind(duckdb_object info) {
  session *s = DUCKDB(DUCKDB_BIND_EXTRA, void *, duckdb_object)(info);
  const struct ArrowSchema *arguments = s->function->arguments, *row = duckdb_row_of(s->function);
  char *why = duckdb_table_refusal(s->function);
  bound_table *bound = why ? NULL : calloc(1, sizeof *bound);
  bool is_whole = bound != NULL;
  for (int64_t i = 0; is_whole && i < arguments->n_children; i++) {
    duckdb_object value = DUCKDB(DUCKDB_BIND_PARAMETER, duckdb_object, duckdb_object, uint64_t)(info, (uint64_t)i);
    is_whole = pack_constant(&bound->arguments, arguments->children[i], value);
    DUCKDB(DUCKDB_DESTROY_VALUE, void, duckdb_object *)(&value);
  }
  if (is_whole) {
    bound->session = s;
    for (int64_t i = 0; i < row->n_children; i++) {
      duckdb_object type = duckdb_logical_type(duckdb_type_of(row->children[i]));
      DUCKDB(DUCKDB_BIND_COLUMN, void, duckdb_object, const char *, duckdb_object)(info, row->children[i]->name, type);
      DUCKDB(DUCKDB_DESTROY_LOGICAL_TYPE, void, duckdb_object *)(&type);
    }
    DUCKDB(DUCKDB_BIND_DATA, void, duckdb_object, void *, void (*)(void *))(info, bound, free_bound);
    return;
  }
  if (bound) free_bound(bound);
  if (why == NULL) why = out_of_memory;
  DUCKDB(DUCKDB_BIND_ERROR, void, duckdb_object, const char *)(info, why);
  free_text(why);
}

/* Keeps the list of the only row. A row that is null, or has failed, gives no rows. */
static bool duckdb_take_scan(void *to, struct ArrowArray *values, int64_t first, char **why) {
  table_scan *scan = to;
  (void)first, (void)why;
  scan->lists = *values;
  items_of(scan->session->function->returns, values, 0, &scan->at, &scan->end);
  return true;
}

static bool batch_of(const bound_table *bound, struct ArrowArray *batch) {
  const struct ArrowSchema *arguments = bound->session->function->arguments;
  const char *at = bound->arguments.data;
  if (!make_batch(batch, arguments->n_children, 1)) return false;
  bool is_whole = true;
  for (int64_t i = 0; is_whole && i < arguments->n_children; i++) {
    column argument;
    is_whole = open_column(&argument, arguments->children[i]) && unpack(&argument, &at) &&
               close_column(&argument, batch->children[i]);
    if (!is_whole) free_column(&argument);
  }
  if (!is_whole) batch->release(batch);
  return is_whole;
}

static void duckdb_init_scan(duckdb_object info) {
  bound_table *bound = DUCKDB(DUCKDB_INIT_BOUND, void *, duckdb_object)(info);
  table_scan *scan = calloc(1, sizeof *scan);
  struct ArrowArray batch;
  char *why = NULL;
  if (scan == NULL || !batch_of(bound, &batch)) {
    why = out_of_memory;
  } else {
    scan->session = bound->session;
    call(bound->session, &batch, duckdb_take_scan, scan, &why);
  }
  if (why == NULL) {
    DUCKDB(DUCKDB_INIT_DATA, void, duckdb_object, void *, void (*)(void *))(info, scan, free_scan);
    return;
  }
  if (scan) free_scan(scan);
  DUCKDB(DUCKDB_INIT_ERROR, void, duckdb_object, const char *)(info, why);
  free_text(why);
}

static void duckdb_scan(duckdb_object info, duckdb_object chunk) {
  table_scan *scan = DUCKDB(DUCKDB_SCAN_DATA, void *, duckdb_object)(info);
  const struct ArrowSchema *row = duckdb_row_of(scan->session->function);
  int64_t most = (int64_t)DUCKDB(DUCKDB_VECTOR_SIZE, uint64_t, void)();
  int64_t n = scan->end - scan->at < most ? scan->end - scan->at : most;
  for (int64_t c = 0; n && c < row->n_children; c++) {
    duckdb_object vector = DUCKDB(DUCKDB_CHUNK_COLUMN, duckdb_object, duckdb_object, uint64_t)(chunk, (uint64_t)c);
    duckdb_give_column(vector, row, scan->lists.children[0], c, scan->at, n, 0);
  }
  scan->at += n;
  DUCKDB(DUCKDB_CHUNK_SET_SIZE, void, duckdb_object, uint64_t)(chunk, (uint64_t)n);
}

static bool duckdb_register_table(duckdb_object connection, uint32_t number) {
  const arroyo_udf_function *function = this_plugin()->functions[number];
  session *s = open_session(number);
  if (s == NULL) return false;
  duckdb_object made = DUCKDB(DUCKDB_CREATE_TABLE, duckdb_object, void)();
  bool fits = duckdb_unlike(function->arguments) == NULL;
  DUCKDB(DUCKDB_TABLE_NAME, void, duckdb_object, const char *)(made, function->name);
  for (int64_t i = 0; i < function->arguments->n_children; i++)
    with_type(DUCKDB_TABLE_PARAMETER, made,
              fits ? duckdb_type_of(function->arguments->children[i]) : (duckdb_type){DUCKDB_ANY, 0, 0});
  DUCKDB(DUCKDB_TABLE_EXTRA, void, duckdb_object, void *, void (*)(void *))(made, s, close_session);
  DUCKDB(DUCKDB_TABLE_BIND, void, duckdb_object, void (*)(duckdb_object))(made, duckdb_bind);
  DUCKDB(DUCKDB_TABLE_INIT, void, duckdb_object, void (*)(duckdb_object))(made, duckdb_init_scan);
  DUCKDB(DUCKDB_TABLE_SCAN, void, duckdb_object, void (*)(duckdb_object, duckdb_object))(made, duckdb_scan);
  bool is_registered = !DUCKDB(DUCKDB_REGISTER_TABLE, int, duckdb_object, duckdb_object)(connection, made);
  DUCKDB(DUCKDB_DESTROY_TABLE, void, duckdb_object *)(&made);
  return is_registered;
}

/* ---- As a function of rows -------------------------------------------------------------------------------------- */

static duckdb_object duckdb_rows_type(const arroyo_udf_function *function) {
  const struct ArrowSchema *row = duckdb_row_of(function);
  size_t n = (size_t)row->n_children;
  duckdb_object *types = calloc(n + 1, sizeof *types), made = NULL;
  const char **names = calloc(n + 1, sizeof *names);
  for (size_t i = 0; types && names && i < n; i++) {
    types[i] = duckdb_logical_type(duckdb_type_of(row->children[i]));
    names[i] = row->children[i]->name;
  }
  if (types && names) {
    duckdb_object of_row = DUCKDB(DUCKDB_CREATE_STRUCT_TYPE, duckdb_object, duckdb_object *, const char **, uint64_t)(types, names, n);
    made = DUCKDB(DUCKDB_CREATE_LIST_TYPE, duckdb_object, duckdb_object)(of_row);
    DUCKDB(DUCKDB_DESTROY_LOGICAL_TYPE, void, duckdb_object *)(&of_row);
  }
  for (size_t i = 0; types && names && i < n; i++) DUCKDB(DUCKDB_DESTROY_LOGICAL_TYPE, void, duckdb_object *)(&types[i]);
  free(types);
  free(names);
  return made;
}

typedef struct {
  uint64_t offset, length;
} duckdb_list;

static bool duckdb_take_lists(void *to, struct ArrowArray *values, int64_t first, char **why) {
  duckdb_result *result = to;
  const struct ArrowSchema *row = result->type->children[0];
  duckdb_list *lists = (duckdb_list *)DUCKDB(DUCKDB_VECTOR_DATA, void *, duckdb_object)(result->vector) + first;
  uint64_t n = 0;
  for (int64_t i = 0; i < values->length; i++) {
    int64_t begin, end;
    items_of(result->type, values, i, &begin, &end);
    lists[i] = (duckdb_list){n, (uint64_t)(end - begin)};
    n += lists[i].length;
    if (!is_valid(values, i)) duckdb_give_null(result->vector, first + i);
  }
  if (DUCKDB(DUCKDB_LIST_RESERVE, int, duckdb_object, uint64_t)(result->vector, n)) return *why = out_of_memory, false;
  DUCKDB(DUCKDB_LIST_SET_SIZE, int, duckdb_object, uint64_t)(result->vector, n);
  duckdb_object items = DUCKDB(DUCKDB_LIST_CHILD, duckdb_object, duckdb_object)(result->vector);
  for (int64_t c = 0; c < row->n_children; c++) {
    duckdb_object column = DUCKDB(DUCKDB_STRUCT_CHILD, duckdb_object, duckdb_object, uint64_t)(items, (uint64_t)c);
    for (int64_t i = 0; i < values->length; i++) {
      int64_t begin, end;
      items_of(result->type, values, i, &begin, &end);
      duckdb_give_column(column, row, values->children[0], c, begin, end - begin, (int64_t)lists[i].offset);
    }
  }
  values->release(values);
  return true;
}

#endif
