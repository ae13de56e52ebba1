/* A plugin from the header alone that breaks the contract as the environment variable HOSTILE says, read at each call.
 *
 * add(a, b: int64) -> int64 and greet(name: utf8) -> utf8 are sync, next(a: int64) -> int64 is async and ends rows as they
 * are sent. HOSTILE is a list of commands, separated by ';':
 *   status SLOT N          the slot answers N, and does nothing
 *   array PATH FIELD N     sets a field of a result; PATH is "/" for the struct, "/0" for its first child
 *   poke PATH BUFFER N M   writes the 32-bit number M at byte N of a buffer of a result
 *   data PATH BUFFER N M   fills N bytes of a buffer of a result with M
 *   function I FIELD N     sets a field of function I; a text FIELD becomes NULL for 0
 *   name I TEXT            the name of function I; the rest of the command
 *   schema NAME FIELD ...  a field of a schema below: a number, or the rest of the command for format and name
 *   options N M            writes the 32-bit number M at byte N of the options of `next`
 *   do WORD                see `does` below
 */
#include "arroyo_udf.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Commands -------------------------------------------------------------------------------------------------- */

/* Calls see(command, data) for each command. */
static void commands(void (*see)(char* command, void* data), void* data) {
  const char* all = getenv("HOSTILE");
  char* copy = strdup(all ? all : "");
  char* rest = NULL;
  for (char* one = strtok_r(copy, ";", &rest); one; one = strtok_r(NULL, ";", &rest)) see(one, data);
  free(copy);
}

struct question {
  const char* command;
  const char* word;
  int found;
  long long number;
};

static void look(char* command, void* data) {
  struct question* question = data;
  char kind[32] = "", word[64] = "";
  long long number = 1;
  if (sscanf(command, "%31s %63s %lli", kind, word, &number) < 2) return;
  if (strcmp(kind, question->command) || strcmp(word, question->word)) return;
  question->found = 1;
  question->number = number;
}

static int does(const char* word) {
  struct question question = {"do", word, 0, 0};
  commands(look, &question);
  return question.found;
}

static int answers(const char* slot, arroyo_udf_status* status) {
  struct question question = {"status", slot, 0, 0};
  commands(look, &question);
  *status = (arroyo_udf_status)question.number;
  return question.found;
}

/* ---- Errors ---------------------------------------------------------------------------------------------------- */

static char huge[1 << 20];

static arroyo_udf_status failed(arroyo_udf_error* error, arroyo_udf_status status) {
  if (!error || does("no_text")) return status;
  error->text = "hostile: as told";
  if (does("bad_text")) error->text = "hostile: \xff \x1b[31m";
  if (does("huge_text")) {
    memset(huge, 'x', sizeof huge - 1);
    error->text = huge;
  }
  return status;
}

#define MAY_ANSWER(slot)                                    \
  do {                                                      \
    arroyo_udf_status status;                               \
    if (answers(slot, &status)) return failed(error, status); \
  } while (0)

/* ---- Schemas and the descriptor, made anew by each describe ------------------------------------------------------ */

#define COLUMN(f, n) {.format = f, .name = n}
enum { A, B, NAME, VALUE, GREETING, OUTCOME, ERROR, ID, ATTEMPTS, TAKES_TWO, TAKES_ONE, TAKES_NAME, RAN, GREETED, PLAIN,
       DRAINED, SCHEMAS };
static const char* const names[] = {"a", "b", "name", "value", "greeting", "outcome", "error", "id", "attempts",
  "takes_two", "takes_one", "takes_name", "ran", "greeted", "plain", "drained"};
static struct ArrowSchema schemas[SCHEMAS];
static struct ArrowSchema *two[] = {schemas + A, schemas + B}, *one[] = {schemas + A, NULL},
  *text[] = {schemas + NAME, NULL}, *ran[] = {schemas + VALUE, schemas + OUTCOME, schemas + ERROR},
  *greeted[] = {schemas + GREETING, schemas + OUTCOME, schemas + ERROR}, *plain[] = {schemas + VALUE, NULL},
  *drained[] = {schemas + ID, schemas + VALUE, schemas + OUTCOME, schemas + ATTEMPTS, schemas + ERROR};
