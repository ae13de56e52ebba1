/* A host whose buffers are exact to the byte, and which counts every release. If host and plugin are built with
 * AddressSanitizer, a byte read beyond a buffer, a leak, or a second release ends it.
 *
 *     exact PLUGIN.so      a plugin with the functions seen, fussy and same_bool of functions.c
 *
 * Runs each function over batches of many lengths, with offsets in the struct and in its children, with and without
 * nulls, and compares the results with those of plain C. Prints how many batches were right.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arroyo_udf.h"

enum { MOST_COLUMNS = 3 };

#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition)) {                                                               \
      fprintf(stderr, "exact.c:%d: %s (%s)\n", __LINE__, #condition, current_case);   \
      exit(1);                                                                        \
    }                                                                                 \
  } while (0)

static char current_case[200] = "nothing yet";
static uint64_t randomness = 7;
static int struct_releases, child_releases;

static uint64_t next_random(void) {
  randomness ^= randomness << 13, randomness ^= randomness >> 7, randomness ^= randomness << 17;
  return randomness;
}

/* ---- Arguments ---------------------------------------------------------------------------------------------------- */

static void free_buffers(struct ArrowArray* array) {
  for (int64_t i = 0; i < array->n_buffers; i++) free((void*)array->buffers[i]);
  free(array->buffers);
  array->release = NULL;
}

static void release_child(struct ArrowArray* child) {
  child_releases++;
  free_buffers(child);
}

static void release_struct(struct ArrowArray* array) {
  struct_releases++;
  for (int64_t i = 0; i < array->n_children; i++) {
    if (array->children[i]->release != NULL) array->children[i]->release(array->children[i]);
    free(array->children[i]);
  }
  free(array->children);
  free_buffers(array);
}

static bool bit(const void* bits, int64_t i) { return bits == NULL || (((const uint8_t*)bits)[i / 8] >> (i % 8) & 1); }

static void* exact(size_t bytes) {
  void* memory = malloc(bytes); /* of zero bytes, too: no byte of it may be read */
  CHECK(memory != NULL);
  return memory;
}

/* As many bytes as the bits need; the bits behind the last one are set at random, too. */
static uint8_t* random_bits(int64_t bits) {
  uint8_t* bytes = exact((size_t)(bits + 7) / 8);
  for (int64_t i = 0; i < (bits + 7) / 8; i++) bytes[i] = (uint8_t)(next_random() | next_random());
  return bytes;
}

static void set(struct ArrowArray* array, int64_t length, int64_t offset, int64_t n_buffers,
                void (*release)(struct ArrowArray*)) {
  memset(array, 0, sizeof *array);
  array->length = length;
  array->offset = offset;
  array->n_buffers = n_buffers;
  array->buffers = exact((size_t)n_buffers * sizeof(void*));
  array->release = release;
}

static struct ArrowArray* new_column(char format, int64_t length, int64_t offset, bool nulls) {
  const int64_t cells = offset + length;
  struct ArrowArray* array = exact(sizeof *array);
  set(array, length, offset, format == 'u' ? 3 : 2, release_child);
  array->null_count = nulls ? -1 : 0;
  array->buffers[0] = nulls ? random_bits(cells) : NULL;
  if (format == 'l') {
    int64_t* values = exact((size_t)cells * sizeof *values);
    for (int64_t i = 0; i < cells; i++) values[i] = (int64_t)(next_random() % 1000);
    array->buffers[1] = values;
  } else if (format == 'b') {
    array->buffers[1] = random_bits(cells);
  } else {
    int32_t* offsets = exact((size_t)(cells + 1) * sizeof *offsets);
    offsets[0] = 0;
    for (int64_t i = 0; i < cells; i++) offsets[i + 1] = offsets[i] + (int32_t)(next_random() % 20);
    char* text = exact((size_t)offsets[cells]);
    memset(text, 'x', (size_t)offsets[cells]);
    array->buffers[1] = offsets;
    array->buffers[2] = text;
  }
  return array;
}

