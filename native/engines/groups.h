/* groups.h: groups of an aggregate, for engines whose aggregates keep something for each group.
 *
 *     pack(&g->rows, ...) for each argument, g->n_rows++   keeps one more row of a group
 *     settle_groups(&of, groups, n, most, &moved, &why)    adds the kept rows to the states, and merges states
 *     absorb(g, other)                                     takes over another part of a group, which stays as it is
 *     finish_groups(&of, groups, n, take, to, first, &moved, &why)    the values
 *
 * A group keeps rows, and states of its parts, until there are many. So one call of a step serves many groups, and there
 * are few calls for a group. A group may stand in a list twice, and may be NULL: it has no rows.
 *
 * GUARANTEES  Groups go on after finish_groups. A group of which a step has failed has no value, if the library was built
 *             to give null; else the query fails. */
#ifndef ARROYO_UDF_ENGINES_GROUPS_H
#define ARROYO_UDF_ENGINES_GROUPS_H

#include "calls.h"
#include "packed.h"

#define MOST_KEPT_ROWS 2048
#define MOST_KEPT_BYTES ((size_t)1 << 20)
#define MOST_STATES 8 /* of a group that was combined; else there may be any number */
#define SMALL_STATE ((size_t)1 << 12)
#define MOST_CALL_BYTES ((size_t)1 << 26) /* of one call, beyond its first group */

typedef struct {
  bytes rows, states; /* packed */
  uint32_t n_rows, n_states;
  size_t merged; /* bytes of the state after the last merge */
  bool has_failed;
} group;

/* An aggregate of this library: itself, and its steps. */
typedef struct {
  const arroyo_udf_function *function;
  session update, merge, finish;
} aggregate;

static bool is_aggregate(const arroyo_udf_function *function) { return function->kind == ARROYO_UDF_AGGREGATE; }

static aggregate *open_aggregate(uint32_t number) {
  aggregate *made = calloc(1, sizeof *made);
  if (made == NULL) return NULL;
  made->function = this_plugin()->functions[number];
  session *steps[] = {&made->update, &made->merge, &made->finish};
  for (uint32_t i = 0; i < 3; i++) {
    steps[i]->number = (uint32_t)made->function->first_step + i;
    steps[i]->function = this_plugin()->functions[steps[i]->number];
  }
  return made;
}

static void close_aggregate(void *data) { free(data); }

static void free_group(group *given) {
  free_bytes(&given->rows);
  free_bytes(&given->states);
  given->n_rows = given->n_states = 0;
}

static bool is_full(const group *g) { return g->n_rows >= MOST_KEPT_ROWS || g->rows.length >= MOST_KEPT_BYTES; }

/* false: no memory. */
static bool absorb(group *to, const group *from) {
  to->has_failed |= from->has_failed;
  if (to->has_failed) return free_group(to), true;
  if (!room_for(&to->rows, from->rows.length) || !room_for(&to->states, from->states.length)) return false;
  append(&to->rows, from->rows.data, from->rows.length);
  append(&to->states, from->states.data, from->states.length);
  to->n_rows += from->n_rows;
  to->n_states += from->n_states;
  return true;
}

/* ---- Calls of steps --------------------------------------------------------------------------------------------- */

/* One call of a step, with a row for each of some groups. */
typedef struct {
  session *step;
  column *arguments;
  group **members;
  int64_t n;
  size_t size;   /* of what was unpacked */
  int64_t moved; /* bytes of rows, in all calls */
} step_call;

static void close_step(step_call *made) {
  for (int64_t i = 0; made->arguments && i < made->step->function->arguments->n_children; i++)
    free_column(&made->arguments[i]);
  free(made->arguments);
  free(made->members);
  made->arguments = NULL;
  made->members = NULL;
}

static bool open_columns(step_call *made) {
  const struct ArrowSchema *arguments = made->step->function->arguments;
  bool is_whole = true;
  for (int64_t i = 0; i < arguments->n_children; i++) is_whole &= open_column(&made->arguments[i], arguments->children[i]);
  made->n = 0;
  made->size = 0;
  return is_whole;
}

static bool open_step(step_call *made, session *step, size_t most) {
  *made = (step_call){.step = step};
  made->arguments = calloc((size_t)step->function->arguments->n_children + 1, sizeof(column));
  made->members = calloc(most + 1, sizeof(group *));
  return made->arguments && made->members && open_columns(made);
}

