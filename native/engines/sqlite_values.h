/* sqlite_values.h: SQLite's functions, and its values as those of functions.
 *
 * SQLite has values with types of their own. An argument takes a value that it can hold without a loss; any other value is
 * an error that names it. A result is SQLite's nearest type: bool and integers are INTEGER. */
#ifndef ARROYO_UDF_ENGINES_SQLITE_VALUES_H
#define ARROYO_UDF_ENGINES_SQLITE_VALUES_H

#include <math.h>
#include "calls.h"
#include "packed.h"

typedef struct sqlite_context sqlite_context;
typedef struct sqlite_value sqlite_value;

/* Places of functions in sqlite3_api_routines, which grows at its end only. */
enum {
  SQLITE_AGGREGATE_CONTEXT = 0,
  SQLITE_DECLARE_VTAB = 50,
  SQLITE_LIBVERSION_NUMBER = 67,
  SQLITE_MPRINTF = 69,
  SQLITE_RESULT_DOUBLE = 79,
  SQLITE_RESULT_ERROR = 80,
  SQLITE_RESULT_INT64 = 83,
  SQLITE_RESULT_NULL = 84,
  SQLITE_RESULT_VALUE = 89,
  SQLITE_USER_DATA = 101,
  SQLITE_VALUE_BLOB = 102,
  SQLITE_VALUE_BYTES = 103,
  SQLITE_VALUE_DOUBLE = 105,
  SQLITE_VALUE_INT64 = 107,
  SQLITE_VALUE_TEXT = 109,
  SQLITE_VALUE_TYPE = 113,
  SQLITE_CREATE_MODULE_V2 = 119,
  SQLITE_CREATE_FUNCTION_V2 = 162,
  SQLITE_RESULT_BLOB64 = 201,
  SQLITE_RESULT_TEXT64 = 202,
  SQLITE_VALUE_DUP = 204,
  SQLITE_VALUE_FREE = 205
};
enum { SQLITE_INTEGER = 1, SQLITE_FLOAT = 2, SQLITE_TEXT = 3, SQLITE_BLOB = 4, SQLITE_NULL = 5 };
enum { SQLITE_OK = 0, SQLITE_ERROR = 1, SQLITE_NOMEM = 7, SQLITE_CONSTRAINT = 19 };
enum { SQLITE_UTF8 = 1, SQLITE_DETERMINISTIC = 0x800 };
#define SQLITE_LEAST 3009000 /* 3.9.0, which knows tables that exist without a CREATE */
#define SQLITE_COPIES ((void (*)(void *))-1)

/* SQLite's functions; set once. There may be two copies of SQLite in a process; the second one is refused, because a call
 * does not say whose it is. */
static const sqlite_slot *sqlite_api;
#define SQLITE(slot, result, ...) ((result(*)(__VA_ARGS__))sqlite_api[slot])

static bool sqlite_fits(const struct ArrowSchema *type) {
  column_kind kind = shape_of(type).kind;
  return kind == BIT || kind == SIGNED || kind == UNSIGNED || kind == FLOATING || kind == TEXT || kind == BYTES;
}

/* Why SQLite cannot call a function with these types; NULL: it can. returns: NULL for a table function. */
static char *sqlite_refusal(const struct ArrowSchema *arguments, const struct ArrowSchema *returns) {
  for (int64_t i = 0; i < arguments->n_children; i++)
    if (!sqlite_fits(arguments->children[i]) || arguments->children[i]->format[0] == 'v') /* views are not made */
      return text_of("the argument %s is %s, which SQLite has not", arguments->children[i]->name,
                     name_of(arguments->children[i]));
  return returns == NULL || sqlite_fits(returns) ? NULL : text_of("the result is %s, which SQLite has not", name_of(returns));
}

/* Ends a call with an error, and frees its text. */
static void sqlite_fail(sqlite_context *context, char *why) {
  SQLITE(SQLITE_RESULT_ERROR, void, sqlite_context *, const char *, int)(context, why, -1);
  free_text(why);
}

