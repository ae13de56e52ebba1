/* duckdb.h: functions of DuckDB, by its C extension API v1.2.0 (tried with 1.3.0 to 2.0.1; wheels of 1.2 for
 * Python look for another platform in the footer).
 *
 *     LOAD 'libudf.duckdb_extension';            -- of a database opened with allow_unsigned_extensions
 *
 * The file needs DuckDB's footer, and a name whose stem the entry point has; `build` sees to both.
 *
 * A chunk of up to 2,048 rows is one call. Numbers, dates and times are read where they lie; texts, bools and decimals are
 * copied, and so is everything that an async function gets, because a stuck call may still read it. */
#ifndef ARROYO_UDF_ENGINES_DUCKDB_H
#define ARROYO_UDF_ENGINES_DUCKDB_H

#include "calls.h"

/* Places of functions in the API's table, whose first part does not change. */
enum {
  DUCKDB_CONNECT = 3,
  DUCKDB_DISCONNECT = 6,
  DUCKDB_CREATE_LOGICAL_TYPE = 156,
  DUCKDB_CREATE_DECIMAL_TYPE = 165,
  DUCKDB_DESTROY_LOGICAL_TYPE = 184,
  DUCKDB_CHUNK_COLUMN = 190,
  DUCKDB_CHUNK_SIZE = 191,
  DUCKDB_VECTOR_DATA = 194,
  DUCKDB_VECTOR_VALIDITY = 195,
  DUCKDB_VECTOR_MAKE_VALIDITY = 196,
  DUCKDB_VECTOR_ASSIGN_STRING = 198,
  DUCKDB_CREATE_FUNCTION = 209,
  DUCKDB_DESTROY_FUNCTION = 210,
  DUCKDB_FUNCTION_NAME = 211,
  DUCKDB_FUNCTION_VARARGS = 212,
  DUCKDB_FUNCTION_NULLS = 213,
  DUCKDB_FUNCTION_VOLATILE = 214,
  DUCKDB_FUNCTION_PARAMETER = 215,
  DUCKDB_FUNCTION_RETURNS = 216,
  DUCKDB_FUNCTION_DATA = 217,
  DUCKDB_FUNCTION_CALL = 218,
  DUCKDB_REGISTER_FUNCTION = 219,
  DUCKDB_CALLED_DATA = 220,
  DUCKDB_CALLED_ERROR = 221,
  DUCKDB_SLOTS
};
enum { DUCKDB_VARCHAR = 17, DUCKDB_DECIMAL = 19, DUCKDB_ANY = 34 };

/* A copy: DuckDB's own is gone after the load. Written once, because threads of the first database may be calling. */
static duckdb_slot duckdb_api[DUCKDB_SLOTS];
static pthread_mutex_t duckdb_api_lock = PTHREAD_MUTEX_INITIALIZER;
#define DUCKDB(slot, result, ...) ((result(*)(__VA_ARGS__))duckdb_api[slot])

/* ---- Types ------------------------------------------------------------------------------------------------------ */

typedef struct {
  int id; /* of DuckDB's type; 0: it has none */
  int precision, scale;
} duckdb_type;

static duckdb_type duckdb_type_of(const struct ArrowSchema *type) {
  static const struct {
    const char *format;
    int id;
  } types[] = {{"b", 1},    {"c", 2},    {"s", 3},    {"i", 4},    {"l", 5},     {"C", 6},     {"S", 7},    {"I", 8},
               {"L", 9},    {"f", 10},   {"g", 11},   {"u", 17},   {"U", 17},    {"vu", 17},   {"z", 18},   {"Z", 18},
               {"vz", 18},  {"tdD", 13}, {"ttu", 14}, {"tss:", 20}, {"tsm:", 21}, {"tsu:", 12}, {"tsn:", 22}};
  if (type->dictionary || type->n_children) return (duckdb_type){0};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (!strcmp(type->format, types[i].format)) return (duckdb_type){types[i].id, 0, 0};
  if (!strncmp(type->format, "tsu:", 4)) return (duckdb_type){31, 0, 0}; /* with a time zone */
  duckdb_type decimal = {DUCKDB_DECIMAL, 0, 0};
  if (sscanf(type->format, "d:%d,%d", &decimal.precision, &decimal.scale) == 2 && shape_of(type).width == 16)
    return decimal.precision <= 38 && decimal.scale >= 0 ? decimal : (duckdb_type){0};
  return (duckdb_type){0};
}

