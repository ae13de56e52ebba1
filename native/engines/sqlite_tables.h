/* sqlite_tables.h: table functions of SQLite: tables that exist without a CREATE, whose hidden columns are the arguments.
 *
 *     SELECT word FROM words('a b')        SELECT word FROM t, words(t.text)
 *
 * A scan of the table is one call; its rows are kept until the next one. */
#ifndef ARROYO_UDF_ENGINES_SQLITE_TABLES_H
#define ARROYO_UDF_ENGINES_SQLITE_TABLES_H

#include "sqlite_values.h"

/* ---- SQLite's structs ------------------------------------------------------------------------------------------- */

typedef struct {
  const void *module;
  int references;
  char *error; /* of SQLite's memory; SQLite frees it */
} sqlite_table;

typedef struct {
  sqlite_table *table;
} sqlite_cursor;

/* What SQLite knows about the columns of a scan. */
typedef struct {
  int n_constraints;
  struct {
    int column;
    unsigned char operator, usable;
    int offset;
  } *constraints;
  int n_orders;
  void *orders;
  struct {
    int place; /* of the value among the arguments of the scan, from 1 on */
    unsigned char omit;
  } *uses;
  int number;
  char *text;
  int frees_text, is_ordered;
  double cost;
} sqlite_plan;

typedef struct {
  int version;
  int (*create)(sqlite_connection *, void *, int, const char *const *, sqlite_table **, char **);
  int (*connect)(sqlite_connection *, void *, int, const char *const *, sqlite_table **, char **);
  int (*best_index)(sqlite_table *, sqlite_plan *);
  int (*disconnect)(sqlite_table *);
  int (*destroy)(sqlite_table *);
  int (*open)(sqlite_table *, sqlite_cursor **);
  int (*close)(sqlite_cursor *);
  int (*filter)(sqlite_cursor *, int, const char *, int, sqlite_value **);
  int (*next)(sqlite_cursor *);
  int (*eof)(sqlite_cursor *);
  int (*column)(sqlite_cursor *, sqlite_context *, int);
  int (*rowid)(sqlite_cursor *, int64_t *);
  void *of_writing[12];
} sqlite_module;

enum { SQLITE_EQUAL = 2 };

/* ---- The table -------------------------------------------------------------------------------------------------- */

typedef struct {
  sqlite_table base;
  session *session;
} function_table;

typedef struct {
  sqlite_cursor base;
  struct ArrowArray rows; /* the list of one call; released: none */
  int64_t at, end;        /* in the items of the list */
  sqlite_value **arguments;
} function_cursor;

/* The struct of a row. */
static const struct ArrowSchema *row_of(const arroyo_udf_function *function) { return function->returns->children[0]; }

static const arroyo_udf_function *function_of(const sqlite_table *table) {
  return ((const function_table *)table)->session->function;
}

static char *(*sqlite_text(void))(const char *, ...) { return (char *(*)(const char *, ...))sqlite_api[SQLITE_MPRINTF]; }

/* It frees `why`. */
static int sqlite_table_failed(sqlite_table *table, char *why) {
  table->error = sqlite_text()("%s", why);
  free_text(why);
  return SQLITE_ERROR;
}

/* A name in quotes, with a comma before all but the first. */
static bool append_name(bytes *to, const char *name, const char *end) {
  bool done = append(to, to->data[to->length - 1] == '(' ? "\"" : ", \"", to->data[to->length - 1] == '(' ? 1 : 3);
  for (; *name; name++) done = done && append(to, "\"\"", *name == '"' ? 2 : 0) && (*name == '"' || append(to, name, 1));
  return done && append(to, end, strlen(end));
}