/* The text of an error of an argument or a result, with the function. It frees the given one. */
static char *sqlite_named(const arroyo_udf_function *function, char *why) {
  char *text = text_of("%s.%s: %s", this_plugin()->name, function->name, why);
  free_text(why);
  return text;
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

/* A value of SQLite as one of an argument: null, a number of its width (a bool: of one byte), or a text. */
typedef struct {
  bool valid;
  char number[8];
  const void *text;
  int length;
} sqlite_cell;

static bool put_number(sqlite_cell *cell, column_shape shape, int64_t value) {
  if (!integer_fits(shape, value)) return false;
  if (shape.kind == FLOATING) put_float(cell->number, shape.width, 0, (double)value);
  else put_integer(cell->number, shape.kind == BIT ? 1 : shape.width, 0, (uint64_t)value);
  return true;
}

/* false: it does not fit. */
static bool sqlite_read(sqlite_cell *cell, const struct ArrowSchema *wanted, column_shape shape, sqlite_value *value,
                        char **why) {
  int type = SQLITE(SQLITE_VALUE_TYPE, int, sqlite_value *)(value);
  bool is_text = shape.kind == TEXT || shape.kind == BYTES, fits = true;
  *cell = (sqlite_cell){.valid = type != SQLITE_NULL};
  switch (type) {
    case SQLITE_NULL: break;
    case SQLITE_INTEGER:
      fits = !is_text && put_number(cell, shape, SQLITE(SQLITE_VALUE_INT64, int64_t, sqlite_value *)(value));
      break;
    case SQLITE_FLOAT: {
      double number = SQLITE(SQLITE_VALUE_DOUBLE, double, sqlite_value *)(value);
      if (shape.kind == FLOATING) put_float(cell->number, shape.width, 0, number);
      else fits = !is_text && fabs(number) < 9e18 && (double)(int64_t)number == number && put_number(cell, shape, (int64_t)number);
      break;
    }
    default:
      fits = type == SQLITE_TEXT ? shape.kind == TEXT : shape.kind == BYTES;
      cell->text = type == SQLITE_TEXT ? (const void *)SQLITE(SQLITE_VALUE_TEXT, const unsigned char *, sqlite_value *)(value)
                                       : SQLITE(SQLITE_VALUE_BLOB, const void *, sqlite_value *)(value);
      cell->length = cell->text ? SQLITE(SQLITE_VALUE_BYTES, int, sqlite_value *)(value) : 0;
  }
  static const char *names[] = {"", "INTEGER", "REAL", "TEXT", "BLOB"};
  if (!fits) *why = text_of("the argument %s is %s, which cannot hold this %s", wanted->name, name_of(wanted), names[type]);
  return fits;
}

/* The value of a row as a column with one row. */
static bool sqlite_argument(struct ArrowArray *column, const struct ArrowSchema *wanted,
                            sqlite_value *value, char **why) {
  column_shape shape = shape_of(wanted);
  sqlite_cell cell;
  if (!sqlite_read(&cell, wanted, shape, value, why)) return false;
  if (!make_own(column, shape, 1, cell.length)) return *why = out_of_memory, false;
  own_buffers *own = column->private_data;
  if (!cell.valid) return column->null_count = 1, true;
  set_bit(own->memory[0], 0);
  if (shape.kind == TEXT || shape.kind == BYTES) {
    if (cell.length) memcpy(own->memory[2], cell.text, (size_t)cell.length);
    put_integer(own->memory[1], shape.width, 1, (uint64_t)cell.length);
  } else {
    memcpy(own->memory[1], cell.number, shape.kind == BIT ? 1 : (size_t)shape.width);
  }
  return true;
}

/* The value of a row behind those of its group. */
static bool sqlite_pack(bytes *to, const struct ArrowSchema *wanted, sqlite_value *value, char **why) {
  column_shape shape = shape_of(wanted);
  sqlite_cell cell;
  if (!sqlite_read(&cell, wanted, shape, value, why)) return false;
  bool done = !cell.valid ? append(to, "\0", 1)
              : shape.kind == TEXT || shape.kind == BYTES
                  ? pack_text(to, cell.text, cell.length)
                  : append(to, "\1", 1) && append(to, cell.number, shape.kind == BIT ? 1 : (size_t)shape.width);
  if (!done) *why = out_of_memory;
  return done;
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

/* row: counted from the array's offset. false: SQLite cannot hold it. */
static bool sqlite_give(sqlite_context *context, const struct ArrowSchema *type, const struct ArrowArray *values, int64_t row,
                        char **why) {
  column_shape shape = shape_of(type);
  int64_t i = values->offset + row, length;
  if (!is_valid(values, row)) {
    SQLITE(SQLITE_RESULT_NULL, void, sqlite_context *)(context);
    return true;
  }
  const void *data = values->buffers[1];
  if (shape.kind == FLOATING) {
    double number = shape.width == 4 ? ((const float *)data)[i] : ((const double *)data)[i];
    SQLITE(SQLITE_RESULT_DOUBLE, void, sqlite_context *, double)(context, number);
  } else if (shape.kind == TEXT) {
    const char *text = text_at(values, shape, row, &length);
    SQLITE(SQLITE_RESULT_TEXT64, void, sqlite_context *, const char *, uint64_t, void (*)(void *), unsigned char)(
        context, text, (uint64_t)length, SQLITE_COPIES, SQLITE_UTF8);
  } else if (shape.kind == BYTES) {
    const char *text = text_at(values, shape, row, &length);
    SQLITE(SQLITE_RESULT_BLOB64, void, sqlite_context *, const void *, uint64_t, void (*)(void *))(
        context, text, (uint64_t)length, SQLITE_COPIES);
  } else if (shape.kind == UNSIGNED && shape.width == 8 && ((const uint64_t *)data)[i] > INT64_MAX) {
    *why = text_of("the result %llu is more than SQLite's INTEGER can hold", (unsigned long long)((const uint64_t *)data)[i]);
    return false;
  } else {
    int64_t number = shape.kind == BIT        ? bit_at(data, i)
                     : shape.kind == UNSIGNED ? (int64_t)unsigned_at(data, shape.width, i)
                                              : signed_at(data, shape.width, i);
    SQLITE(SQLITE_RESULT_INT64, void, sqlite_context *, int64_t)(context, number);
  }
  return true;
}

typedef struct {
  sqlite_context *context;
  const struct ArrowSchema *type;
} sqlite_result;

/* The only value of a call. */
static bool sqlite_take(void *to, struct ArrowArray *values, int64_t first, char **why) {
  sqlite_result *result = to;
  (void)first;
  if (!sqlite_give(result->context, result->type, values, 0, why)) return false;
  values->release(values);
  return true;
}

#endif
