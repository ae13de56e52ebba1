/* packed.h: values as bytes, one after the other, and columns that are made of such bytes.
 *
 *     pack(&bytes, type, array, row)      a byte that says whether there is a value, then the value
 *     unpack(&column, &at)                appends the value at `at` to a column, and moves `at` behind it
 *     close_column(&column, &array)       the column as an array
 *
 * Groups of an aggregate keep their rows and states so: a group is then one or two pieces of memory, which are copied,
 * joined and freed without a look at the type. The types are those that functions have: no views, dictionaries or maps. */
#ifndef ARROYO_UDF_ENGINES_PACKED_H
#define ARROYO_UDF_ENGINES_PACKED_H

#include "columns.h"
#include "nested.h"

/* ---- Memory that grows ------------------------------------------------------------------------------------------ */

typedef struct {
  char *data;
  size_t length, room;
} bytes;

/* false: no memory; nothing has changed. */
static inline bool room_for(bytes *in, size_t more) {
  if (__builtin_expect(more <= in->room - in->length, 1)) return true;
  size_t room = in->length + more > 2 * in->room ? in->length + more : 2 * in->room;
  char *data = realloc(in->data, room);
  if (data == NULL) return false;
  in->data = data;
  in->room = room;
  return true;
}

static inline bool append(bytes *to, const void *data, size_t length) {
  if (!room_for(to, length)) return false;
  if (length) memcpy(to->data + to->length, data, length);
  to->length += length;
  return true;
}

static inline bool append_zeros(bytes *to, size_t length) {
  if (!room_for(to, length)) return false;
  memset(to->data + to->length, 0, length);
  to->length += length;
  return true;
}

static void remove_front(bytes *from, size_t length) {
  from->length -= length;
  if (from->length) memmove(from->data, from->data + length, from->length);
}

static void free_bytes(bytes *given) {
  free(given->data);
  *given = (bytes){NULL, 0, 0};
}

/* ---- Values ----------------------------------------------------------------------------------------------------- */

static bool pack_text(bytes *to, const void *text, int64_t length) {
  return append(to, "\1", 1) && append(to, &length, sizeof length) && append(to, text, (size_t)length);
}

static inline bool append_number(bytes *to, const char *number, int width) {
  switch (width) { /* known sizes are fast */
    case 8: return append(to, number, 8);
    case 4: return append(to, number, 4);
    default: return append(to, number, (size_t)width);
  }
}

/* row: counted from the array's offset. false: no memory. */
static bool pack(bytes *to, const struct ArrowSchema *type, const struct ArrowArray *array, int64_t row) {
  column_shape shape = shape_of(type);
  if (shape.kind == EMPTY || !is_valid(array, row)) return append(to, "\0", 1);
  int64_t i = array->offset + row, length;
  if (shape.kind == TEXT || shape.kind == BYTES) {
    const char *text = text_at(array, shape, row, &length);
    return pack_text(to, text, length);
  }
  if (!append(to, "\1", 1)) return false;
  if (shape.kind == BIT) return append(to, bit_at(array->buffers[1], i) ? "\1" : "\0", 1);
  if (shape.kind != NESTED) return append_number(to, (const char *)array->buffers[1] + i * shape.width, shape.width);
  bool is_whole = true;
  if (is_struct(type)) {
    for (int64_t c = 0; is_whole && c < type->n_children; c++)
      is_whole = pack(to, type->children[c], array->children[c], i);
    return is_whole;
  }
  int width = type->format[1] == 'L' ? 8 : 4;
  int64_t begin = signed_at(array->buffers[1], width, i), end = signed_at(array->buffers[1], width, i + 1);
  length = end - begin;
  is_whole = append(to, &length, sizeof length);
  for (int64_t at = begin; is_whole && at < end; at++) is_whole = pack(to, type->children[0], array->children[0], at);
  return is_whole;
}

/* ---- Columns ---------------------------------------------------------------------------------------------------- */

typedef struct column {
  const struct ArrowSchema *type;
  column_shape shape;
  int64_t length, nulls;
  bytes validity, values, text; /* values: or offsets */
  struct column *children;
} column;

static void free_column(column *given) {
  free_bytes(&given->validity);
  free_bytes(&given->values);
  free_bytes(&given->text);
  for (int64_t i = 0; given->children && i < given->type->n_children; i++) free_column(&given->children[i]);
  free(given->children);
  given->children = NULL;
}

static bool has_offsets(const column *of) {
  return of->shape.kind == TEXT || of->shape.kind == BYTES || (of->shape.kind == NESTED && is_list(of->type));
}

static int offset_width(const column *of) {
  return of->shape.kind != NESTED ? of->shape.width : of->type->format[1] == 'L' ? 8 : 4;
}

