/* nested.h: lists and structs, whose items have other types in some engines: large lists, string views.
 *
 * GUARANTEES  A list becomes a list with other offsets, a struct one with other fields of the same names and order; items
 *             and fields are cast as columns are. What need not change is not copied. */
#ifndef ARROYO_UDF_ENGINES_NESTED_H
#define ARROYO_UDF_ENGINES_NESTED_H

#include "columns.h"

static bool is_list(const struct ArrowSchema *type) {
  return (!strcmp(type->format, "+l") || !strcmp(type->format, "+L")) && type->n_children == 1;
}

static bool is_struct(const struct ArrowSchema *type) { return !strcmp(type->format, "+s"); }

/* Whether each value of one type is one of the other, too. */
static bool is_convertible(const struct ArrowSchema *from, const struct ArrowSchema *to) {
  if (is_castable(from, to)) return true;
  if (!(is_list(from) && is_list(to)) && !(is_struct(from) && is_struct(to))) return false;
  if (from->n_children != to->n_children) return false;
  for (int64_t i = 0; i < from->n_children; i++) {
    if (is_struct(to) && strcmp(from->children[i]->name, to->children[i]->name)) return false;
    if (!is_convertible(from->children[i], to->children[i])) return false;
  }
  return true;
}

typedef struct {
  struct ArrowArray whole; /* what it was made of, but for its children */
  const void *buffers[2];
  void *offsets;
} nested_array;

static void release_nested(struct ArrowArray *array) {
  nested_array *own = array->private_data;
  for (int64_t i = 0; i < array->n_children; i++) {
    if (array->children[i]->release) array->children[i]->release(array->children[i]);
    free(array->children[i]);
  }
  free(array->children);
  if (own->whole.release) own->whole.release(&own->whole);
  free(own->offsets);
  free(own);
  array->release = NULL;
}

static bool converted(struct ArrowArray *array, const struct ArrowSchema *to, struct ArrowArray *given,
                      const struct ArrowSchema *from);

/* A list or a struct, of the given one's validity and of converted children. */
static bool converted_nested(struct ArrowArray *array, const struct ArrowSchema *to, struct ArrowArray *given,
                             const struct ArrowSchema *from) {
  nested_array *own = calloc(1, sizeof *own);
  if (own == NULL) return false;
  *array = *given;
  array->n_children = 0;
  array->children = calloc((size_t)given->n_children + 1, sizeof(void *));
  array->buffers = own->buffers;
  array->private_data = own;
  array->release = release_nested;
  own->buffers[0] = given->buffers[0];
  bool is_whole = array->children != NULL;
  if (is_whole && is_list(to)) {
    bool is_wide = from->format[1] == 'L', is_wanted_wide = to->format[1] == 'L';
    int64_t last = given->offset + given->length;
    own->buffers[1] = given->buffers[1];
    if (is_wide != is_wanted_wide) {
      own->offsets = calloc((size_t)last + 1, is_wanted_wide ? 8 : 4);
      own->buffers[1] = own->offsets;
      is_whole = own->offsets != NULL;
      for (int64_t i = 0; is_whole && given->buffers[1] && i <= last; i++) {
        int64_t offset = signed_at(given->buffers[1], is_wide ? 8 : 4, i);
        is_whole = is_wanted_wide || offset <= INT32_MAX;
        put_integer(own->offsets, is_wanted_wide ? 8 : 4, i, (uint64_t)offset);
      }
    }
  }
  for (int64_t i = 0; is_whole && i < given->n_children; i++) {
    struct ArrowArray *child = calloc(1, sizeof *child);
    if (child == NULL) {
      is_whole = false;
      break;
    }
    array->children[array->n_children++] = child;
    is_whole = converted(child, to->children[i], given->children[i], from->children[i]);
  }
  own->whole = *given; /* its children that were moved are released already */
  given->release = NULL;
  if (!is_whole) release_nested(array);
  return is_whole;
}

/* An array of another type, which is made of a given one. It takes the given one. false: no memory, or it is too large. */
static bool converted(struct ArrowArray *array, const struct ArrowSchema *to, struct ArrowArray *given,
                      const struct ArrowSchema *from) {
  if (same_type(from, to)) {
    *array = *given;
    given->release = NULL;
    return true;
  }
  if (shape_of(to).kind == NESTED && shape_of(from).kind == NESTED) return converted_nested(array, to, given, from);
  struct ArrowArray chunk = *given;
  struct ArrowArray *chunks = &chunk;
  if (!gather(array, shape_of(to), &chunks, 1, shape_of(from), given->length)) return false;
  given->release(given);
  return true;
}

#endif