static void make_batch(struct ArrowArray* batch, const char* formats, int64_t length, int64_t offset,
                       int64_t child_offset, bool nulls) {
  const size_t n = strlen(formats);
  set(batch, length, offset, 1, release_struct);
  batch->null_count = nulls ? -1 : 0;
  batch->buffers[0] = nulls ? random_bits(offset + length) : NULL;
  batch->n_children = (int64_t)n;
  batch->children = exact(n * sizeof(struct ArrowArray*));
  for (size_t i = 0; i < n; i++)
    batch->children[i] = new_column(formats[i], offset + length, child_offset * (int64_t)i, nulls && i != 1);
}

/* ---- Results in plain C ------------------------------------------------------------------------------------------ */

static bool valid(const struct ArrowArray* batch, int column, int64_t row) {
  const struct ArrowArray* child = batch->children[column];
  return bit(batch->buffers[0], batch->offset + row) &&
         bit(child->buffers[0], child->offset + batch->offset + row);
}

static int64_t integer(const struct ArrowArray* batch, int column, int64_t row) {
  const struct ArrowArray* child = batch->children[column];
  return ((const int64_t*)child->buffers[1])[child->offset + batch->offset + row];
}

struct expected {
  bool valid, failed;
  bool flag;
  char text[100];
};

static void expect_seen(const struct ArrowArray* batch, int64_t row, struct expected* expected) {
  expected->valid = valid(batch, 0, row) && valid(batch, 2, row);
  if (!expected->valid) return;
  const struct ArrowArray* texts = batch->children[2];
  const int32_t* offsets = (const int32_t*)texts->buffers[1] + texts->offset + batch->offset + row;
  char second[30] = "null";
  if (valid(batch, 1, row)) snprintf(second, sizeof second, "%lld", (long long)integer(batch, 1, row));
  snprintf(expected->text, sizeof expected->text, "%lld %s %.*s", (long long)integer(batch, 0, row), second,
           (int)(offsets[1] - offsets[0]), (const char*)texts->buffers[2] + offsets[0]);
}

static void expect_fussy(const struct ArrowArray* batch, int64_t row, struct expected* expected) {
  const bool called = valid(batch, 0, row);
  const bool fine = called && integer(batch, 0, row) % 5 == 0;
  expected->valid = fine;
  expected->failed = called && !fine;
  strcpy(expected->text, fine ? "fine" : "");
}

static void expect_same_bool(const struct ArrowArray* batch, int64_t row, struct expected* expected) {
  const struct ArrowArray* child = batch->children[0];
  expected->valid = valid(batch, 0, row);
  expected->flag = bit(child->buffers[1], child->offset + batch->offset + row);
}

static void compare(const struct ArrowArray* value, const struct ArrowArray* outcome, int64_t row, bool is_text,
                    const struct expected* expected) {
  CHECK(bit(value->buffers[0], row) == expected->valid);
  CHECK((outcome != NULL && ((const uint8_t*)outcome->buffers[1])[row] == ARROYO_UDF_ERROR) == expected->failed);
  if (!expected->valid) return;
  if (is_text) {
    const int32_t* offsets = (const int32_t*)value->buffers[1] + row;
    CHECK(strlen(expected->text) == (size_t)(offsets[1] - offsets[0]));
    CHECK(memcmp((const char*)value->buffers[2] + offsets[0], expected->text, strlen(expected->text)) == 0);
  } else {
    CHECK(bit(value->buffers[1], row) == expected->flag);
  }
}

/* ---- Runs ---------------------------------------------------------------------------------------------------------- */

/* Releases results in each of the orders that the Arrow C Data Interface allows. */
static void release_results(struct ArrowArray* results, int order) {
  struct ArrowArray moved[3];
  const int64_t n = results->n_children;
  CHECK(n <= 3);
  if (order == 0) {
    results->release(results);
  } else {
    for (int64_t i = 0; i < n; i++) {
      moved[i] = *results->children[i]; /* moved out of the struct */
      results->children[i]->release = NULL;
    }
    if (order == 1) results->release(results);
    for (int64_t i = n - 1; i >= 0; i--) {
      moved[i].release(&moved[i]);
      CHECK(moved[i].release == NULL);
    }
    if (order == 2) results->release(results);
  }
  CHECK(results->release == NULL);
}