/* Calls the step for the rows so far, and opens the columns again. */
static bool send_step(step_call *made, taker take, void *to, char **why) {
  int64_t n_columns = made->step->function->arguments->n_children;
  struct ArrowArray batch;
  if (made->n == 0) return true;
  bool is_whole = make_batch(&batch, n_columns, made->n);
  bool has_batch = is_whole;
  for (int64_t i = 0; is_whole && i < n_columns; i++) is_whole = close_column(&made->arguments[i], batch.children[i]);
  if (!is_whole) {
    if (has_batch) batch.release(&batch);
    return *why = out_of_memory, false;
  }
  if (!call(made->step, &batch, take, to, why)) return false;
  return open_columns(made) ? true : (*why = out_of_memory, false);
}

/* The first state of a group, or null, as the next value of a column. */
static bool put_state(column *to, const group *g, size_t *size) {
  const char *at = g->states.data;
  if (g->n_states == 0) return unpack_null(to);
  bool done = unpack(to, &at);
  *size = (size_t)(at - g->states.data);
  return done;
}

static bool move_state(step_call *made, int argument, group *g) {
  size_t size = 0;
  if (!put_state(&made->arguments[argument], g, &size)) return false;
  remove_front(&g->states, size);
  g->n_states -= size > 0;
  made->size += size;
  return true;
}

/* A state that is large, also against the bytes of the rows, stays, and the rows begin another one. So a state that grows with its rows
 * is copied a few times in all, and not with each call. */
static bool move_small_state(step_call *made, group *g, size_t rows) {
  bool is_large = g->states.length > SMALL_STATE && g->states.length > rows;
  return is_large ? unpack_null(&made->arguments[0]) : move_state(made, 0, g);
}

static bool move_rows(step_call *made, group *g) {
  int64_t n_columns = made->step->function->arguments->n_children;
  const char *at = g->rows.data;
  for (uint32_t row = 0; row < g->n_rows; row++)
    for (int64_t i = 1; i < n_columns; i++)
      if (!unpack(&made->arguments[i].children[0], &at)) return false;
  for (int64_t i = 1; i < n_columns; i++)
    if (!next_row(&made->arguments[i], true) || !end_content(&made->arguments[i])) return false;
  made->size += g->rows.length;
  made->moved += (int64_t)g->rows.length;
  g->rows.length = 0;
  g->n_rows = 0;
  return true;
}

/* Gives the groups of a call their new states. */
static bool take_states(void *to, struct ArrowArray *values, int64_t first, char **why) {
  step_call *made = to;
  const struct ArrowSchema *type = made->step->function->returns;
  for (int64_t i = 0; i < values->length; i++) {
    group *g = made->members[first + i];
    if (!is_valid(values, i)) {
      g->has_failed = true;
      free_group(g);
    } else if (!g->has_failed) {
      if (!pack(&g->states, type, values, i)) return *why = out_of_memory, false;
      g->n_states++;
    }
  }
  values->release(values);
  return true;
}

/* ---- The steps -------------------------------------------------------------------------------------------------- */

static bool update_groups(aggregate *of, group *const *groups, size_t n, int64_t *moved, char **why) {
  step_call made;
  bool done = open_step(&made, &of->update, n);
  if (!done) *why = out_of_memory;
  for (size_t i = 0; done && i < n; i++) {
    group *g = groups[i];
    if (g == NULL || g->n_rows == 0) continue;
    if (!move_small_state(&made, g, g->rows.length) || !move_rows(&made, g)) *why = out_of_memory, done = false;
    made.members[made.n++] = g;
    if (done && made.size >= MOST_CALL_BYTES) done = send_step(&made, take_states, &made, why);
  }
  done = done && send_step(&made, take_states, &made, why);
  *moved = made.moved;
  close_step(&made);
  return done;
}

/* A list of all items. It takes them, also if it answers false: no memory. */
static bool list_of(struct ArrowArray *list, const struct ArrowSchema *type, struct ArrowArray *items) {
  column made;
  bool is_whole = open_column(&made, type) && next_row(&made, true) &&
                  append(&made.values, &items->length, (size_t)offset_width(&made)) && close_column(&made, list);
  if (!is_whole) {
    free_column(&made);
    items->release(items);
    return false;
  }
  list->children[0]->release(list->children[0]);
  *list->children[0] = *items;
  items->release = NULL;
  return true;
}

