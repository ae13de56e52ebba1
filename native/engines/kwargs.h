/* kwargs.h: the kwargs of a Polars expression, which are constants of the arguments of these names.
 *
 *     char *why = read_kwargs(&kwargs, data, length)      a pickled dict of plain values
 *     why = kwarg_array(&array, wanted, &kwarg)           one of them, as an array with one row
 *
 * Polars passes `pickle.dumps(kwargs, protocol=5)`. Pickles are programs for a stack; only the instructions of dicts,
 * texts, bytes, numbers, booleans and None are known here, so nothing else happens, whoever has written the bytes.
 *
 * GUARANTEES  No byte beyond the pickle is read. What is not understood is refused. The texts of kwargs lie in it. */
#ifndef ARROYO_UDF_ENGINES_KWARGS_H
#define ARROYO_UDF_ENGINES_KWARGS_H

#include <math.h>
#include "columns.h"

#define MOST_KWARGS 64
#define MOST_PICKLED (4 * MOST_KWARGS) /* items on the stack, and in the memo */

typedef enum { PICKLED_NONE, PICKLED_BOOL, PICKLED_INT, PICKLED_FLOAT, PICKLED_TEXT, PICKLED_BYTES, PICKLED_DICT,
               PICKLED_MARK } pickled_kind;

typedef struct {
  pickled_kind kind;
  bool is_negative;
  uint64_t integer; /* in two's complement */
  double number;
  const char *text; /* or bytes */
  int64_t length;
} pickled;

typedef struct {
  size_t n;
  pickled names[MOST_KWARGS];
  pickled values[MOST_KWARGS];
} kwargs_of_call;

typedef struct {
  const uint8_t *at, *end;
  pickled stack[MOST_PICKLED], memo[MOST_PICKLED];
  size_t depth, remembered;
  bool is_broken;
} unpickler;

/* Little-endian; 0 if they are not there. */
static uint64_t pickled_number(unpickler *from, size_t bytes) {
  uint64_t number = 0;
  if ((size_t)(from->end - from->at) < bytes) return from->is_broken = true, 0;
  for (size_t i = 0; i < bytes; i++) number |= (uint64_t)from->at[i] << (8 * i);
  from->at += bytes;
  return number;
}

static void pickled_push(unpickler *to, pickled item) {
  if (to->depth == MOST_PICKLED) to->is_broken = true;
  else to->stack[to->depth++] = item;
}

static void pickled_text(unpickler *from, pickled_kind kind, size_t bytes_of_length) {
  uint64_t length = pickled_number(from, bytes_of_length);
  if (from->is_broken || length > (uint64_t)(from->end - from->at)) {
    from->is_broken = true;
    return;
  }
  pickled_push(from, (pickled){.kind = kind, .text = (const char *)from->at, .length = (int64_t)length});
  from->at += length;
}

/* bytes: at most 8, or 9 for numbers of 64 bits without a sign. */
static void pickled_integer(unpickler *from, size_t bytes, bool is_signed) {
  bool has_ninth = bytes == 9;
  if (bytes > 9) {
    from->is_broken = true;
    return;
  }
  uint64_t number = pickled_number(from, has_ninth ? 8 : bytes);
  bool is_negative = is_signed && bytes > 0 && !has_ninth && (number >> (8 * bytes - 1) & 1) != 0;
  if (has_ninth && pickled_number(from, 1) != 0) from->is_broken = true;
  if (is_negative && bytes < 8) number |= UINT64_MAX << (8 * bytes);
  pickled_push(from, (pickled){.kind = PICKLED_INT, .integer = number, .is_negative = is_negative});
}

static void pickled_remember(unpickler *in, uint64_t place) {
  if (in->depth == 0 || place >= MOST_PICKLED || place > in->remembered) {
    in->is_broken = true;
    return;
  }
  in->memo[place] = in->stack[in->depth - 1];
  if (place == in->remembered) in->remembered++;
}