/* Bytes of a decimal in a vector. */
static int decimal_width(int precision) { return precision <= 4 ? 2 : precision <= 9 ? 4 : precision <= 18 ? 8 : 16; }

static duckdb_object duckdb_logical_type(duckdb_type type) {
  if (type.id == DUCKDB_DECIMAL)
    return DUCKDB(DUCKDB_CREATE_DECIMAL_TYPE, duckdb_object, uint8_t, uint8_t)((uint8_t)type.precision, (uint8_t)type.scale);
  return DUCKDB(DUCKDB_CREATE_LOGICAL_TYPE, duckdb_object, int)(type.id);
}

/* Gives a new type to one of the functions that take one. */
static void with_type(int slot, duckdb_object function, duckdb_type type) {
  duckdb_object made = duckdb_logical_type(type);
  DUCKDB(slot, void, duckdb_object, duckdb_object)(function, made);
  DUCKDB(DUCKDB_DESTROY_LOGICAL_TYPE, void, duckdb_object *)(&made);
}

/* ---- Arguments -------------------------------------------------------------------------------------------------- */

typedef struct {
  uint32_t length;
  char prefix[4];
  union {
    const char *pointer;
    char rest[8];
  } end;
} duckdb_string; /* up to 12 bytes: in place, from the prefix on */

static inline const char *duckdb_bytes(const duckdb_string *string) {
  return string->length <= 12 ? string->prefix : string->end.pointer;
}

static inline bool is_set(const uint64_t *validity, int64_t row) {
  return validity == NULL || (validity[row >> 6] >> (row & 63) & 1);
}

/* A column that reads the vector's memory. */
static bool borrow_vector(struct ArrowArray *column, const void *data, uint64_t *validity, int64_t rows) {
  own_buffers *own = calloc(1, sizeof *own);
  if (own == NULL) return false;
  own->pointers[0] = validity;
  own->pointers[1] = data;
  *column = (struct ArrowArray){.length = rows, .null_count = validity ? -1 : 0, .n_buffers = 2};
  column->buffers = own->pointers;
  column->release = release_own;
  column->private_data = own;
  return true;
}

static bool copy_vector(struct ArrowArray *column, column_shape shape, duckdb_type type, const void *data,
                        uint64_t *validity, int64_t rows) {
  const duckdb_string *strings = data;
  bool is_text = shape.kind == TEXT || shape.kind == BYTES;
  int64_t bytes = 0;
  for (int64_t i = 0; is_text && i < rows; i++) bytes += is_set(validity, i) ? strings[i].length : 0;
  if ((shape.width == 4 && bytes > INT32_MAX) || !make_own(column, shape, rows, bytes)) return false;
  own_buffers *own = column->private_data;
  char *values = own->memory[1];
  for (int64_t i = 0, end = 0; i < rows; i++) {
    bool valid = is_set(validity, i);
    if (valid) set_bit(own->memory[0], i);
    else column->null_count++;
    if (is_text) {
      if (valid) memcpy((char *)own->memory[2] + end, duckdb_bytes(&strings[i]), strings[i].length);
      end += valid ? strings[i].length : 0;
      put_integer(values, shape.width, i + 1, (uint64_t)end);
    } else if (valid && shape.kind == BIT) {
      if (((const uint8_t *)data)[i]) set_bit(values, i);
    } else if (valid && type.id == DUCKDB_DECIMAL) {
      int width = decimal_width(type.precision);
      if (width == 16) memcpy(values + 16 * i, (const char *)data + 16 * i, 16);
      else {
        int64_t half[2] = {signed_at(data, width, i), 0};
        half[1] = half[0] < 0 ? -1 : 0;
        memcpy(values + 16 * i, half, 16);
      }
    } else if (valid) {
      memcpy(values + shape.width * i, (const char *)data + shape.width * i, (size_t)shape.width);
    }
  }
  return true;
}

