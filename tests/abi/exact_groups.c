/* A host of aggregates and table functions, whose buffers are exact to the byte, like exact.c.
 *
 *     exact_groups PLUGIN.so      a plugin with the functions joined and words of groups.c
 *
 * Runs the steps of `joined` over groups of random rows, with offsets in the struct and in the lists, and `words` over
 * random texts, of which some fail. Compares the results with those of plain C. Prints how many batches were right.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arroyo_udf.h"

#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition)) {                                                               \
      fprintf(stderr, "exact_groups.c:%d: %s\n", __LINE__, #condition);               \
      exit(1);                                                                        \
    }                                                                                 \
  } while (0)

static uint64_t randomness = 7;
static int arrays; /* not released yet */
static const arroyo_udf_table* table;

static int64_t below(int64_t end) {
  randomness ^= randomness << 13, randomness ^= randomness >> 7, randomness ^= randomness << 17;
  return (int64_t)(randomness % (uint64_t)end);
}

static void* exact(int64_t bytes) {
  void* memory = malloc((size_t)bytes);
  CHECK(memory != NULL);
  return memory;
}

/* ---- Arrays ------------------------------------------------------------------------------------------------------ */

static void release(struct ArrowArray* array) {
  for (int64_t i = 0; i < array->n_children; i++) {
    if (array->children[i]->release != NULL) array->children[i]->release(array->children[i]);
    free(array->children[i]);
  }
  for (int64_t i = 0; i < array->n_buffers; i++) free((void*)array->buffers[i]);
  free(array->buffers);
  free(array->children);
  array->release = NULL;
  arrays--;
}

static struct ArrowArray* new_array(int64_t length, int64_t offset, int64_t n_buffers, int64_t n_children) {
  struct ArrowArray* array = exact(sizeof *array);
  memset(array, 0, sizeof *array);
  array->length = length;
  array->offset = offset;
  array->n_buffers = n_buffers;
  array->n_children = n_children;
  array->buffers = exact(n_buffers * (int64_t)sizeof(void*));
  memset(array->buffers, 0, (size_t)n_buffers * sizeof(void*));
  array->children = exact(n_children * (int64_t)sizeof(void*));
  array->release = release;
  arrays++;
  return array;
}

static void add_nulls(struct ArrowArray* array) {
  const int64_t bytes = (array->offset + array->length + 7) / 8;
  uint8_t* bits = exact(bytes);
  for (int64_t i = 0; i < bytes; i++) bits[i] = (uint8_t)(below(256) | below(256));
  array->buffers[0] = bits;
  array->null_count = -1;
}

static bool is_null(const struct ArrowArray* array, int64_t row) {
  const uint8_t* bits = array->buffers[0];
  const int64_t i = array->offset + row;
  return bits != NULL && !(bits[i / 8] >> (i % 8) & 1);
}

/* Ascending offsets, whose last one is *last. */
static int32_t* new_offsets(int64_t cells, int64_t most, int64_t* last) {
  int32_t* offsets = exact((cells + 1) * (int64_t)sizeof *offsets);
  offsets[0] = 0;
  for (int64_t i = 0; i < cells; i++) offsets[i + 1] = offsets[i] + (int32_t)below(most + 1);
  *last = offsets[cells];
  return offsets;
}

static struct ArrowArray* new_texts(int64_t length, int64_t offset, int64_t most, const char* letters) {
  struct ArrowArray* array = new_array(length, offset, 3, 0);
  int64_t last;
  array->buffers[1] = new_offsets(offset + length, most, &last);
  char* text = exact(last);
  for (int64_t i = 0; i < last; i++) text[i] = letters[below((int64_t)strlen(letters))];
  array->buffers[2] = text;
  return array;
}

static struct ArrowArray* new_batch(int64_t length, int64_t offset, int64_t n_children) {
  struct ArrowArray* batch = new_array(length, offset, 1, n_children);
  batch->null_count = 0;
  return batch;
}