static void pickled_recall(unpickler *in, uint64_t place) {
  if (place >= in->remembered) in->is_broken = true;
  else pickled_push(in, in->memo[place]);
}

/* The items from number `first` on are names and values of the dict below them, or below the mark. */
static void pickled_set(unpickler *in, size_t first, size_t dict, kwargs_of_call *kwargs) {
  if (dict >= in->depth || in->stack[dict].kind != PICKLED_DICT || (in->depth - first) % 2 != 0) {
    in->is_broken = true;
    return;
  }
  for (size_t i = first; i < in->depth; i += 2) {
    if (in->stack[i].kind != PICKLED_TEXT || in->stack[i + 1].kind >= PICKLED_DICT || kwargs->n == MOST_KWARGS) {
      in->is_broken = true;
      return;
    }
    kwargs->names[kwargs->n] = in->stack[i];
    kwargs->values[kwargs->n++] = in->stack[i + 1];
  }
  in->depth = dict + 1;
}

static void pickled_set_many(unpickler *in, kwargs_of_call *kwargs) {
  size_t mark = in->depth;
  while (mark > 0 && in->stack[mark - 1].kind != PICKLED_MARK) mark--;
  if (mark < 2) in->is_broken = true;
  else pickled_set(in, mark, mark - 2, kwargs);
}

/* Does one instruction, and answers whether it is known here. */
static bool unpickled(unpickler *in, uint8_t instruction, kwargs_of_call *kwargs) {
  switch (instruction) {
    case 0x80: pickled_number(in, 1); return true; /* the protocol */
    case 0x95: pickled_number(in, 8); return true; /* the size of a frame */
    case '}': pickled_push(in, (pickled){.kind = PICKLED_DICT}); return true;
    case '(': pickled_push(in, (pickled){.kind = PICKLED_MARK}); return true;
    case 'N': pickled_push(in, (pickled){.kind = PICKLED_NONE}); return true;
    case 0x88: case 0x89: pickled_push(in, (pickled){.kind = PICKLED_BOOL, .integer = instruction == 0x88}); return true;
    case 0x8c: pickled_text(in, PICKLED_TEXT, 1); return true;
    case 'X': pickled_text(in, PICKLED_TEXT, 4); return true;
    case 0x8d: pickled_text(in, PICKLED_TEXT, 8); return true;
    case 'C': pickled_text(in, PICKLED_BYTES, 1); return true;
    case 'B': pickled_text(in, PICKLED_BYTES, 4); return true;
    case 0x8e: pickled_text(in, PICKLED_BYTES, 8); return true;
    case 'K': pickled_integer(in, 1, false); return true;
    case 'M': pickled_integer(in, 2, false); return true;
    case 'J': pickled_integer(in, 4, true); return true;
    case 0x8a: pickled_integer(in, pickled_number(in, 1), true); return true;
    case 'G': {
      uint64_t bits = __builtin_bswap64(pickled_number(in, 8));
      pickled item = {.kind = PICKLED_FLOAT};
      memcpy(&item.number, &bits, sizeof bits);
      pickled_push(in, item);
      return true;
    }
    case 0x94: pickled_remember(in, in->remembered); return true;
    case 'q': pickled_remember(in, pickled_number(in, 1)); return true;
    case 'r': pickled_remember(in, pickled_number(in, 4)); return true;
    case 'h': pickled_recall(in, pickled_number(in, 1)); return true;
    case 'j': pickled_recall(in, pickled_number(in, 4)); return true;
    case 's':
      if (in->depth < 3) in->is_broken = true;
      else pickled_set(in, in->depth - 2, in->depth - 3, kwargs);
      return true;
    case 'u': pickled_set_many(in, kwargs); return true;
    default: return false;
  }
}

