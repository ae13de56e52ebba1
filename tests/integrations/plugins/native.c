/* An aggregate and a table function without headers for authors, for shells of engines, where there is no Python:
 *
 *     plus(value: int64) -> int64                      the sum, with an int64 as its state
 *     series(start: int64, stop: int64) -> list<struct<n: int64>>
 *
 * Arrays have no offsets here: engines of this toolkit pass none. */
#include <stdlib.h>
#include <string.h>

#include "arroyo_udf.h"

#ifndef ARROYO_UDF_PLUGIN_HASH
#define ARROYO_UDF_PLUGIN_HASH "0"
#endif
#ifndef ARROYO_UDF_TOOLKIT_VERSION
#define ARROYO_UDF_TOOLKIT_VERSION "none"
#endif

/* ---- The descriptor --------------------------------------------------------------------------------------------- */

#define TYPE(name_, format_, text, flags_, ...)                                                                       \
  static struct ArrowSchema* const name_##_children[] = {__VA_ARGS__};                                                \
  static const struct ArrowSchema name_ = {.format = format_,                                                         \
                                           .name = text,                                                              \
                                           .flags = flags_,                                                           \
                                           .n_children = sizeof name_##_children / sizeof(void*),                     \
                                           .children = (struct ArrowSchema**)name_##_children}
#define OF(name_) (struct ArrowSchema*)&name_

static const struct ArrowSchema value = {.format = "l", .name = "value"};
static const struct ArrowSchema start_value = {.format = "l", .name = "start"};
static const struct ArrowSchema stop_value = {.format = "l", .name = "stop"};
static const struct ArrowSchema item = {.format = "l", .name = "item", .flags = ARROW_FLAG_NULLABLE};
static const struct ArrowSchema state = {.format = "l", .name = "state", .flags = ARROW_FLAG_NULLABLE};
static const struct ArrowSchema other = {.format = "l", .name = "other"};
static const struct ArrowSchema sum = {.format = "l", .name = "", .flags = ARROW_FLAG_NULLABLE};
static const struct ArrowSchema n = {.format = "l", .name = "n"};
TYPE(row, "+s", "item", 0, OF(n));
TYPE(rows, "+l", "", ARROW_FLAG_NULLABLE, OF(row));
TYPE(values, "+l", "value", 0, OF(item));
TYPE(of_plus, "+s", "", 0, OF(value));
TYPE(of_series, "+s", "", 0, OF(start_value), OF(stop_value));
TYPE(of_update, "+s", "", 0, OF(state), OF(values));
TYPE(of_merge, "+s", "", 0, OF(state), OF(other));
TYPE(of_finish, "+s", "", 0, OF(state));
static const struct ArrowSchema sum_result = {.format = "l", .name = "value", .flags = ARROW_FLAG_NULLABLE};
TYPE(rows_result, "+l", "value", ARROW_FLAG_NULLABLE, OF(row));
TYPE(sums, "+s", "", 0, OF(sum_result));
TYPE(lists, "+s", "", 0, OF(rows_result));

#define FUNCTION(name_, text, kind_, arguments_, returns_, ...)                                                        \
  static const arroyo_udf_function name_ = {.size = sizeof(arroyo_udf_function),                                       \
                                            .name = text,                                                              \
                                            .kind = kind_,                                                             \
                                            .arguments = &arguments_,                                                  \
                                            .returns = &returns_,                                                      \
                                            __VA_ARGS__}
FUNCTION(plus, "plus", ARROYO_UDF_AGGREGATE, of_plus, sum, .first_step = 2);
FUNCTION(series, "series", ARROYO_UDF_TABLE, of_series, rows);
FUNCTION(update, "plus.update", ARROYO_UDF_STEP, of_update, sum);
FUNCTION(merge, "plus.merge", ARROYO_UDF_STEP, of_merge, sum);
FUNCTION(finish, "plus.finish", ARROYO_UDF_STEP, of_finish, sum);
static const arroyo_udf_function* const functions[] = {&plus, &series, &update, &merge, &finish};

static const arroyo_udf_descriptor* describe(void) {
  static const arroyo_udf_descriptor descriptor = {.size = sizeof(arroyo_udf_descriptor),
                                                   .name = "native",
                                                   .language = "c",
                                                   .toolkit_version = ARROYO_UDF_TOOLKIT_VERSION,
                                                   .hash = ARROYO_UDF_PLUGIN_HASH,
                                                   .n_functions = sizeof functions / sizeof(void*),
                                                   .functions = functions};
  return &descriptor;
}

/* ---- Arrays ----------------------------------------------------------------------------------------------------- */

typedef struct {
  const void* buffers[2];
  struct ArrowArray* children[1];
  struct ArrowArray child;
} memory;

static void release(struct ArrowArray* array) {
  memory* own = array->private_data;
  if (array->n_children && own->child.release) own->child.release(&own->child);
  free((void*)own->buffers[0]);
  free((void*)own->buffers[1]);
  free(own);
  array->release = NULL;
}

/* All valid. content: the size of its values or offsets; 0: it has no second buffer. parent: gets it as its child. */
static int64_t* make(struct ArrowArray* array, int64_t length, size_t content, struct ArrowArray* parent) {
  memory* own = calloc(1, sizeof *own);
  own->buffers[0] = memset(calloc((size_t)length / 8 + 1, 1), 0xff, (size_t)length / 8 + 1);
  if (content) own->buffers[1] = calloc((size_t)length + 1, content);
  own->children[0] = &own->child;
  *array = (struct ArrowArray){.length = length,
                               .n_buffers = content ? 2 : 1,
                               .buffers = own->buffers,
                               .children = own->children,
                               .release = release,
                               .private_data = own};
  if (parent) parent->n_children = 1;
  return (int64_t*)own->buffers[1];
}

static struct ArrowArray* child_of(struct ArrowArray* array) { return &((memory*)array->private_data)->child; }

static int is_valid(const struct ArrowArray* array, int64_t i) {
  const uint8_t* bits = array->buffers[0];
  return bits == NULL || bits[i / 8] >> (i % 8) & 1;
}

static void set_null(struct ArrowArray* array, int64_t i) {
  ((uint8_t*)array->buffers[0])[i / 8] &= (uint8_t) ~(1u << (i % 8));
  array->null_count++;
}

/* ---- run -------------------------------------------------------------------------------------------------------- */

static void give_sums(uint32_t step, const struct ArrowArray* given, struct ArrowArray* results) {
  make(results, given->length, 0, NULL);
  int64_t* to = make(child_of(results), given->length, sizeof *to, results);
  const struct ArrowArray* states = given->children[0];
  for (int64_t i = 0; i < given->length; i++) {
    to[i] = is_valid(states, i) ? ((const int64_t*)states->buffers[1])[i] : 0;
    if (step == 4 && !is_valid(states, i)) set_null(child_of(results), i);
    if (step == 3) to[i] += ((const int64_t*)given->children[1]->buffers[1])[i];
    if (step != 2) continue;
    const struct ArrowArray* items = given->children[1]->children[0];
    const int32_t* ends = given->children[1]->buffers[1];
    for (int32_t at = ends[i]; at < ends[i + 1]; at++)
      if (is_valid(items, at)) to[i] += ((const int64_t*)items->buffers[1])[at];
  }
}

static void give_series(const struct ArrowArray* given, struct ArrowArray* results) {
  const int64_t *begin = given->children[0]->buffers[1], *end = given->children[1]->buffers[1];
  make(results, given->length, 0, NULL);
  int32_t* ends = (int32_t*)make(child_of(results), given->length, sizeof *ends, results);
  int64_t total = 0;
  for (int64_t i = 0; i < given->length; i++) {
    if (!is_valid(given->children[0], i) || !is_valid(given->children[1], i)) set_null(child_of(results), i);
    else if (end[i] > begin[i]) total += end[i] - begin[i];
    ends[i + 1] = (int32_t)total;
  }
  struct ArrowArray* structs = child_of(child_of(results));
  make(structs, total, 0, child_of(results));
  int64_t* to = make(child_of(structs), total, sizeof *to, structs);
  for (int64_t i = 0; i < given->length; i++)
    for (int32_t at = ends[i]; at < ends[i + 1]; at++) to[at] = begin[i] + at - ends[i];
}

static arroyo_udf_status run(uint32_t function, struct ArrowArray* arguments, const arroyo_udf_batch_context* context,
                             struct ArrowArray* results, const struct ArrowSchema** schema, arroyo_udf_error* error) {
  (void)context, (void)error;
  if (function == 1) give_series(arguments, results);
  else give_sums(function, arguments, results);
  *schema = function == 1 ? &lists : &sums;
  arguments->release(arguments);
  return ARROYO_UDF_OK;
}

static const void* extension(const char* id) {
  (void)id;
  return NULL;
}

/* In every slot of async functions: whatever its arguments, it is the same call for all processors that we know. */
static arroyo_udf_status refuse(void) { return ARROYO_UDF_NOT_IMPLEMENTED; }

ARROYO_UDF_EXPORT const arroyo_udf_table arroyo_udf_plugin = {.magic = ARROYO_UDF_MAGIC,
                                                              .abi_version = ARROYO_UDF_ABI_VERSION,
                                                              .table_size = sizeof(arroyo_udf_table),
                                                              .describe = describe,
                                                              .run = run,
                                                              .start = (void*)refuse,
                                                              .send = (void*)refuse,
                                                              .drain_results = (void*)refuse,
                                                              .wait = (void*)refuse,
                                                              .arm = (void*)refuse,
                                                              .disarm = (void*)refuse,
                                                              .cancel = (void*)refuse,
                                                              .statistics = (void*)refuse,
                                                              .stop_runtime = (void*)refuse,
                                                              .release = (void*)refuse,
                                                              .set_log = (void*)refuse,
                                                              .extension = extension};