static const struct ArrowSchema fresh[SCHEMAS] = {
  [A] = COLUMN("l", "a"), [B] = COLUMN("l", "b"), [NAME] = COLUMN("u", "name"), [VALUE] = COLUMN("l", "value"),
  [GREETING] = COLUMN("u", "value"), [OUTCOME] = COLUMN("C", "outcome"), [ERROR] = COLUMN("u", "error"),
  [ID] = COLUMN("L", "id"), [ATTEMPTS] = COLUMN("S", "attempts"),
  [TAKES_TWO] = {.format = "+s", .n_children = 2, .children = two},
  [TAKES_ONE] = {.format = "+s", .n_children = 1, .children = one},
  [TAKES_NAME] = {.format = "+s", .n_children = 1, .children = text},
  [RAN] = {.format = "+s", .n_children = 3, .children = ran},
  [GREETED] = {.format = "+s", .n_children = 3, .children = greeted},
  [PLAIN] = {.format = "+s", .n_children = 1, .children = plain},
  [DRAINED] = {.format = "+s", .n_children = 5, .children = drained}};

static arroyo_udf_options options;
static arroyo_udf_function functions[3];
static const arroyo_udf_function* listed[4];
static arroyo_udf_descriptor descriptor;

static void twist(char* command, void* data) {
  (void)data;
  char kind[32] = "", what[64] = "", field[64] = "";
  int rest = 0;
  long long number = 0;
  sscanf(command, "%31s %63s %63s %n%lli", kind, what, field, &rest, &number);
  if (!strcmp(kind, "schema")) {
    for (int i = 0; i < SCHEMAS; i++) {
      if (strcmp(names[i], what)) continue;
      struct ArrowSchema* schema = schemas + i;
      if (!strcmp(field, "format")) schema->format = number ? NULL : strdup(command + rest);
      if (!strcmp(field, "name")) schema->name = strdup(command + rest);
      if (!strcmp(field, "n_children")) schema->n_children = number;
      if (!strcmp(field, "children")) schema->children = NULL;
      if (!strcmp(field, "child") && schema->children) schema->children[0] = NULL;
      if (!strcmp(field, "dictionary")) schema->dictionary = schema;
      if (!strcmp(field, "itself")) {
        static struct ArrowSchema* again[3];
        again[0] = again[1] = again[2] = schema;
        schema->format = "+s", schema->n_children = number, schema->children = again;
      }
    }
  }
  if (!strcmp(kind, "name")) {
    sscanf(command, "%*s %*s %n", &rest);
    functions[atoi(what)].name = rest ? strdup(command + rest) : "";
  }
  if (!strcmp(kind, "options")) memcpy((char*)&options + atoll(what), &(int32_t){(int32_t)atoll(field)}, 4);
  if (!strcmp(kind, "function")) {
    arroyo_udf_function* function = functions + atoi(what);
    if (!strcmp(field, "size")) function->size = (uint64_t)number;
    if (!strcmp(field, "kind")) function->kind = (uint32_t)number;
    if (!strcmp(field, "name")) function->name = NULL;
    if (!strcmp(field, "arguments")) function->arguments = NULL;
    if (!strcmp(field, "returns")) function->returns = NULL;
    if (!strcmp(field, "options")) function->options = number ? &options : NULL;
    if (!strcmp(field, "null")) listed[atoi(what)] = NULL;
  }
  if (!strcmp(kind, "descriptor")) {
    long long n = atoll(field);
    if (!strcmp(what, "size")) descriptor.size = (uint64_t)n;
    if (!strcmp(what, "n_functions")) descriptor.n_functions = (uint64_t)n;
    if (!strcmp(what, "functions")) descriptor.functions = NULL;
    if (!strcmp(what, "hash")) descriptor.hash = NULL;
    if (!strcmp(what, "name")) descriptor.name = strdup(field);
    if (!strcmp(what, "huge")) {
      char* name = malloc(5000001);
      memset(name, 'n', 5000000);
      name[5000000] = 0;
      functions[0].name = name;
    }
  }
}