/* NULL, or why these are no kwargs. Nothing is none. */
static char *read_kwargs(kwargs_of_call *kwargs, const uint8_t *data, size_t length) {
  kwargs->n = 0;
  if (length == 0) return NULL;
  unpickler *in = calloc(1, sizeof *in);
  if (in == NULL) return out_of_memory;
  in->at = data;
  in->end = data + length;
  char *why = NULL;
  bool has_ended = false;
  while (why == NULL && !has_ended && !in->is_broken && in->at < in->end) {
    uint8_t instruction = *in->at++;
    has_ended = instruction == '.';
    if (has_ended || unpickled(in, instruction, kwargs)) continue;
    const pickled *last = in->depth ? &in->stack[in->depth - 1] : NULL;
    bool has_name = last && last->kind == PICKLED_TEXT;
    why = text_of("kwarg%s%.*s is no None, bool, int of 64 bits, float, str or bytes: pass a column, or pl.lit(...)",
                  has_name ? " " : "s", has_name ? (int)last->length : 0, has_name ? last->text : "");
  }
  bool is_dict = has_ended && in->depth == 1 && in->stack[0].kind == PICKLED_DICT;
  if (why == NULL && (in->is_broken || !is_dict))
    why = text_of("the kwargs are no pickled dict of at most %d plain values", MOST_KWARGS);
  free(in);
  return why;
}

/* ---- As arguments ----------------------------------------------------------------------------------------------- */

static bool fits_integer(const pickled *value, column_shape to) {
  int bits = 8 * to.width;
  if (to.kind == UNSIGNED) return !value->is_negative && (bits == 64 || value->integer >> bits == 0);
  uint64_t most = UINT64_MAX >> (65 - bits);
  return value->is_negative ? value->integer >= ~most : value->integer <= most;
}

/* The nearest float, if the value is in its range; an integer is one, or it does not fit. */
static bool to_float(const pickled *value, column_shape to, double *number) {
  if (value->kind == PICKLED_FLOAT) {
    *number = value->number;
    return to.width == 8 || isinf(*number) || !isinf((float)*number);
  }
  if (value->kind != PICKLED_INT) return false;
  uint64_t size = value->is_negative ? -value->integer : value->integer;
  *number = value->is_negative ? -(double)size : (double)size;
  return size <= UINT64_C(1) << (to.width == 8 ? 53 : 24);
}

/* NULL, or why the value is none of the type. */
static char *kwarg_array(struct ArrowArray *array, const struct ArrowSchema *wanted, const pickled *value) {
  column_shape shape = shape_of(wanted);
  bool is_text = shape.kind == TEXT || shape.kind == BYTES;
  bool is_null = value->kind == PICKLED_NONE, fits = false;
  double number = 0;
  switch (shape.kind) {
    case BIT: fits = value->kind == PICKLED_BOOL; break;
    case SIGNED: case UNSIGNED: fits = value->kind == PICKLED_INT && fits_integer(value, shape); break;
    case FLOATING: fits = to_float(value, shape, &number); break;
    case TEXT: fits = value->kind == PICKLED_TEXT && shape.width != 16; break;
    case BYTES: fits = value->kind == PICKLED_BYTES && shape.width != 16; break;
    case FIXED: fits = false; break;
    default: fits = is_null = false;
  }
  if (!fits && !is_null)
    return text_of("is no value for %s, which is %s: pass a column, or pl.lit(...)", wanted->name, name_of(wanted));
  if (is_text && value->length > INT32_MAX) return text_of("is too long");
  if (!make_own(array, shape, 1, is_text && !is_null ? value->length : 0)) return out_of_memory;
  own_buffers *own = array->private_data;
  array->null_count = is_null;
  if (is_null) return NULL;
  set_bit(own->memory[0], 0);
  if (is_text) {
    memcpy(own->memory[2], value->text, (size_t)value->length);
    put_integer(own->memory[1], shape.width, 1, (uint64_t)value->length);
  } else if (shape.kind == BIT) {
    if (value->integer) set_bit(own->memory[1], 0);
  } else if (shape.kind == FLOATING) {
    put_float(own->memory[1], shape.width, 0, number);
  } else {
    put_integer(own->memory[1], shape.width, 0, value->integer);
  }
  return NULL;
}

#endif