/* An argument that has the name of a column of the rows gets another one. */
static bool append_columns(bytes *to, const struct ArrowSchema *row, const struct ArrowSchema *arguments) {
  bool done = append(to, "CREATE TABLE t(", 15);
  for (int64_t i = 0; done && i < row->n_children; i++) done = append_name(to, row->children[i]->name, "\"");
  for (int64_t i = 0; done && i < arguments->n_children; i++) {
    bool is_taken = false;
    for (int64_t c = 0; c < row->n_children; c++)
      is_taken |= !strcasecmp(row->children[c]->name, arguments->children[i]->name);
    done = append_name(to, arguments->children[i]->name, is_taken ? "_argument\" HIDDEN" : "\" HIDDEN");
  }
  return done && append(to, ")", 2);
}

static int sqlite_connect(sqlite_connection *connection, void *data, int n, const char *const *words, sqlite_table **table,
                          char **error) {
  session *s = data;
  const struct ArrowSchema *arguments = s->function->arguments, *row = row_of(s->function);
  char *why = NULL;
  (void)n, (void)words;
  for (int64_t i = 0; why == NULL && i < row->n_children; i++)
    if (!sqlite_fits(row->children[i]))
      why = text_of("the column %s is %s, which SQLite has not", row->children[i]->name, name_of(row->children[i]));
  if (why == NULL) why = sqlite_refusal(arguments, NULL);
  if (why != NULL) {
    why = sqlite_named(s->function, why);
    *error = sqlite_text()("%s", why);
    free_text(why);
    return SQLITE_ERROR;
  }
  bytes columns = {NULL, 0, 0};
  function_table *made = calloc(1, sizeof *made);
  bool is_whole = made != NULL && append_columns(&columns, row, arguments);
  int status = !is_whole ? SQLITE_NOMEM
                         : SQLITE(SQLITE_DECLARE_VTAB, int, sqlite_connection *, const char *)(connection, columns.data);
  free_bytes(&columns);
  if (status != SQLITE_OK) {
    free(made);
    return status;
  }
  made->session = s;
  *table = &made->base;
  return SQLITE_OK;
}

static int sqlite_disconnect(sqlite_table *table) {
  free(table);
  return SQLITE_OK;
}

/* Each argument must have a value, which is known before the scan. */
static int sqlite_best_index(sqlite_table *table, sqlite_plan *plan) {
  const arroyo_udf_function *function = function_of(table);
  int first = (int)row_of(function)->n_children, n = (int)function->arguments->n_children;
  bool has_unusable = false;
  for (int argument = 0; argument < n; argument++) {
    int use = -1;
    bool is_known = false;
    for (int i = 0; i < plan->n_constraints; i++) {
      if (plan->constraints[i].column != first + argument || plan->constraints[i].operator != SQLITE_EQUAL) continue;
      is_known = true;
      if (plan->constraints[i].usable) use = i;
    }
    if (!is_known)
      return sqlite_table_failed(table, text_of("%s.%s needs %d arguments: %s has no value", this_plugin()->name, function->name,
                                                n, function->arguments->children[argument]->name));
    if (use < 0) {
      has_unusable = true;
    } else {
      plan->uses[use].place = argument + 1;
      plan->uses[use].omit = 1;
    }
  }
  plan->cost = 100;
  return has_unusable ? SQLITE_CONSTRAINT : SQLITE_OK;
}

/* ---- Scans ------------------------------------------------------------------------------------------------------ */

static int sqlite_open(sqlite_table *table, sqlite_cursor **cursor) {
  function_cursor *made = calloc(1, sizeof *made);
  if (made == NULL) return SQLITE_NOMEM;
  made->arguments = calloc((size_t)function_of(table)->arguments->n_children + 1, sizeof(void *));
  if (made->arguments == NULL) {
    free(made);
    return SQLITE_NOMEM;
  }
  *cursor = &made->base;
  return SQLITE_OK;
}

static void end_scan(function_cursor *cursor) {
  if (cursor->rows.release) cursor->rows.release(&cursor->rows);
  cursor->rows.release = NULL;
  cursor->at = cursor->end = 0;
  for (int64_t i = 0; i < function_of(cursor->base.table)->arguments->n_children; i++) {
    SQLITE(SQLITE_VALUE_FREE, void, sqlite_value *)(cursor->arguments[i]);
    cursor->arguments[i] = NULL;
  }
}