/* An empty one, also if it answers false: no memory. */
static bool open_column(column *made, const struct ArrowSchema *type) {
  *made = (column){.type = type, .shape = shape_of(type)};
  made->children = calloc((size_t)type->n_children + 1, sizeof(column));
  bool is_whole = made->children != NULL && (!has_offsets(made) || append_zeros(&made->values, (size_t)offset_width(made)));
  for (int64_t i = 0; made->children && i < type->n_children; i++)
    is_whole &= open_column(&made->children[i], type->children[i]);
  return is_whole;
}

/* The validity of one more row. */
static bool next_row(column *to, bool valid) {
  if (to->length % 8 == 0 && !append_zeros(&to->validity, 1)) return false;
  if (valid) set_bit(to->validity.data, to->length);
  else to->nulls++;
  to->length++;
  return true;
}

/* Ends a text or a list, after its content. false: no memory, or more than offsets of this type can count. */
static bool end_content(column *to) {
  uint64_t end = to->shape.kind == NESTED ? (uint64_t)to->children[0].length : to->text.length;
  int width = offset_width(to);
  return (width == 8 || end <= INT32_MAX) && append(&to->values, &end, (size_t)width); /* little-endian */
}

static bool unpack(column *to, const char **at) {
  bool valid = *(*at)++;
  column_shape shape = to->shape;
  int64_t length = 0;
  if (!next_row(to, valid)) return false;
  if (shape.kind == EMPTY) return true;
  if (shape.kind == BIT) {
    if (to->length % 8 == 1 && !append_zeros(&to->values, 1)) return false;
    if (valid && *(*at)++) set_bit(to->values.data, to->length - 1);
    return true;
  }
  if (shape.kind != NESTED && !has_offsets(to)) {
    if (!valid) return append_zeros(&to->values, (size_t)shape.width);
    *at += shape.width;
    return append_number(&to->values, *at - shape.width, shape.width);
  }
  bool is_whole = true;
  if (!has_offsets(to)) { /* a struct; where it is null, its fields are, too */
    for (int64_t i = 0; is_whole && i < to->type->n_children; i++) {
      const char *null = "\0";
      is_whole = unpack(&to->children[i], valid ? at : &null);
    }
    return is_whole;
  }
  if (valid) memcpy(&length, *at, sizeof length), *at += sizeof length;
  if (shape.kind == NESTED) {
    for (int64_t i = 0; is_whole && i < length; i++) is_whole = unpack(&to->children[0], at);
  } else if (valid) {
    is_whole = append(&to->text, *at, (size_t)length);
    *at += length;
  }
  return is_whole && end_content(to);
}

static bool unpack_null(column *to) {
  const char *null = "\0";
  return unpack(to, &null);
}

static void release_closed(struct ArrowArray *array) {
  for (int64_t i = 0; i < array->n_children; i++) {
    if (array->children[i]->release) array->children[i]->release(array->children[i]);
    free(array->children[i]);
  }
  free(array->children);
  release_own(array);
}

/* The rows as an array; the column is empty then, and closed. false: no memory; the column is still to be freed. */
static bool close_column(column *given, struct ArrowArray *array) {
  int64_t n_children = given->type->n_children;
  own_buffers *own = calloc(1, sizeof *own);
  struct ArrowArray **children = calloc((size_t)n_children + 1, sizeof(void *));
  *array = (struct ArrowArray){.length = given->length, .null_count = given->nulls, .release = release_closed};
  array->private_data = own;
  array->children = children;
  bool is_whole = own && children && room_for(&given->validity, 8) && room_for(&given->values, 8) && room_for(&given->text, 8);
  for (; is_whole && array->n_children < n_children; array->n_children++) {
    struct ArrowArray *child = children[array->n_children] = calloc(1, sizeof *child);
    if (child == NULL || !close_column(&given->children[array->n_children], child)) {
      free(child);
      is_whole = false;
      break;
    }
  }
  if (!is_whole) {
    if (own) release_closed(array);
    else free(children);
    array->release = NULL;
    return false;
  }
  bytes *buffers[] = {&given->validity, &given->values, &given->text};
  array->n_buffers = given->shape.kind == EMPTY ? 0 : given->shape.kind != NESTED ? (has_offsets(given) ? 3 : 2)
                     : is_list(given->type)                                       ? 2
                                                                                  : 1;
  array->buffers = own->pointers;
  for (int i = 0; i < array->n_buffers; i++) {
    own->pointers[i] = own->memory[i] = buffers[i]->data;
    *buffers[i] = (bytes){NULL, 0, 0};
  }
  free_column(given);
  return true;
}

#endif
