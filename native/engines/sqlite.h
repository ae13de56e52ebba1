/* sqlite.h: functions of SQLite (tried with 3.40.1 to 3.54.1).
 *
 *     sqlite> .load ./libudf.so
 *
 * SQLite calls row by row, with values that have types of their own. An argument takes a value that it can hold without a
 * loss; any other value is an error that names it. A result is SQLite's nearest type: bool and integers are INTEGER. */
#ifndef ARROYO_UDF_ENGINES_SQLITE_H
#define ARROYO_UDF_ENGINES_SQLITE_H

#include <math.h>
#include "calls.h"

typedef struct sqlite_context sqlite_context;
typedef struct sqlite_value sqlite_value;

/* Places of functions in sqlite3_api_routines, which grows at its end only. */
enum {
  SQLITE_LIBVERSION_NUMBER = 67,
  SQLITE_MPRINTF = 69,
  SQLITE_RESULT_DOUBLE = 79,
  SQLITE_RESULT_ERROR = 80,
  SQLITE_RESULT_INT64 = 83,
  SQLITE_RESULT_NULL = 84,
  SQLITE_USER_DATA = 101,
  SQLITE_VALUE_BLOB = 102,
  SQLITE_VALUE_BYTES = 103,
  SQLITE_VALUE_DOUBLE = 105,
  SQLITE_VALUE_INT64 = 107,
  SQLITE_VALUE_TEXT = 109,
  SQLITE_VALUE_TYPE = 113,
  SQLITE_CREATE_FUNCTION_V2 = 162,
  SQLITE_RESULT_BLOB64 = 201,
  SQLITE_RESULT_TEXT64 = 202
};
enum { SQLITE_INTEGER = 1, SQLITE_FLOAT = 2, SQLITE_TEXT = 3, SQLITE_BLOB = 4, SQLITE_NULL = 5 };
enum { SQLITE_OK = 0, SQLITE_ERROR = 1, SQLITE_UTF8 = 1, SQLITE_DETERMINISTIC = 0x800 };
#define SQLITE_LEAST 3008003 /* 3.8.3, which knows deterministic functions */
#define SQLITE_COPIES ((void (*)(void *))-1)

/* SQLite's functions; set once. There may be two copies of SQLite in a process; the second one is refused, because a call
 * does not say whose it is. */
static const sqlite_slot *sqlite_api;
#define SQLITE(slot, result, ...) ((result(*)(__VA_ARGS__))sqlite_api[slot])

static bool sqlite_fits(const struct ArrowSchema *type) {
  column_kind kind = shape_of(type).kind;
  return kind == BIT || kind == SIGNED || kind == UNSIGNED || kind == FLOATING || kind == TEXT || kind == BYTES;
}

/* ---- Arguments -------------------------------------------------------------------------------------------------- */

static bool integer_fits(column_shape shape, int64_t value) {
  if (shape.kind == BIT) return value == 0 || value == 1;
  if (shape.kind == FLOATING) {
    int64_t largest = shape.width == 4 ? 1 << 24 : INT64_C(1) << 53;
    return value >= -largest && value <= largest;
  }
  if (shape.kind == UNSIGNED) return value >= 0 && (shape.width == 8 || value >> (8 * shape.width) == 0);
  return shape.width == 8 || (value >= -(INT64_C(1) << (8 * shape.width - 1)) && value < INT64_C(1) << (8 * shape.width - 1));
}

static bool put_number(struct ArrowArray *column, column_shape shape, int64_t value) {
  own_buffers *own = column->private_data;
  if (!integer_fits(shape, value)) return false;
  if (shape.kind == FLOATING) put_float(own->memory[1], shape.width, 0, (double)value);
  else if (shape.kind == BIT) *(uint8_t *)own->memory[1] = (uint8_t)value;
  else put_integer(own->memory[1], shape.width, 0, (uint64_t)value);
  return true;
}