static void run(const arroyo_udf_table* table, uint32_t number, const char* formats, struct ArrowArray* batch,
                int order, void (*expect)(const struct ArrowArray*, int64_t, struct expected*), bool is_text) {
  arroyo_udf_error error = {.size = sizeof error};
  struct ArrowArray results;
  const struct ArrowSchema* schema = NULL;
  const int64_t length = batch->length;
  struct expected* expected = calloc((size_t)length + 1, sizeof *expected);
  bool any_failed = false;
  for (int64_t row = 0; row < length; row++) {
    expect(batch, row, &expected[row]);
    any_failed = any_failed || expected[row].failed;
  }

  /* Refused: still ours, nothing released. */
  struct_releases = child_releases = 0;
  batch->n_children++;
  CHECK(table->run(number, batch, NULL, &results, &schema, &error) == ARROYO_UDF_INVALID_ARGUMENT);
  CHECK(error.text != NULL && schema == NULL);
  if (error.release != NULL) error.release(&error);
  error = (arroyo_udf_error){.size = sizeof error};
  CHECK(struct_releases == 0 && child_releases == 0);
  batch->n_children--;

  /* Taken: the struct and each child, once. */
  CHECK(table->run(number, batch, NULL, &results, &schema, &error) == ARROYO_UDF_OK);
  CHECK(batch->release == NULL && struct_releases == 1 && child_releases == (int)strlen(formats));

  CHECK(results.length == length && results.offset == 0 && schema->release == NULL);
  CHECK(results.n_children == schema->n_children && results.n_children == (any_failed ? 3 : 1));
  int64_t nulls = 0;
  for (int64_t row = 0; row < length; row++) {
    nulls += !expected[row].valid;
    compare(results.children[0], any_failed ? results.children[1] : NULL, row, is_text, &expected[row]);
  }
  CHECK(results.children[0]->null_count == nulls || results.children[0]->null_count == -1);
  CHECK(results.children[0]->length == length && results.children[0]->offset == 0);
  release_results(&results, order);
  free(expected);
}

int main(int argc, char** argv) {
  static const struct {
    const char *name, *formats;
    void (*expect)(const struct ArrowArray*, int64_t, struct expected*);
    bool is_text;
  } cases[] = {{"seen", "llu", expect_seen, true},
               {"fussy", "l", expect_fussy, true},
               {"same_bool", "b", expect_same_bool, false}};
  static const int64_t lengths[] = {0, 1, 7, 8, 9, 63, 64, 65, 127, 128, 200}, offsets[] = {0, 1, 3, 8, 64, 67};
  void* library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
  const arroyo_udf_table* table = library != NULL ? dlsym(library, "arroyo_udf_plugin") : NULL;
  CHECK(table != NULL);
  const arroyo_udf_descriptor* plugin = table->describe();
  int batches = 0;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    uint32_t number = 0;
    while (number < plugin->n_functions && strcmp(plugin->functions[number]->name, cases[c].name) != 0) number++;
    CHECK(number < plugin->n_functions);
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
      for (size_t o = 0; o < sizeof offsets / sizeof *offsets; o++)
        for (int variant = 0; variant < 12; variant++) {
          const int64_t child_offset = variant / 6 * 5;
          const bool nulls = variant / 3 % 2;
          struct ArrowArray batch;
          snprintf(current_case, sizeof current_case, "%s, length %lld, offset %lld, variant %d", cases[c].name,
                   (long long)lengths[l], (long long)offsets[o], variant);
          make_batch(&batch, cases[c].formats, lengths[l], offsets[o], child_offset + (variant / 6), nulls);
          run(table, number, cases[c].formats, &batch, variant % 3, cases[c].expect, cases[c].is_text);
          batches++;
        }
  }
  printf("%d batches are right\n", batches);
  return 0;
}
