/* columns.h: columns of engines as arrays of the types that a function has.
 *
 * A function takes exactly the types that it describes. Engines have others: string views, large strings, narrower
 * numbers, chunks, a constant of length one. `gather` makes one array of the wanted type of all of these.
 *
 * GUARANTEES  A cast loses nothing: integers to wider ones and to floats that hold each of them, float32 to float64, text
 *             and bytes between their layouts, and nulls without a type to any type. Nested types pass unchanged. */
#ifndef ARROYO_UDF_ENGINES_COLUMNS_H
#define ARROYO_UDF_ENGINES_COLUMNS_H

#include "arroyo_udf.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Texts of errors -------------------------------------------------------------------------------------------- */

static char out_of_memory[] = "out of memory";

/* A text of one's own, to be freed by `free_text`. */
__attribute__((format(printf, 1, 2))) static char *text_of(const char *format, ...) {
  char *text = NULL;
  va_list arguments;
  va_start(arguments, format);
  int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  return length < 0 ? out_of_memory : text;
}

static void free_text(char *text) {
  if (text != out_of_memory) free(text);
}

/* ---- Types ------------------------------------------------------------------------------------------------------ */

typedef enum { NESTED, EMPTY, BIT, SIGNED, UNSIGNED, FLOATING, FIXED, TEXT, BYTES } column_kind;

/* The layout of a type. width: bytes of a value; of texts and bytes, of an offset, and 16 for views. */
typedef struct {
  column_kind kind;
  int width;
} column_shape;

static column_shape shape_of(const struct ArrowSchema *type) {
  const char *f = type->format;
  if (type->dictionary != NULL || type->n_children > 0) return (column_shape){NESTED, 0};
  switch (f[0]) {
    case 'n': return (column_shape){EMPTY, 0};
    case 'b': return (column_shape){BIT, 0};
    case 'c': return (column_shape){SIGNED, 1};
    case 's': return (column_shape){SIGNED, 2};
    case 'i': return (column_shape){SIGNED, 4};
    case 'l': return (column_shape){SIGNED, 8};
    case 'C': return (column_shape){UNSIGNED, 1};
    case 'S': return (column_shape){UNSIGNED, 2};
    case 'I': return (column_shape){UNSIGNED, 4};
    case 'L': return (column_shape){UNSIGNED, 8};
    case 'f': return (column_shape){FLOATING, 4};
    case 'g': return (column_shape){FLOATING, 8};
    case 'e': return (column_shape){FIXED, 2}; /* float16 */
    case 'u': return (column_shape){TEXT, 4};
    case 'U': return (column_shape){TEXT, 8};
    case 'z': return (column_shape){BYTES, 4};
    case 'Z': return (column_shape){BYTES, 8};
    case 'w': return (column_shape){FIXED, atoi(f + 2)};
    case 'd': { /* d:precision,scale[,bits] */
      const char *comma = strrchr(f, ',');
      return (column_shape){FIXED, strchr(f, ',') == comma ? 16 : atoi(comma + 1) / 8};
    }
    case 'v': return (column_shape){f[1] == 'u' ? TEXT : BYTES, 16};
    case 't': {
      bool is_short = !strcmp(f, "tdD") || !strcmp(f, "tts") || !strcmp(f, "ttm") || !strcmp(f, "tiM");
      return (column_shape){FIXED, is_short ? 4 : !strcmp(f, "tin") ? 16 : 8};
    }
    default: return (column_shape){NESTED, 0};
  }
}

static bool same_type(const struct ArrowSchema *one, const struct ArrowSchema *other) {
  if (strcmp(one->format, other->format) || one->n_children != other->n_children) return false;
  if ((one->dictionary == NULL) != (other->dictionary == NULL)) return false;
  if (one->dictionary && !same_type(one->dictionary, other->dictionary)) return false;
  for (int64_t i = 0; i < one->n_children; i++)
    if (!same_type(one->children[i], other->children[i])) return false;
  return true;
}

/* Whether each value of one type is one of the other, too. */
static bool is_castable(const struct ArrowSchema *from, const struct ArrowSchema *to) {
  if (same_type(from, to)) return true;
  column_shape a = shape_of(from), b = shape_of(to);
  if (b.kind == NESTED) return false;
  switch (a.kind) {
    case EMPTY: return true;
    case TEXT: case BYTES: return a.kind == b.kind;
    case SIGNED: return (b.kind == SIGNED && a.width <= b.width) || (b.kind == FLOATING && a.width < b.width);
    case UNSIGNED:
      return (b.kind == UNSIGNED && a.width <= b.width) || ((b.kind == SIGNED || b.kind == FLOATING) && a.width < b.width);
    case FLOATING: return b.kind == FLOATING && a.width <= b.width;
    default: return false;
  }
}