/* The value of a row as a column with one row. */
static bool sqlite_argument(struct ArrowArray *column, const struct ArrowSchema *wanted,
                            sqlite_value *value, char **why) {
  column_shape shape = shape_of(wanted);
  int type = SQLITE(SQLITE_VALUE_TYPE, int, sqlite_value *)(value);
  bool is_text = shape.kind == TEXT || shape.kind == BYTES, fits = true;
  const void *bytes = type == SQLITE_TEXT   ? (const void *)SQLITE(SQLITE_VALUE_TEXT, const unsigned char *, sqlite_value *)(value)
                      : type == SQLITE_BLOB ? SQLITE(SQLITE_VALUE_BLOB, const void *, sqlite_value *)(value)
                                            : NULL;
  int length = bytes ? SQLITE(SQLITE_VALUE_BYTES, int, sqlite_value *)(value) : 0;
  if (!make_own(column, shape, 1, length)) return *why = out_of_memory, false;
  own_buffers *own = column->private_data;
  if (type == SQLITE_NULL) return column->null_count = 1, true;
  set_bit(own->memory[0], 0);
  switch (type) {
    case SQLITE_INTEGER:
      fits = !is_text && put_number(column, shape, SQLITE(SQLITE_VALUE_INT64, int64_t, sqlite_value *)(value));
      break;
    case SQLITE_FLOAT: {
      double number = SQLITE(SQLITE_VALUE_DOUBLE, double, sqlite_value *)(value);
      if (shape.kind == FLOATING) put_float(own->memory[1], shape.width, 0, number);
      else fits = !is_text && fabs(number) < 9e18 && (double)(int64_t)number == number && put_number(column, shape, (int64_t)number);
      break;
    }
    default:
      fits = type == SQLITE_TEXT ? shape.kind == TEXT : shape.kind == BYTES;
      if (fits && length) memcpy(own->memory[2], bytes, (size_t)length);
      if (fits) put_integer(own->memory[1], shape.width, 1, (uint64_t)length);
  }
  static const char *names[] = {"", "INTEGER", "REAL", "TEXT", "BLOB"};
  if (!fits) *why = text_of("the argument %s is %s, which cannot hold this %s", wanted->name, name_of(wanted), names[type]);
  return fits;
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

typedef struct {
  sqlite_context *context;
  const struct ArrowSchema *type;
} sqlite_result;

static bool sqlite_take(void *to, struct ArrowArray *values, int64_t first, char **why) {
  sqlite_result *result = to;
  sqlite_context *context = result->context;
  column_shape shape = shape_of(result->type);
  const void *data = values->buffers[1];
  int64_t i = values->offset, length;
  (void)first, (void)why;
  if (!is_valid(values, 0)) {
    SQLITE(SQLITE_RESULT_NULL, void, sqlite_context *)(context);
  } else if (shape.kind == FLOATING) {
    double number = shape.width == 4 ? ((const float *)data)[i] : ((const double *)data)[i];
    SQLITE(SQLITE_RESULT_DOUBLE, void, sqlite_context *, double)(context, number);
  } else if (shape.kind == TEXT) {
    const char *text = text_at(values, shape, 0, &length);
    SQLITE(SQLITE_RESULT_TEXT64, void, sqlite_context *, const char *, uint64_t, void (*)(void *), unsigned char)(
        context, text, (uint64_t)length, SQLITE_COPIES, SQLITE_UTF8);
  } else if (shape.kind == BYTES) {
    const char *text = text_at(values, shape, 0, &length);
    SQLITE(SQLITE_RESULT_BLOB64, void, sqlite_context *, const void *, uint64_t, void (*)(void *))(
        context, text, (uint64_t)length, SQLITE_COPIES);
  } else if (shape.kind == UNSIGNED && shape.width == 8 && ((const uint64_t *)data)[i] > INT64_MAX) {
    return *why = text_of("the result %llu is more than SQLite's INTEGER can hold", (unsigned long long)((const uint64_t *)data)[i]), false;
  } else {
    int64_t number = shape.kind == BIT        ? bit_at(data, i)
                     : shape.kind == UNSIGNED ? (int64_t)unsigned_at(data, shape.width, i)
                                              : signed_at(data, shape.width, i);
    SQLITE(SQLITE_RESULT_INT64, void, sqlite_context *, int64_t)(context, number);
  }
  values->release(values);
  return true;
}

static void sqlite_call(sqlite_context *context, int n, sqlite_value **given) {
  session *s = SQLITE(SQLITE_USER_DATA, void *, sqlite_context *)(context);
  const arroyo_udf_function *function = s->function;
  struct ArrowArray batch;
  sqlite_result result = {context, function->returns};
  char *why = NULL;
  for (int i = 0; i < n && why == NULL; i++)
    if (!sqlite_fits(function->arguments->children[i]))
      why = text_of("the argument %s is %s, which SQLite has not", function->arguments->children[i]->name,
                    name_of(function->arguments->children[i]));
  if (why == NULL && !sqlite_fits(function->returns))
    why = text_of("the result is %s, which SQLite has not", name_of(function->returns));
  bool has_batch = why == NULL && make_batch(&batch, n, 1);
  if (why == NULL && !has_batch) why = out_of_memory;
  for (int i = 0; i < n && why == NULL; i++)
    sqlite_argument(batch.children[i], function->arguments->children[i], given[i], &why);
  bool is_called = why == NULL;
  if (is_called) call(s, &batch, sqlite_take, &result, &why);
  else if (has_batch) batch.release(&batch);
  if (why == NULL) return;
  char *text = is_called ? why : text_of("%s.%s: %s", this_plugin()->name, function->name, why);
  SQLITE(SQLITE_RESULT_ERROR, void, sqlite_context *, const char *, int)(context, text, -1);
  if (text != why) free_text(text);
  free_text(why);
}

int arroyo_udf_sqlite_load(sqlite_connection *connection, char **error, const sqlite_slot *api) {
  const arroyo_udf_descriptor *plugin = this_plugin();
  char *(*format)(const char *, ...) = (char *(*)(const char *, ...))api[SQLITE_MPRINTF];
  if (sqlite_api != NULL && sqlite_api != api) {
    *error = format("another copy of SQLite has loaded %s in this process", plugin->name);
    return SQLITE_ERROR;
  }
  sqlite_api = api;
  if (SQLITE(SQLITE_LIBVERSION_NUMBER, int, void)() < SQLITE_LEAST) {
    *error = format("%s needs SQLite 3.8.3 or newer", plugin->name);
    return SQLITE_ERROR;
  }
  for (uint32_t i = 0; i < plugin->n_functions; i++) {
    const arroyo_udf_function *function = plugin->functions[i];
    if (!is_callable(function)) continue;
    bool is_immutable = function->kind == ARROYO_UDF_SYNC && function->volatility == ARROYO_UDF_IMMUTABLE;
    int how = SQLITE_UTF8 | (is_immutable ? SQLITE_DETERMINISTIC : 0);
    session *s = open_session(i);
    if (s == NULL) return SQLITE_ERROR;
    int status = SQLITE(SQLITE_CREATE_FUNCTION_V2, int, sqlite_connection *, const char *, int, int, void *,
                        void (*)(sqlite_context *, int, sqlite_value **), void *, void *, void (*)(void *))(
        connection, function->name, (int)function->arguments->n_children, how, s, sqlite_call, NULL, NULL, close_session);
    if (status != SQLITE_OK) return status; /* SQLite has closed the session */
  }
  return SQLITE_OK;
}

#endif