/* Runs a function; the results are the caller's. */
static struct ArrowArray run(uint32_t function, struct ArrowArray* batch) {
  struct ArrowArray results;
  const struct ArrowSchema* schema = NULL;
  arroyo_udf_error error = {.size = sizeof error};
  const arroyo_udf_status status = table->run(function, batch, NULL, &results, &schema, &error);
  if (status != ARROYO_UDF_OK) fprintf(stderr, "%s\n", error.text);
  CHECK(status == ARROYO_UDF_OK && batch->release == NULL);
  free(batch);
  return results;
}

/* The value of results, taken out of them: they are released before it, or after it. */
static struct ArrowArray* value_of(struct ArrowArray* results) {
  struct ArrowArray* value = exact(sizeof *value);
  *value = *results->children[0];
  results->children[0]->release = NULL;
  results->release(results);
  return value;
}

static const char* text_at(const struct ArrowArray* array, int64_t row, int* length) {
  const int32_t* offsets = (const int32_t*)array->buffers[1] + array->offset + row;
  *length = offsets[1] - offsets[0];
  return (const char*)array->buffers[2] + offsets[0];
}

static uint32_t number_of(const char* name) {
  const arroyo_udf_descriptor* plugin = table->describe();
  for (uint32_t i = 0; i < plugin->n_functions; i++)
    if (strcmp(plugin->functions[i]->name, name) == 0) return i;
  CHECK(!"a function of this name");
  return 0;
}

/* ---- Aggregates -------------------------------------------------------------------------------------------------- */

/* Lists of words and of numbers, of equal lengths: joined(word, number). A group has at most two words of two letters. */
static void check_joined(int64_t groups, int64_t offset, bool nulls) {
  const int64_t cells = offset + groups;
  struct ArrowArray* batch = new_batch(groups, offset, 3);
  struct ArrowArray* states = batch->children[0] = new_array(cells, 0, 3, 0);
  states->buffers[0] = calloc((size_t)(cells + 7) / 8 + 1, 1); /* all are null */
  states->buffers[1] = calloc((size_t)cells + 1, sizeof(int32_t));
  states->null_count = cells;
  int64_t last;
  int32_t* offsets = new_offsets(cells, 2, &last);
  struct ArrowArray* words = batch->children[1] = new_array(cells, 0, 2, 1);
  struct ArrowArray* numbers = batch->children[2] = new_array(cells, 0, 2, 1);
  words->buffers[1] = offsets;
  numbers->buffers[1] = memcpy(exact((cells + 1) * 4), offsets, (size_t)(cells + 1) * 4);
  struct ArrowArray* letters = words->children[0] = new_texts(last, below(9), 2, "abc");
  struct ArrowArray* digits = numbers->children[0] = new_array(last, below(9), 2, 0);
  int64_t* values = exact((digits->offset + last) * 8);
  for (int64_t i = 0; i < digits->offset + last; i++) values[i] = below(10);
  digits->buffers[1] = values;
  if (nulls) add_nulls(letters), add_nulls(digits);
  char(*expected)[40] = exact((groups + 1) * 40);
  for (int64_t group = 0; group < groups; group++) {
    char* end = expected[group];
    *end = 0;
    for (int32_t i = offsets[offset + group]; i < offsets[offset + group + 1]; i++) {
      int length;
      const char* text = text_at(letters, i, &length);
      if (is_null(letters, i)) continue;
      end += sprintf(end, "%.*s", length, text);
      end += is_null(digits, i) ? sprintf(end, "-") : sprintf(end, "%d", (int)values[digits->offset + i]);
    }
  }

  struct ArrowArray results = run(number_of("joined.update"), batch);
  CHECK(results.n_children == 1);
  struct ArrowArray* updated = value_of(&results);
  struct ArrowArray* merging = new_batch(groups, 0, 2);
  merging->children[0] = updated;
  merging->children[1] = new_array(groups, 0, 3, 0); /* the states of new groups, in full */
  merging->children[1]->buffers[1] = exact((groups + 1) * 4);
  for (int32_t i = 0; i <= groups; i++) ((int32_t*)merging->children[1]->buffers[1])[i] = 19 * i;
  merging->children[1]->buffers[2] = memset(exact(19 * groups), 0, (size_t)(19 * groups));
  results = run(number_of("joined.merge"), merging);
  CHECK(results.n_children == 1);
  struct ArrowArray* finishing = new_batch(groups, 0, 1);
  finishing->children[0] = value_of(&results);
  results = run(number_of("joined.finish"), finishing);
  CHECK(results.n_children == 1 && results.children[0]->length == groups);
  for (int64_t group = 0; group < groups; group++) {
    int length;
    const char* text = text_at(results.children[0], group, &length);
    CHECK((size_t)length == strlen(expected[group]) && memcmp(text, expected[group], (size_t)length) == 0);
  }
  results.release(&results);
  free(expected);
  CHECK(arrays == 0);
}