static const arroyo_udf_descriptor* describe(void) {
  if (does("crash")) raise(SIGSEGV); /* for the tests of what looks for crashes */
  memcpy(schemas, fresh, sizeof fresh);
  two[0] = one[0] = schemas + A, text[0] = schemas + NAME, ran[0] = plain[0] = schemas + VALUE;
  greeted[0] = schemas + GREETING, drained[0] = schemas + ID;
  options = (arroyo_udf_options){.size = sizeof options};
  functions[0] = (arroyo_udf_function){sizeof functions[0], "add", ARROYO_UDF_SYNC, 0, schemas + TAKES_TWO, schemas + A, NULL, NULL, 0, 0, 0, 0, 0};
  functions[1] = (arroyo_udf_function){sizeof functions[0], "greet", ARROYO_UDF_SYNC, 0, schemas + TAKES_NAME, schemas + NAME, NULL, NULL, 0, 0, 0, 0, 0};
  functions[2] = (arroyo_udf_function){sizeof functions[0], "next", ARROYO_UDF_ASYNC, 0, schemas + TAKES_ONE, schemas + A, &options, NULL, 0, 0, 0, 0, 0};
  for (int i = 0; i < 3; i++) listed[i] = functions + i;
  descriptor = (arroyo_udf_descriptor){sizeof descriptor, "hostile", "c", "0", "0", 3, listed};
  commands(twist, NULL);
  return does("describe_nothing") ? NULL : &descriptor;
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

/* What an array owns. Its release does not read the array's fields, which commands may have changed. */
struct owned {
  const void* buffers[3];
  struct ArrowArray* children[5];
  struct ArrowArray child[5];
};

static void release(struct ArrowArray* array) {
  struct owned* owned = array->private_data;
  for (int i = 0; i < 5; i++)
    if (owned->child[i].release) owned->child[i].release(&owned->child[i]);
  for (int i = 0; i < 3; i++) free((void*)owned->buffers[i]);
  free(owned);
  array->release = NULL;
}

enum { SPARE = 64 }; /* zeros behind the rows, for lengths and offsets that are a little too large */

/* width: of a value in bytes, 0 for a struct, -1 for texts. */
static void* fill(struct ArrowArray* array, int64_t rows, int width, int children) {
  struct owned* owned = calloc(1, sizeof *owned);
  *array = (struct ArrowArray){.length = rows, .n_buffers = width == 0 ? 1 : width < 0 ? 3 : 2, .n_children = children,
    .buffers = owned->buffers, .children = owned->children, .release = release, .private_data = owned};
  for (int i = 0; i < 5; i++) owned->children[i] = &owned->child[i];
  if (width) owned->buffers[1] = calloc((size_t)rows + SPARE, width < 0 ? 4 : (size_t)width);
  if (width < 0) owned->buffers[2] = calloc((size_t)rows + SPARE, 8);
  return (void*)owned->buffers[1];
}

/* The outcome and the error of each row: all are values, or all have failed with the text "no". */
static void fill_outcomes(struct ArrowArray* outcomes, struct ArrowArray* errors, int64_t rows, int failed) {
  uint8_t* outcome = fill(outcomes, rows, 1, 0);
  int32_t* ends = fill(errors, rows, -1, 0);
  struct owned* owned = errors->private_data;
  owned->buffers[0] = calloc(1, (size_t)rows + SPARE);
  errors->null_count = failed ? 0 : rows;
  if (failed) {
    memset(outcome, ARROYO_UDF_ERROR, (size_t)rows);
    memset((void*)owned->buffers[0], 0xff, (size_t)rows + SPARE);
    for (int64_t i = 0; i < rows; i++) ends[i + 1] = 2 * (int32_t)(i + 1), memcpy((char*)owned->buffers[2] + 2 * i, "no", 2);
  }
}

/* Without values: all rows of an array are null. */
static void forget(struct ArrowArray* array) {
  ((struct owned*)array->private_data)->buffers[0] = calloc(1, (size_t)array->length + SPARE);
  array->null_count = array->length;
}

static struct ArrowArray* at(struct ArrowArray* array, const char* path) {
  for (; *path == '/' && path[1]; path += 2) array = &((struct owned*)array->private_data)->child[path[1] - '0'];
  return array;
}

static void deform(char* command, void* data) {
  char kind[32] = "", path[32] = "", field[32] = "";
  long long number = 0, value = 0;
  if (sscanf(command, "%31s %31s %31s %lli %lli", kind, path, field, &number, &value) < 3 || path[0] != '/') return;
  struct ArrowArray* array = at(data, path);
  struct owned* owned = array->private_data;
  if (!owned) return; /* there is no such child */
  char* buffer = strcmp(kind, "array") ? (char*)owned->buffers[atoi(field)] : NULL;
  if (buffer && !strcmp(kind, "poke")) memcpy(buffer + number, &(int32_t){(int32_t)value}, 4);
  if (buffer && !strcmp(kind, "data")) memset(buffer, (int)value, (size_t)number);
  if (strcmp(kind, "array")) return;
  if (!strcmp(field, "length")) array->length = number;
  if (!strcmp(field, "null_count")) array->null_count = number;
  if (!strcmp(field, "offset")) array->offset = number;
  if (!strcmp(field, "n_buffers")) array->n_buffers = number;
  if (!strcmp(field, "n_children")) array->n_children = number;
  if (!strcmp(field, "buffers")) array->buffers = NULL;
  if (!strcmp(field, "children")) array->children = NULL;
  if (!strcmp(field, "dictionary")) array->dictionary = array;
  if (!strcmp(field, "release")) array->release = NULL;
  if (!strcmp(field, "buffer")) {
    if (number == 0) free((void*)owned->buffers[0]), owned->buffers[0] = calloc(1, (size_t)array->length + SPARE);
    else owned->buffers[number] = NULL;
  }
  if (!strcmp(field, "child")) owned->children[number] = NULL;
}

static int64_t number(const struct ArrowArray* batch, int child, int64_t row) {
  const struct ArrowArray* array = batch->children[child];
  return ((const int64_t*)array->buffers[1])[array->offset + batch->offset + row];
}

static arroyo_udf_status run(uint32_t function, struct ArrowArray* arguments, const arroyo_udf_batch_context* context,
                             struct ArrowArray* results, const struct ArrowSchema** schema, arroyo_udf_error* error) {
  (void)context;
  MAY_ANSWER("run");
  if (function > 1) return failed(error, ARROYO_UDF_NOT_IMPLEMENTED);
  int64_t rows = arguments->length;
  int with_outcomes = does("outcomes") || does("fail");
  if (!does("nothing")) {
    fill(results, rows, 0, with_outcomes ? 3 : 1);
    struct ArrowArray* value = at(results, "/0");
    if (function == 0) {
      int64_t* sums = fill(value, rows, 8, 0);
      for (int64_t i = 0; i < rows; i++) sums[i] = number(arguments, 0, i) + number(arguments, 1, i);
    } else {
      int32_t* ends = fill(value, rows, -1, 0);
      for (int64_t i = 0; i < rows; i++) ends[i + 1] = 2 * (int32_t)(i + 1);
      memset((void*)value->buffers[2], 'h', 2 * (size_t)rows);
    }
    if (with_outcomes) fill_outcomes(at(results, "/1"), at(results, "/2"), rows, does("fail"));
    if (does("fail")) forget(value);
    *schema = schemas + (with_outcomes ? function ? GREETED : RAN : function ? GREETED : PLAIN);
    if (function && !with_outcomes) {
      static struct ArrowSchema alone;
      static struct ArrowSchema* children[] = {schemas + GREETING};
      alone = (struct ArrowSchema){.format = "+s", .n_children = 1, .children = children};
      *schema = &alone;
    }
    if (does("no_schema")) *schema = NULL;
    if (does("other_schema")) *schema = schemas + TAKES_NAME;
    commands(deform, results);
  }
  if (!does("keep")) arguments->release(arguments);
  return ARROYO_UDF_OK;
}

/* ---- Async: one runtime, for one thread -------------------------------------------------------------------------- */

static struct {
  uint64_t id[100000];
  int64_t value[100000];
  int64_t rows;
  int stopped;
} held;

static arroyo_udf_status start(uint32_t function, const arroyo_udf_options* chosen, arroyo_udf_handle* handle,
                               arroyo_udf_error* error) {
  (void)chosen;
  MAY_ANSWER("start");
  if (function != 2) return failed(error, ARROYO_UDF_NOT_IMPLEMENTED);
  held.rows = held.stopped = 0;
  *handle = does("handle_zero") ? 0 : 7;
  return ARROYO_UDF_OK;
}

static arroyo_udf_status send(arroyo_udf_handle handle, uint64_t first, struct ArrowArray* arguments,
                              const arroyo_udf_batch_context* context, arroyo_udf_error* error) {
  (void)handle;
  (void)context;
  MAY_ANSWER("send");
  for (int64_t i = 0; i < arguments->length && !does("swallow"); i++) {
    held.id[held.rows] = first + (uint64_t)i;
    held.value[held.rows++] = number(arguments, 0, i) + 1;
  }
  if (!does("keep")) arguments->release(arguments);
  return ARROYO_UDF_OK;
}

static arroyo_udf_status drain(arroyo_udf_handle handle, uint64_t max, struct ArrowArray* results,
                               const struct ArrowSchema** schema, arroyo_udf_error* error) {
  (void)handle;
  (void)max;
  MAY_ANSWER("drain_results");
  if (does("nothing")) return ARROYO_UDF_OK;
  int64_t rows = held.rows;
  if (does("no_rows")) rows = 0;
  else if (!rows) return held.stopped && !does("never_end") ? ARROYO_UDF_END : ARROYO_UDF_WOULD_BLOCK;
  if (does("last_missing")) rows--;
  int more = does("more"), same = does("same"), backwards = does("backwards"), unknown = does("unknown");
  fill(results, rows + more, 0, 5);
  uint64_t* id = fill(at(results, "/0"), rows + more, 8, 0);
  int64_t* value = fill(at(results, "/1"), rows + more, 8, 0);
  fill_outcomes(at(results, "/2"), at(results, "/4"), rows + more, does("fail"));
  if (does("fail")) forget(at(results, "/1"));
  uint16_t* attempts = fill(at(results, "/3"), rows + more, 2, 0);
  for (int64_t i = 0; i < rows + more; i++) {
    int64_t from = same ? 0 : backwards ? held.rows - 1 - i : i;
    id[i] = i < rows ? held.id[from] + (unknown ? 1000000 : 0) : i ? id[i - 1] + 1 : 0;
    value[i] = i < rows ? held.value[from] : 0;
    attempts[i] = 1;
  }
  if (!does("again")) held.rows = 0;
  if (!does("no_schema")) *schema = schemas + (does("other_schema") ? RAN : DRAINED);
  commands(deform, results);
  return ARROYO_UDF_OK;
}

static int holds(uint32_t condition) { return held.stopped || held.rows > 0 || (condition & ARROYO_UDF_ROOM); }

static arroyo_udf_status wait(arroyo_udf_handle handle, uint32_t condition, uint64_t timeout_ns,
                              arroyo_udf_error* error) {
  (void)handle;
  (void)timeout_ns;
  MAY_ANSWER("wait");
  return holds(condition) ? ARROYO_UDF_OK : ARROYO_UDF_WOULD_BLOCK;
}

static arroyo_udf_status arm(arroyo_udf_handle handle, uint32_t condition, void (*fn)(void*), void* data,
                             arroyo_udf_error* error) {
  (void)handle;
  (void)fn;
  (void)data;
  MAY_ANSWER("arm");
  return holds(condition) ? ARROYO_UDF_READY : ARROYO_UDF_OK; /* never calls fn: nothing happens between two calls */
}

static arroyo_udf_status disarm(arroyo_udf_handle handle, arroyo_udf_error* error) {
  (void)handle;
  MAY_ANSWER("disarm");
  return ARROYO_UDF_OK;
}

static arroyo_udf_status cancel(arroyo_udf_handle handle, uint64_t first, uint64_t rows, arroyo_udf_error* error) {
  (void)handle;
  (void)first;
  (void)rows;
  MAY_ANSWER("cancel");
  return ARROYO_UDF_OK;
}

static arroyo_udf_status statistics(arroyo_udf_handle handle, arroyo_udf_statistics* counters, arroyo_udf_error* error) {
  (void)handle;
  MAY_ANSWER("statistics");
  memset(counters, does("garbage") ? 0xff : 0, sizeof *counters);
  counters->size = does("short") ? 8 : sizeof *counters;
  return ARROYO_UDF_OK;
}

static arroyo_udf_status stop(arroyo_udf_handle handle, uint32_t mode, uint64_t deadline_ns, arroyo_udf_error* error) {
  (void)handle;
  (void)mode;
  (void)deadline_ns;
  MAY_ANSWER("stop_runtime");
  held.stopped = 1;
  return ARROYO_UDF_OK;
}

static arroyo_udf_status end(arroyo_udf_handle handle, arroyo_udf_error* error) {
  (void)handle;
  MAY_ANSWER("release");
  return ARROYO_UDF_OK;
}

static arroyo_udf_status set_log(arroyo_udf_handle handle, const arroyo_udf_log* log, arroyo_udf_error* error) {
  (void)handle;
  if (does("log_nothing")) log->write(log->data, ARROYO_UDF_WARNING, NULL);
  if (does("log_garbage")) log->write(log->data, 99, "\xff\x1b");
  if (does("log_huge")) {
    memset(huge, 'x', sizeof huge - 1);
    log->write(log->data, ARROYO_UDF_WARNING, huge);
  }
  MAY_ANSWER("set_log");
  return ARROYO_UDF_OK;
}

static const void* extension(const char* id) {
  (void)id;
  return NULL;
}

ARROYO_UDF_EXPORT const arroyo_udf_table arroyo_udf_plugin = {ARROYO_UDF_MAGIC, ARROYO_UDF_ABI_VERSION,
  sizeof arroyo_udf_plugin, describe, run, start, send, drain, wait, arm, disarm, cancel, statistics, stop, end, set_log,
  extension};