static bool duckdb_argument(struct ArrowArray *column, const struct ArrowSchema *wanted, duckdb_object vector,
                            int64_t rows, bool may_borrow) {
  column_shape shape = shape_of(wanted);
  duckdb_type type = duckdb_type_of(wanted);
  const void *data = DUCKDB(DUCKDB_VECTOR_DATA, void *, duckdb_object)(vector);
  uint64_t *validity = DUCKDB(DUCKDB_VECTOR_VALIDITY, uint64_t *, duckdb_object)(vector);
  bool is_plain = shape.kind == SIGNED || shape.kind == UNSIGNED || shape.kind == FLOATING || shape.kind == FIXED;
  if (may_borrow && is_plain && type.id != DUCKDB_DECIMAL) return borrow_vector(column, data, validity, rows);
  if (shape.width == 16 && (shape.kind == TEXT || shape.kind == BYTES)) return false; /* views are not made */
  return copy_vector(column, shape, type, data, validity, rows);
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

typedef struct {
  duckdb_object vector;
  const struct ArrowSchema *type;
} duckdb_result;

static bool duckdb_take(void *to, struct ArrowArray *values, int64_t first, char **why) {
  duckdb_result *result = to;
  column_shape shape = shape_of(result->type);
  duckdb_type type = duckdb_type_of(result->type);
  char *data = DUCKDB(DUCKDB_VECTOR_DATA, void *, duckdb_object)(result->vector);
  const void *given = values->buffers[1];
  uint64_t *validity = NULL;
  (void)why;
  bool is_text = shape.kind == TEXT || shape.kind == BYTES;
  if (!is_text && shape.kind != BIT && type.id != DUCKDB_DECIMAL)
    memcpy(data + first * shape.width, (const char *)given + values->offset * shape.width,
           (size_t)(values->length * shape.width));
  bool has_nulls = values->null_count != 0 && values->buffers[0] != NULL;
  if (has_nulls) {
    DUCKDB(DUCKDB_VECTOR_MAKE_VALIDITY, void, duckdb_object)(result->vector);
    validity = DUCKDB(DUCKDB_VECTOR_VALIDITY, uint64_t *, duckdb_object)(result->vector);
  }
  for (int64_t i = 0; i < values->length; i++) {
    int64_t at = first + i;
    if (has_nulls && !is_valid(values, i)) {
      validity[at >> 6] &= ~(UINT64_C(1) << (at & 63));
    } else if (is_text) {
      int64_t length;
      const char *text = text_at(values, shape, i, &length);
      DUCKDB(DUCKDB_VECTOR_ASSIGN_STRING, void, duckdb_object, uint64_t, const char *, uint64_t)(
          result->vector, (uint64_t)at, text, (uint64_t)length);
    } else if (shape.kind == BIT) {
      data[at] = bit_at(given, values->offset + i);
    } else if (type.id == DUCKDB_DECIMAL) {
      int width = decimal_width(type.precision);
      memcpy(data + width * at, (const char *)given + 16 * (values->offset + i), (size_t)width); /* little-endian */
    } else if (!has_nulls) {
      break;
    }
  }
  values->release(values);
  return true;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

static void duckdb_call(duckdb_object info, duckdb_object chunk, duckdb_object vector) {
  session *s = DUCKDB(DUCKDB_CALLED_DATA, void *, duckdb_object)(info);
  const struct ArrowSchema *arguments = s->function->arguments;
  int64_t rows = (int64_t)DUCKDB(DUCKDB_CHUNK_SIZE, uint64_t, duckdb_object)(chunk);
  duckdb_result result = {vector, s->function->returns};
  struct ArrowArray batch;
  char *why = NULL;
  if (!make_batch(&batch, arguments->n_children, rows)) why = out_of_memory;
  bool has_batch = why == NULL, may_borrow = s->function->kind == ARROYO_UDF_SYNC;
  for (int64_t i = 0; why == NULL && i < arguments->n_children; i++) {
    duckdb_object column = DUCKDB(DUCKDB_CHUNK_COLUMN, duckdb_object, duckdb_object, uint64_t)(chunk, (uint64_t)i);
    if (!duckdb_argument(batch.children[i], arguments->children[i], column, rows, may_borrow)) why = out_of_memory;
  }
  if (why == NULL) call(s, &batch, duckdb_take, &result, &why);
  else if (has_batch) batch.release(&batch);
  if (why == NULL) return;
  DUCKDB(DUCKDB_CALLED_ERROR, void, duckdb_object, const char *)(info, why);
  free_text(why);
}

/* Of a function that has a type that DuckDB has not, or that is not passed on: it says so when it is called. */
static void duckdb_refuse(duckdb_object info, duckdb_object chunk, duckdb_object vector) {
  session *s = DUCKDB(DUCKDB_CALLED_DATA, void *, duckdb_object)(info);
  const struct ArrowSchema *type = s->function->returns;
  (void)chunk, (void)vector;
  for (int64_t i = 0; duckdb_type_of(type).id && i < s->function->arguments->n_children; i++)
    type = s->function->arguments->children[i];
  char *why = text_of("%s.%s has the type %s, which is not passed on to DuckDB", this_plugin()->name, s->function->name,
                      name_of(type));
  DUCKDB(DUCKDB_CALLED_ERROR, void, duckdb_object, const char *)(info, why);
  free_text(why);
}

static bool is_passed_on(const arroyo_udf_function *function) {
  bool fits = duckdb_type_of(function->returns).id != 0;
  for (int64_t i = 0; i < function->arguments->n_children; i++)
    fits &= duckdb_type_of(function->arguments->children[i]).id != 0 &&
            function->arguments->children[i]->format[0] != 'v';
  return fits;
}

static bool duckdb_register(duckdb_object connection, uint32_t number) {
  const arroyo_udf_function *function = this_plugin()->functions[number];
  session *s = open_session(number);
  if (s == NULL) return false;
  duckdb_object made = DUCKDB(DUCKDB_CREATE_FUNCTION, duckdb_object, void)();
  bool fits = is_passed_on(function);
  DUCKDB(DUCKDB_FUNCTION_NAME, void, duckdb_object, const char *)(made, function->name);
  for (int64_t i = 0; fits && i < function->arguments->n_children; i++)
    with_type(DUCKDB_FUNCTION_PARAMETER, made, duckdb_type_of(function->arguments->children[i]));
  if (!fits) with_type(DUCKDB_FUNCTION_VARARGS, made, (duckdb_type){DUCKDB_ANY, 0, 0});
  with_type(DUCKDB_FUNCTION_RETURNS, made, fits ? duckdb_type_of(function->returns) : (duckdb_type){DUCKDB_VARCHAR, 0, 0});
  DUCKDB(DUCKDB_FUNCTION_NULLS, void, duckdb_object)(made); /* nulls are the function's */
  bool is_stable = function->volatility == ARROYO_UDF_IMMUTABLE || function->volatility == ARROYO_UDF_STABLE;
  if (function->kind == ARROYO_UDF_ASYNC || !is_stable) DUCKDB(DUCKDB_FUNCTION_VOLATILE, void, duckdb_object)(made);
  DUCKDB(DUCKDB_FUNCTION_DATA, void, duckdb_object, void *, void (*)(void *))(made, s, close_session);
  DUCKDB(DUCKDB_FUNCTION_CALL, void, duckdb_object, void (*)(duckdb_object, duckdb_object, duckdb_object))(
      made, fits ? duckdb_call : duckdb_refuse);
  bool is_registered = !DUCKDB(DUCKDB_REGISTER_FUNCTION, int, duckdb_object, duckdb_object)(connection, made);
  DUCKDB(DUCKDB_DESTROY_FUNCTION, void, duckdb_object *)(&made); /* closes the session with the last copy */
  return is_registered;
}

/* False: the copy is that of another DuckDB in this process, whose functions know nothing of this one's objects. */
static bool take_duckdb_api(const duckdb_slot *api) {
  pthread_mutex_lock(&duckdb_api_lock);
  if (duckdb_api[DUCKDB_CONNECT] == NULL) memcpy(duckdb_api, api, sizeof duckdb_api);
  bool is_same = !memcmp(duckdb_api, api, sizeof duckdb_api);
  pthread_mutex_unlock(&duckdb_api_lock);
  return is_same;
}

bool arroyo_udf_duckdb_load(duckdb_object info, const duckdb_access *access) {
  const arroyo_udf_descriptor *plugin = this_plugin();
  const duckdb_slot *api = access->get_api(info, "v1.2.0");
  if (api == NULL) return false; /* DuckDB says that it is too old */
  if (!take_duckdb_api(api)) {
    char *why = text_of("another copy of DuckDB has loaded %s in this process", plugin->name);
    access->set_error(info, why);
    free_text(why);
    return false;
  }
  duckdb_object connection = NULL;
  if (DUCKDB(DUCKDB_CONNECT, int, duckdb_object, duckdb_object *)(*access->get_database(info), &connection))
    return access->set_error(info, "there is no connection to the database"), false;
  bool is_whole = true;
  for (uint32_t i = 0; is_whole && i < plugin->n_functions; i++) {
    if (!is_callable(plugin->functions[i])) continue;
    is_whole = duckdb_register(connection, i);
    if (!is_whole) {
      char *why = text_of("DuckDB does not take the function %s.%s: is there one of this name?", plugin->name,
                          plugin->functions[i]->name);
      access->set_error(info, why);
      free_text(why);
    }
  }
  DUCKDB(DUCKDB_DISCONNECT, void, duckdb_object *)(&connection);
  return is_whole;
}

#endif