static int sqlite_close(sqlite_cursor *base) {
  function_cursor *cursor = (function_cursor *)base;
  end_scan(cursor);
  free(cursor->arguments);
  free(cursor);
  return SQLITE_OK;
}

/* Keeps the list of the only row. A row that is null, or has failed, gives no rows. */
static bool sqlite_take_rows(void *to, struct ArrowArray *values, int64_t first, char **why) {
  function_cursor *cursor = to;
  (void)first, (void)why;
  cursor->rows = *values;
  if (!is_valid(values, 0)) return true;
  int width = function_of(cursor->base.table)->returns->format[1] == 'L' ? 8 : 4;
  cursor->at = signed_at(values->buffers[1], width, values->offset);
  cursor->end = signed_at(values->buffers[1], width, values->offset + 1);
  return true;
}

static int sqlite_filter(sqlite_cursor *base, int number, const char *text, int n, sqlite_value **given) {
  function_cursor *cursor = (function_cursor *)base;
  session *s = ((function_table *)base->table)->session;
  const struct ArrowSchema *arguments = s->function->arguments;
  struct ArrowArray batch;
  char *why = NULL;
  (void)number, (void)text;
  end_scan(cursor);
  if (!make_batch(&batch, n, 1)) return SQLITE_NOMEM;
  for (int i = 0; i < n && why == NULL; i++) {
    cursor->arguments[i] = SQLITE(SQLITE_VALUE_DUP, sqlite_value *, sqlite_value *)(given[i]);
    sqlite_argument(batch.children[i], arguments->children[i], given[i], &why);
  }
  if (why != NULL) {
    batch.release(&batch);
    return sqlite_table_failed(base->table, sqlite_named(s->function, why));
  }
  return call(s, &batch, sqlite_take_rows, cursor, &why) ? SQLITE_OK : sqlite_table_failed(base->table, why);
}

static int sqlite_next(sqlite_cursor *base) {
  ((function_cursor *)base)->at++;
  return SQLITE_OK;
}

static int sqlite_eof(sqlite_cursor *base) { return ((function_cursor *)base)->at >= ((function_cursor *)base)->end; }

static int sqlite_column(sqlite_cursor *base, sqlite_context *context, int number) {
  function_cursor *cursor = (function_cursor *)base;
  const arroyo_udf_function *function = function_of(base->table);
  const struct ArrowSchema *row = row_of(function);
  const struct ArrowArray *rows = cursor->rows.children[0];
  char *why = NULL;
  if (number >= row->n_children) {
    SQLITE(SQLITE_RESULT_VALUE, void, sqlite_context *, sqlite_value *)(context, cursor->arguments[number - row->n_children]);
  } else if (!is_valid(rows, cursor->at)) {
    SQLITE(SQLITE_RESULT_NULL, void, sqlite_context *)(context);
  } else if (!sqlite_give(context, row->children[number], rows->children[number], rows->offset + cursor->at, &why)) {
    sqlite_fail(context, sqlite_named(function, why));
    return SQLITE_ERROR;
  }
  return SQLITE_OK;
}

static int sqlite_rowid(sqlite_cursor *base, int64_t *rowid) {
  *rowid = ((function_cursor *)base)->at;
  return SQLITE_OK;
}

static const sqlite_module sqlite_tables = {
    .connect = sqlite_connect,
    .best_index = sqlite_best_index,
    .disconnect = sqlite_disconnect,
    .destroy = sqlite_disconnect,
    .open = sqlite_open,
    .close = sqlite_close,
    .filter = sqlite_filter,
    .next = sqlite_next,
    .eof = sqlite_eof,
    .column = sqlite_column,
    .rowid = sqlite_rowid,
};

#endif