/* A type for people. */
static const char *name_of(const struct ArrowSchema *type) {
  static const char *names[][2] = {
      {"n", "null"}, {"b", "bool"}, {"c", "int8"}, {"s", "int16"}, {"i", "int32"}, {"l", "int64"}, {"C", "uint8"},
      {"S", "uint16"}, {"I", "uint32"}, {"L", "uint64"}, {"e", "float16"}, {"f", "float32"}, {"g", "float64"},
      {"u", "utf8"}, {"U", "large_utf8"}, {"vu", "utf8_view"}, {"z", "binary"}, {"Z", "large_binary"},
      {"vz", "binary_view"}, {"tdD", "date32"}, {"ttu", "time64[us]"}, {"tsu:", "timestamp[us]"}, {"+l", "list"},
      {"+L", "large_list"}, {"+s", "struct"}, {"+m", "map"}};
  if (type->dictionary) return "dictionary (categories)";
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(type->format, names[i][0])) return names[i][1];
  return type->format;
}

/* ---- Arrays of our own ------------------------------------------------------------------------------------------ */

typedef struct {
  const void *pointers[3];
  void *memory[3];
} own_buffers;

static void release_own(struct ArrowArray *array) {
  own_buffers *own = array->private_data;
  for (int i = 0; i < 3; i++) free(own->memory[i]);
  free(own);
  array->release = NULL;
}

/* An array with zeroed memory: validity, values or offsets, and `bytes` of texts. false: no memory. */
static bool make_own(struct ArrowArray *array, column_shape shape, int64_t length, int64_t bytes) {
  bool is_text = shape.kind == TEXT || shape.kind == BYTES;
  size_t n = (size_t)length;
  size_t values = shape.kind == BIT ? n / 8 + 1 : is_text ? (n + 1) * (size_t)shape.width : n * (size_t)shape.width;
  own_buffers *own = calloc(1, sizeof *own);
  if (own == NULL) return false;
  size_t sizes[3] = {n / 8 + 1, values, is_text ? (size_t)bytes : 0};
  int n_buffers = is_text ? 3 : 2;
  *array = (struct ArrowArray){.length = length, .n_buffers = n_buffers, .release = release_own, .private_data = own};
  array->buffers = own->pointers;
  for (int i = 0; i < n_buffers; i++) {
    own->pointers[i] = own->memory[i] = calloc(sizes[i] + 8, 1);
    if (own->memory[i] == NULL) {
      release_own(array);
      return false;
    }
  }
  return true;
}

static inline bool bit_at(const void *bits, int64_t i) { return ((const uint8_t *)bits)[i >> 3] >> (i & 7) & 1; }
static inline void set_bit(void *bits, int64_t i) { ((uint8_t *)bits)[i >> 3] |= (uint8_t)(1u << (i & 7)); }

/* row: counted from the array's offset. */
static inline bool is_valid(const struct ArrowArray *array, int64_t row) {
  return array->n_buffers > 0 && (array->buffers[0] == NULL || bit_at(array->buffers[0], array->offset + row));
}

static const char *text_at(const struct ArrowArray *array, column_shape shape, int64_t row, int64_t *length) {
  int64_t i = array->offset + row;
  if (shape.width == 16) { /* a view: its length, then up to 12 bytes, or a prefix, a buffer's number and a place there */
    const char *view = (const char *)array->buffers[1] + 16 * i;
    int32_t parts[4];
    memcpy(parts, view, sizeof parts);
    *length = parts[0];
    return parts[0] <= 12 ? view + 4 : (const char *)array->buffers[2 + parts[2]] + parts[3];
  }
  int64_t begin = shape.width == 4 ? ((const int32_t *)array->buffers[1])[i] : ((const int64_t *)array->buffers[1])[i];
  int64_t end =
      shape.width == 4 ? ((const int32_t *)array->buffers[1])[i + 1] : ((const int64_t *)array->buffers[1])[i + 1];
  *length = end - begin;
  return *length ? (const char *)array->buffers[2] + begin : "";
}

static inline int64_t signed_at(const void *values, int width, int64_t i) {
  switch (width) {
    case 1: return ((const int8_t *)values)[i];
    case 2: return ((const int16_t *)values)[i];
    case 4: return ((const int32_t *)values)[i];
    default: return ((const int64_t *)values)[i];
  }
}

static inline uint64_t unsigned_at(const void *values, int width, int64_t i) {
  switch (width) {
    case 1: return ((const uint8_t *)values)[i];
    case 2: return ((const uint16_t *)values)[i];
    case 4: return ((const uint32_t *)values)[i];
    default: return ((const uint64_t *)values)[i];
  }
}