/* ---- Table functions --------------------------------------------------------------------------------------------- */

/* A word ends with a blank. Results are released in two orders. */
static void check_words(int64_t rows, int64_t offset, bool nulls) {
  struct ArrowArray* batch = new_batch(rows, offset, 1);
  struct ArrowArray* texts = batch->children[0] = new_texts(offset + rows, below(9), 30, "ab  ");
  if (nulls) add_nulls(texts);
  int* expected = exact((rows + 1) * (int64_t)sizeof *expected);
  for (int64_t row = 0; row < rows; row++) {
    int length;
    const char* text = text_at(texts, offset + row, &length);
    expected[row] = is_null(texts, offset + row) ? -1 : 0;
    for (int i = 0; i < length && expected[row] >= 0; i++) expected[row] += text[i] == ' ';
  }
  struct ArrowArray results = run(number_of("words"), batch);
  struct ArrowArray* lists = results.children[0];
  struct ArrowArray* items = lists->children[0];
  const int32_t* offsets = lists->buffers[1];
  CHECK(results.length == rows && lists->length == rows && items->length == offsets[rows]);
  for (int64_t row = 0; row < rows; row++) {
    CHECK(is_null(lists, row) == (expected[row] < 0));
    CHECK(offsets[row + 1] - offsets[row] == (expected[row] < 0 ? 0 : expected[row]));
    for (int32_t i = offsets[row]; i < offsets[row + 1]; i++) {
      CHECK(((const int64_t*)items->children[1]->buffers[1])[i] == i - offsets[row]);
      CHECK(is_null(items->children[2], i) == (i == offsets[row]));
      CHECK((((const uint8_t*)items->children[3]->buffers[1])[i / 8] >> (i % 8) & 1) == (i == offsets[row]));
      int length, before;
      const char* text = text_at(items->children[0], i, &length);
      const char* last = i > offsets[row] ? text_at(items->children[0], i - 1, &before) : NULL;
      if (last == NULL) continue;
      CHECK(memcmp(text_at(items->children[2], i, &length), last, (size_t)before) == 0 && length == before);
      CHECK(text != NULL);
    }
  }
  if (rows % 2) {
    results.release(&results);
  } else { /* a column outlives its struct, list and batch */
    struct ArrowArray column = *items->children[0];
    items->children[0]->release = NULL;
    results.release(&results);
    column.release(&column);
  }
  free(expected);
  CHECK(arrays == 0);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror());
  CHECK(library != NULL);
  table = dlsym(library, "arroyo_udf_plugin");
  int batches = 0;
  for (int64_t rows = 0; rows < 150; rows += 1 + rows / 8)
    for (int64_t offset = 0; offset < 12; offset += 5)
      for (int nulls = 0; nulls < 2; nulls++, batches++) {
        check_joined(rows, offset, nulls);
        check_words(rows, offset, nulls);
      }
  printf("%d batches are right\n", batches);
  return 0;
}