/* Adds many rows of one group, which are not kept then. It takes the columns out of the batch of rows. */
static bool update_group(aggregate *of, group *g, struct ArrowArray *rows, char **why) {
  step_call made;
  struct ArrowArray batch;
  bool is_whole = open_step(&made, &of->update, 1) && make_batch(&batch, rows->n_children + 1, 1);
  if (is_whole) {
    is_whole = move_small_state(&made, g, 8 * (size_t)rows->length) && close_column(&made.arguments[0], batch.children[0]);
    for (int64_t i = 0; is_whole && i < rows->n_children; i++)
      is_whole = list_of(batch.children[i + 1], made.arguments[i + 1].type, rows->children[i]);
    made.members[0] = g;
    if (!is_whole) batch.release(&batch);
  }
  if (!is_whole) *why = out_of_memory;
  bool done = is_whole && call(&of->update, &batch, take_states, &made, why);
  close_step(&made);
  return done;
}

/* One state instead of two, as often as there are two. */
static bool merge_pairs(aggregate *of, group *const *groups, size_t n, size_t pairs, char **why) {
  step_call made;
  bool done = open_step(&made, &of->merge, pairs);
  if (!done) *why = out_of_memory;
  for (size_t i = 0; done && i < n; i++) {
    group *g = groups[i];
    for (uint32_t left = g ? g->n_states / 2 : 0; done && left; left--) {
      if (!move_state(&made, 0, g) || !move_state(&made, 1, g)) *why = out_of_memory, done = false;
      made.members[made.n++] = g;
      if (done && made.size >= MOST_CALL_BYTES) done = send_step(&made, take_states, &made, why);
    }
  }
  done = done && send_step(&made, take_states, &made, why);
  close_step(&made);
  return done;
}

/* Leaves one state to each. */
static bool merge_groups(aggregate *of, group *const *groups, size_t n, char **why) {
  for (;;) {
    size_t pairs = 0;
    for (size_t i = 0; i < n; i++) pairs += groups[i] ? groups[i]->n_states / 2 : 0;
    if (pairs == 0) break;
    if (!merge_pairs(of, groups, n, pairs, why)) return false;
  }
  for (size_t i = 0; i < n; i++)
    if (groups[i]) groups[i]->merged = groups[i]->states.length;
  return true;
}

/* Brings groups up to date, and merges the states of those that have more than `most`, or whose states have become several
 * times as large since the last merge. moved: gets the bytes of rows that are kept no more. */
static bool settle_groups(aggregate *of, group **groups, size_t n, uint32_t most, int64_t *moved, char **why) {
  if (!update_groups(of, groups, n, moved, why)) return false;
  size_t n_large = 0;
  for (size_t i = 0; i < n; i++) {
    group *g = groups[i];
    if (g && (g->n_states > most || g->states.length > 4 * g->merged + MOST_KEPT_BYTES)) groups[n_large++] = g;
  }
  return merge_groups(of, groups, n_large, why);
}

typedef struct {
  taker take;
  void *to;
  int64_t first;
} finished;

static bool take_finished(void *to, struct ArrowArray *values, int64_t first, char **why) {
  finished *where = to;
  int64_t length = values->length;
  if (!where->take(where->to, values, where->first + first, why)) return false;
  where->first += length;
  return true;
}

/* first: the number of the first value. A group that has failed gets a value, too, instead of which the engine gives
 * null. */
static bool finish_groups(aggregate *of, group *const *groups, size_t n, taker take, void *to, int64_t first,
                          int64_t *moved, char **why) {
  if (!update_groups(of, groups, n, moved, why) || !merge_groups(of, groups, n, why)) return false;
  step_call made;
  finished where = {take, to, first};
  bool done = open_step(&made, &of->finish, 0);
  if (!done) *why = out_of_memory;
  for (size_t i = 0; done && i < n; i++) {
    static const group empty;
    size_t size = 0;
    done = put_state(&made.arguments[0], groups[i] ? groups[i] : &empty, &size);
    if (!done) *why = out_of_memory;
    made.size += size;
    made.n++;
    if (done && made.size >= MOST_CALL_BYTES) done = send_step(&made, take_finished, &where, why);
  }
  done = done && send_step(&made, take_finished, &where, why);
  close_step(&made);
  return done;
}

#endif