static inline void put_integer(void *values, int width, int64_t i, uint64_t value) {
  switch (width) {
    case 1: ((uint8_t *)values)[i] = (uint8_t)value; break;
    case 2: ((uint16_t *)values)[i] = (uint16_t)value; break;
    case 4: ((uint32_t *)values)[i] = (uint32_t)value; break;
    default: ((uint64_t *)values)[i] = value;
  }
}

static inline void put_float(void *values, int width, int64_t i, double value) {
  if (width == 4) ((float *)values)[i] = (float)value;
  else ((double *)values)[i] = value;
}

/* One valid value that is no text. */
static void copy_value(void *to, column_shape b, int64_t at, const struct ArrowArray *from, column_shape a, int64_t row) {
  const void *values = from->buffers[1];
  int64_t i = from->offset + row;
  switch (a.kind) {
    case BIT:
      if (bit_at(values, i)) set_bit(to, at);
      break;
    case SIGNED:
      if (b.kind == FLOATING) put_float(to, b.width, at, (double)signed_at(values, a.width, i));
      else put_integer(to, b.width, at, (uint64_t)signed_at(values, a.width, i));
      break;
    case UNSIGNED:
      if (b.kind == FLOATING) put_float(to, b.width, at, (double)unsigned_at(values, a.width, i));
      else put_integer(to, b.width, at, unsigned_at(values, a.width, i));
      break;
    case FLOATING:
      put_float(to, b.width, at, a.width == 4 ? ((const float *)values)[i] : ((const double *)values)[i]);
      break;
    default: memcpy((char *)to + at * b.width, (const char *)values + i * a.width, (size_t)b.width);
  }
}

/* The chunks of a column as one array of a type that is not nested; they stay the caller's. rows: of the array. One chunk
 * with one row counts for all. false: no memory, or more than 2 GiB of a type with short offsets. */
static bool gather(struct ArrowArray *array, column_shape to, struct ArrowArray *const *chunks, size_t n_chunks,
                   column_shape from, int64_t rows) {
  bool is_text = to.kind == TEXT || to.kind == BYTES, is_constant = n_chunks == 1 && chunks[0]->length == 1;
  int64_t bytes = 0, length;
  for (size_t c = 0; is_text && from.kind != EMPTY && c < n_chunks; c++)
    for (int64_t row = 0; row < chunks[c]->length; row++)
      if (is_valid(chunks[c], row)) text_at(chunks[c], from, row, &length), bytes += length;
  if (is_constant) bytes *= rows;
  if ((to.width == 4 && bytes > INT32_MAX) || !make_own(array, to, rows, bytes)) return false;
  own_buffers *own = array->private_data;
  int64_t at = 0, end = 0;
  for (size_t c = 0; c < n_chunks; c++) {
    int64_t here = is_constant ? rows : chunks[c]->length;
    for (int64_t i = 0; i < here; i++, at++) {
      int64_t row = is_constant ? 0 : i;
      bool valid = from.kind != EMPTY && is_valid(chunks[c], row);
      if (valid) set_bit(own->memory[0], at);
      else array->null_count++;
      if (is_text) {
        if (valid) {
          const char *text = text_at(chunks[c], from, row, &length);
          memcpy((char *)own->memory[2] + end, text, (size_t)length);
          end += length;
        }
        put_integer(own->memory[1], to.width, at + 1, (uint64_t)end);
      } else if (valid) {
        copy_value(own->memory[1], to, at, chunks[c], from, row);
      }
    }
  }
  return true;
}

/* ---- Schemas of our own ----------------------------------------------------------------------------------------- */

static void release_schema(struct ArrowSchema *schema) {
  for (int64_t i = 0; i < schema->n_children; i++) {
    if (schema->children[i] == NULL) continue;
    if (schema->children[i]->release) schema->children[i]->release(schema->children[i]);
    free(schema->children[i]);
  }
  free(schema->children);
  free(schema->private_data); /* the name */
  schema->release = NULL;
}

/* A copy of a type of this library, whose texts live as long as the process. false: no memory. */
static bool copy_schema(struct ArrowSchema *copy, const struct ArrowSchema *type, const char *name) {
  *copy = (struct ArrowSchema){.format = type->format, .metadata = type->metadata, .flags = type->flags};
  copy->release = release_schema;
  copy->name = copy->private_data = strdup(name ? name : "");
  copy->children = calloc((size_t)type->n_children + 1, sizeof(void *));
  bool is_whole = copy->name != NULL && copy->children != NULL;
  for (int64_t i = 0; is_whole && i < type->n_children; i++) {
    copy->n_children = i + 1;
    copy->children[i] = calloc(1, sizeof(struct ArrowSchema));
    is_whole = copy->children[i] != NULL && copy_schema(copy->children[i], type->children[i], type->children[i]->name);
  }
  if (!is_whole) release_schema(copy);
  return is_whole;
}

#endif
