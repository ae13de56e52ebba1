/* duckdb_values.h: DuckDB's functions, and its vectors as arrays.
 *
 * Numbers, dates and times are read where they lie; texts, bools and decimals are copied, and so is everything that an
 * async function gets, because a stuck call may still read it. */
#ifndef ARROYO_UDF_ENGINES_DUCKDB_VALUES_H
#define ARROYO_UDF_ENGINES_DUCKDB_VALUES_H

#include "calls.h"

/* Places of functions in the API's table, whose first part does not change. */
enum {
  DUCKDB_CONNECT = 3,
  DUCKDB_DISCONNECT = 6,
  DUCKDB_FREE = 25,
  DUCKDB_VECTOR_SIZE = 26,
  DUCKDB_DESTROY_VALUE = 92,
  DUCKDB_GET_BOOL = 118,
  DUCKDB_GET_INT8 = 119,
  DUCKDB_GET_UINT8 = 120,
  DUCKDB_GET_INT16 = 121,
  DUCKDB_GET_UINT16 = 122,
  DUCKDB_GET_INT32 = 123,
  DUCKDB_GET_UINT32 = 124,
  DUCKDB_GET_INT64 = 125,
  DUCKDB_GET_UINT64 = 126,
  DUCKDB_GET_FLOAT = 129,
  DUCKDB_GET_DOUBLE = 130,
  DUCKDB_GET_DATE = 131,
  DUCKDB_GET_TIME = 132,
  DUCKDB_GET_TIMESTAMP = 134,
  DUCKDB_GET_BLOB = 137,
  DUCKDB_GET_DECIMAL = 139,
  DUCKDB_GET_VARCHAR = 142,
  DUCKDB_IS_NULL = 149,
  DUCKDB_CREATE_LOGICAL_TYPE = 156,
  DUCKDB_CREATE_LIST_TYPE = 159,
  DUCKDB_CREATE_STRUCT_TYPE = 163,
  DUCKDB_CREATE_DECIMAL_TYPE = 165,
  DUCKDB_DESTROY_LOGICAL_TYPE = 184,
  DUCKDB_CHUNK_COLUMN = 190,
  DUCKDB_CHUNK_SIZE = 191,
  DUCKDB_CHUNK_SET_SIZE = 192,
  DUCKDB_VECTOR_DATA = 194,
  DUCKDB_VECTOR_VALIDITY = 195,
  DUCKDB_VECTOR_MAKE_VALIDITY = 196,
  DUCKDB_VECTOR_ASSIGN_STRING = 198,
  DUCKDB_LIST_CHILD = 199,
  DUCKDB_LIST_SET_SIZE = 201,
  DUCKDB_LIST_RESERVE = 202,
  DUCKDB_STRUCT_CHILD = 203,
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
  DUCKDB_CREATE_AGGREGATE = 226,
  DUCKDB_DESTROY_AGGREGATE = 227,
  DUCKDB_AGGREGATE_NAME = 228,
  DUCKDB_AGGREGATE_PARAMETER = 229,
  DUCKDB_AGGREGATE_RETURNS = 230,
  DUCKDB_AGGREGATE_FUNCTIONS = 231,
  DUCKDB_AGGREGATE_DESTRUCTOR = 232,
  DUCKDB_REGISTER_AGGREGATE = 233,
  DUCKDB_AGGREGATE_NULLS = 234,
  DUCKDB_AGGREGATE_EXTRA = 235,
  DUCKDB_AGGREGATE_DATA = 236,
  DUCKDB_AGGREGATE_ERROR = 237,
  DUCKDB_CREATE_TABLE = 242,
  DUCKDB_DESTROY_TABLE = 243,
  DUCKDB_TABLE_NAME = 244,
  DUCKDB_TABLE_PARAMETER = 245,
  DUCKDB_TABLE_EXTRA = 247,
  DUCKDB_TABLE_BIND = 248,
  DUCKDB_TABLE_INIT = 249,
  DUCKDB_TABLE_SCAN = 251,
  DUCKDB_REGISTER_TABLE = 253,
  DUCKDB_BIND_EXTRA = 254,
  DUCKDB_BIND_COLUMN = 255,
  DUCKDB_BIND_PARAMETER = 257,
  DUCKDB_BIND_DATA = 259,
  DUCKDB_BIND_ERROR = 261,
  DUCKDB_INIT_BOUND = 263,
  DUCKDB_INIT_DATA = 264,
  DUCKDB_INIT_ERROR = 268,
  DUCKDB_SCAN_DATA = 271,
  DUCKDB_GET_TIMESTAMP_TZ = 326,
  DUCKDB_GET_TIMESTAMP_S = 327,
  DUCKDB_GET_TIMESTAMP_MS = 328,
  DUCKDB_GET_TIMESTAMP_NS = 329,
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

/* The type of an argument that DuckDB has not, or that is not passed on; NULL: there is none. */
static const struct ArrowSchema *duckdb_unlike(const struct ArrowSchema *arguments) {
  for (int64_t i = 0; i < arguments->n_children; i++)
    if (!duckdb_type_of(arguments->children[i]).id || arguments->children[i]->format[0] == 'v') return arguments->children[i];
  return NULL;
}

static char *duckdb_refusal(const arroyo_udf_function *function, const struct ArrowSchema *type) {
  return text_of("%s.%s has the type %s, which is not passed on to DuckDB", this_plugin()->name, function->name, name_of(type));
}

/* Why DuckDB cannot call a function whose result is no list of rows; NULL: it can. */
static char *duckdb_function_refusal(const arroyo_udf_function *function) {
  const struct ArrowSchema *wrong = duckdb_type_of(function->returns).id ? duckdb_unlike(function->arguments) : function->returns;
  return wrong ? duckdb_refusal(function, wrong) : NULL;
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

/* The columns of a chunk. false: no memory. */
static bool duckdb_batch(struct ArrowArray *batch, const struct ArrowSchema *arguments, duckdb_object chunk, bool may_borrow,
                         int64_t *rows) {
  *rows = (int64_t)DUCKDB(DUCKDB_CHUNK_SIZE, uint64_t, duckdb_object)(chunk);
  if (!make_batch(batch, arguments->n_children, *rows)) return false;
  for (int64_t i = 0; i < arguments->n_children; i++) {
    duckdb_object column = DUCKDB(DUCKDB_CHUNK_COLUMN, duckdb_object, duckdb_object, uint64_t)(chunk, (uint64_t)i);
    if (!duckdb_argument(batch->children[i], arguments->children[i], column, *rows, may_borrow)) {
      batch->release(batch);
      return false;
    }
  }
  return true;
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

typedef struct {
  duckdb_object vector;
  const struct ArrowSchema *type;
} duckdb_result;

static void duckdb_give_null(duckdb_object vector, int64_t row) {
  DUCKDB(DUCKDB_VECTOR_MAKE_VALIDITY, void, duckdb_object)(vector);
  uint64_t *validity = DUCKDB(DUCKDB_VECTOR_VALIDITY, uint64_t *, duckdb_object)(vector);
  validity[row >> 6] &= ~(UINT64_C(1) << (row & 63));
}

/* Writes values into a vector, from row `first` on. */
static void duckdb_give(duckdb_object vector, const struct ArrowSchema *of, const struct ArrowArray *values, int64_t first) {
  column_shape shape = shape_of(of);
  duckdb_type type = duckdb_type_of(of);
  char *data = DUCKDB(DUCKDB_VECTOR_DATA, void *, duckdb_object)(vector);
  const void *given = values->buffers[1];
  uint64_t *validity = NULL;
  bool is_text = shape.kind == TEXT || shape.kind == BYTES;
  if (!is_text && shape.kind != BIT && type.id != DUCKDB_DECIMAL)
    memcpy(data + first * shape.width, (const char *)given + values->offset * shape.width,
           (size_t)(values->length * shape.width));
  bool has_nulls = values->null_count != 0 && values->buffers[0] != NULL;
  if (has_nulls) {
    DUCKDB(DUCKDB_VECTOR_MAKE_VALIDITY, void, duckdb_object)(vector);
    validity = DUCKDB(DUCKDB_VECTOR_VALIDITY, uint64_t *, duckdb_object)(vector);
  }
  for (int64_t i = 0; i < values->length; i++) {
    int64_t at = first + i;
    if (has_nulls && !is_valid(values, i)) {
      validity[at >> 6] &= ~(UINT64_C(1) << (at & 63));
    } else if (is_text) {
      int64_t length;
      const char *text = text_at(values, shape, i, &length);
      DUCKDB(DUCKDB_VECTOR_ASSIGN_STRING, void, duckdb_object, uint64_t, const char *, uint64_t)(
          vector, (uint64_t)at, text, (uint64_t)length);
    } else if (shape.kind == BIT) {
      data[at] = bit_at(given, values->offset + i);
    } else if (type.id == DUCKDB_DECIMAL) {
      int width = decimal_width(type.precision);
      memcpy(data + width * at, (const char *)given + 16 * (values->offset + i), (size_t)width); /* little-endian */
    } else if (!has_nulls) {
      break;
    }
  }
}

static bool duckdb_take(void *to, struct ArrowArray *values, int64_t first, char **why) {
  duckdb_result *result = to;
  (void)why;
  duckdb_give(result->vector, result->type, values, first);
  values->release(values);
  return true;
}

#endif
