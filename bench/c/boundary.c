/* The cost of crossing the boundary, measured from C. Prints one JSON object per line: {"name": ..., "value": ..., ...}.
 *
 *     cc -O3 -ffp-contract=off -Inative/include bench/c/boundary.c -o boundary -ldl
 *     ./boundary sync PLUGIN.so            its function mph(int64, int64) -> float64
 *     ./boundary text PLUGIN.so            its function hash(utf8) -> uint64
 *     ./boundary send PLUGIN.so FUNCTION   an async function of one or two int64 arguments
 *
 * sync   Batches of 8,192 rows; every 37th row, scattered, has a null in air_time (flights: 2.8 %).
 *        "call" is one `run` and the release of its results; "loop" is a plain C loop over the same data, which tests
 *        both validity bits of each row and writes the value and its validity bit; "ratio" is call / loop.
 *        "all_valid_..." are the same without nulls; "one_row" is a call with one row: the fixed cost.
 * text   Batches of 8,192 texts of 6 bytes. "loop" is a plain C loop with the same function, which believes offsets and
 *        bytes; "ratio" is call / loop, and shows what their checks cost. "one_not_ascii_..." has one text with an accent:
 *        each text is then checked on its own.
 * send   Nanoseconds per `send` of one row. Rows are drained between the rounds, outside the measured time. A round
 *        ends at WOULD_BLOCK or after ROUND batches.
 *
 * Values are medians of many rounds, in nanoseconds of CPU time of the calling thread, without a plugin's own threads.
 * Measurements that are compared alternate within one run. All arguments are one constant batch with an empty release.
 */
#include "host.h"

enum { ROWS = 8192, ROUNDS = 501, CALLS = 8, ONE_ROW_CALLS = 1000, ROUND = 1000, SEND_ROUNDS = 101, MOST_ARGUMENTS = 2 };

static int64_t distance[ROWS], air_time[ROWS];
static uint8_t all_valid[ROWS / 8], some_null[ROWS / 8];
static double loop_values[ROWS];
static uint8_t loop_validity[ROWS / 8];

static int64_t cpu_ns(void) { return nanoseconds(CLOCK_THREAD_CPUTIME_ID); }

static void release_nothing(struct ArrowArray* array) { array->release = NULL; }

/* A batch over static memory; set again for each call, because a call takes it. */
struct batch {
  struct ArrowArray array;
  struct ArrowArray children[MOST_ARGUMENTS];
  struct ArrowArray* child_list[MOST_ARGUMENTS];
  const void* buffers[MOST_ARGUMENTS][2];
  const void* no_buffer[1];
};

static void set_batch(struct batch* batch, int64_t rows, int n, const uint8_t* last_validity) {
  batch->no_buffer[0] = NULL;
  for (int i = 0; i < n; i++) {
    batch->buffers[i][0] = i == n - 1 ? last_validity : all_valid;
    batch->buffers[i][1] = i == 0 ? distance : air_time;
    batch->children[i] = (struct ArrowArray){
        .length = rows, .null_count = -1, .n_buffers = 2, .buffers = batch->buffers[i], .release = release_nothing};
    batch->child_list[i] = &batch->children[i];
  }
  batch->array = (struct ArrowArray){.length = rows,
                                     .n_buffers = 1,
                                     .n_children = n,
                                     .buffers = batch->no_buffer,
                                     .children = batch->child_list,
                                     .release = release_nothing};
}

static double time_calls(const arroyo_udf_table* table, uint32_t function, int64_t rows, const uint8_t* validity,
                         int calls) {
  struct batch batch;
  struct ArrowArray results;
  const struct ArrowSchema* schema;
  arroyo_udf_error error = {.size = sizeof error};
  const int64_t begin = cpu_ns();
  for (int i = 0; i < calls; i++) {
    set_batch(&batch, rows, 2, validity);
    const arroyo_udf_status status = table->run(function, &batch.array, NULL, &results, &schema, &error);
    check("run", status, &error);
    results.release(&results);
  }
  return (double)(cpu_ns() - begin) / calls;
}

__attribute__((noinline)) static void plain_loop(const int64_t* left, const uint8_t* left_validity,
                                                 const int64_t* right, const uint8_t* right_validity, double* values,
                                                 uint8_t* validity, int64_t rows) {
  memset(validity, 0, (size_t)rows / 8);
  for (int64_t i = 0; i < rows; i++) {
    const uint8_t bit = (uint8_t)(1u << (i % 8));
    if ((left_validity[i / 8] & bit) && (right_validity[i / 8] & bit)) {
      values[i] = (double)left[i] * 60.0 / (double)right[i];
      validity[i / 8] |= bit;
    } else {
      values[i] = 0;
    }
  }
}

static double time_loop(const uint8_t* validity) {
  const int64_t begin = cpu_ns();
  for (int i = 0; i < CALLS; i++)
    plain_loop(distance, all_valid, air_time, validity, loop_values, loop_validity, ROWS);
  return (double)(cpu_ns() - begin) / CALLS;
}

/* Plugin and loop must have the same results. */
static void compare(const arroyo_udf_table* table, uint32_t function) {
  struct batch batch;
  struct ArrowArray results;
  const struct ArrowSchema* schema;
  arroyo_udf_error error = {.size = sizeof error};
  set_batch(&batch, ROWS, 2, some_null);
  const arroyo_udf_status status = table->run(function, &batch.array, NULL, &results, &schema, &error);
  check("run", status, &error);
  time_loop(some_null);
  const struct ArrowArray* value = results.children[0];
  const uint8_t* validity = value->buffers[0];
  for (int64_t i = 0; i < ROWS; i++) {
    const int64_t k = value->offset + i;
    const bool valid = loop_validity[i / 8] >> (i % 8) & 1;
    if (valid != (validity[k / 8] >> (k % 8) & 1) ||
        (valid && ((const double*)value->buffers[1])[k] != loop_values[i])) {
      fprintf(stderr, "row %lld differs from the plain loop\n", (long long)i);
      exit(1);
    }
  }
  results.release(&results);
}

static void bench_sync(const arroyo_udf_table* table, uint32_t function) {
  static double calls[ROUNDS], loops[ROUNDS], valid_calls[ROUNDS], valid_loops[ROUNDS], one_row[ROUNDS];
  compare(table, function);
  for (int i = 0; i < ROUNDS; i++) {
    calls[i] = time_calls(table, function, ROWS, some_null, CALLS);
    loops[i] = time_loop(some_null);
    valid_calls[i] = time_calls(table, function, ROWS, all_valid, CALLS);
    valid_loops[i] = time_loop(all_valid);
    one_row[i] = time_calls(table, function, 1, all_valid, ONE_ROW_CALLS);
  }
  const double call = median(calls, ROUNDS), loop = median(loops, ROUNDS);
  const double valid_call = median(valid_calls, ROUNDS), valid_loop = median(valid_loops, ROUNDS);
  report("call", call);
  report("loop", loop);
  report("ratio", call / loop);
  report("all_valid_call", valid_call);
  report("all_valid_loop", valid_loop);
  report("all_valid_ratio", valid_call / valid_loop);
  report("one_row", median(one_row, ROUNDS));
}

static int32_t offsets[ROWS + 1];
static char texts[6 * ROWS];
static uint64_t hashes[ROWS];

__attribute__((noinline)) static void plain_hashes(void) {
  for (int64_t i = 0; i < ROWS; i++) {
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (int32_t k = offsets[i]; k < offsets[i + 1]; k++)
      hash = (hash ^ (unsigned char)texts[k]) * UINT64_C(0x100000001B3);
    hashes[i] = hash;
  }
}

/* Time of a call; `compared`: its results are compared with the loop's, for which the time has no room. */
static double time_texts(const arroyo_udf_table* table, uint32_t function, bool compared) {
  const void* no_buffer[1] = {NULL};
  const void* buffers[3] = {NULL, offsets, texts};
  arroyo_udf_error error = {.size = sizeof error};
  const int64_t begin = cpu_ns();
  for (int i = 0; i < CALLS; i++) {
    struct ArrowArray column = {.length = ROWS, .n_buffers = 3, .buffers = buffers, .release = release_nothing};
    struct ArrowArray *children[1] = {&column}, results;
    struct ArrowArray batch = {.length = ROWS,
                               .n_buffers = 1,
                               .n_children = 1,
                               .buffers = no_buffer,
                               .children = children,
                               .release = release_nothing};
    const struct ArrowSchema* schema;
    check("run", table->run(function, &batch, NULL, &results, &schema, &error), &error);
    if (compared && memcmp(results.children[0]->buffers[1], hashes, sizeof hashes) != 0) {
      fprintf(stderr, "a hash differs from the plain loop\n");
      exit(1);
    }
    results.release(&results);
  }
  return (double)(cpu_ns() - begin) / CALLS;
}

static void bench_text(const arroyo_udf_table* table, uint32_t function) {
  static double calls[ROUNDS], loops[ROUNDS], checked[ROUNDS];
  for (int32_t i = 0; i <= ROWS; i++) offsets[i] = 6 * i;
  for (int32_t i = 0; i < 6 * ROWS; i++) texts[i] = (char)('A' + i * 7 % 26);
  for (int round = 0; round < ROUNDS; round++) {
    const int64_t begin = cpu_ns();
    for (int i = 0; i < CALLS; i++) plain_hashes();
    loops[round] = (double)(cpu_ns() - begin) / CALLS;
    if (round == 0) time_texts(table, function, true);
    calls[round] = time_texts(table, function, false);
    memcpy(texts, "caf\xC3\xA9s", 6);
    checked[round] = time_texts(table, function, false);
    memcpy(texts, "cafes!", 6);
  }
  const double loop = median(loops, ROUNDS);
  report("call", median(calls, ROUNDS));
  report("loop", loop);
  report("ratio", median(calls, ROUNDS) / loop);
  report("one_not_ascii_ratio", median(checked, ROUNDS) / loop);
}

static void bench_send(const arroyo_udf_table* table, uint32_t function, int n_arguments) {
  static double rounds[SEND_ROUNDS];
  static struct batch batches[ROUND];
  const uint64_t forever = UINT64_C(60000000000);
  arroyo_udf_error error = {.size = sizeof error};
  arroyo_udf_handle handle;
  struct ArrowArray results;
  const struct ArrowSchema* schema;
  uint64_t id = 1;
  arroyo_udf_status status = table->start(function, NULL, &handle, &error);
  check("start", status, &error);
  for (int round = 0; round < SEND_ROUNDS; round++) {
    for (int i = 0; i < ROUND; i++) set_batch(&batches[i], 1, n_arguments, all_valid);
    int sent = 0;
    const int64_t begin = cpu_ns();
    for (status = ARROYO_UDF_OK; sent < ROUND; sent++) {
      status = table->send(handle, id + (uint64_t)sent, &batches[sent].array, NULL, &error);
      if (status != ARROYO_UDF_OK) break;
    }
    rounds[round] = (double)(cpu_ns() - begin) / sent;
    if (status != ARROYO_UDF_WOULD_BLOCK) check("send", status, &error);
    id += (uint64_t)sent;
    for (int64_t drained = 0; drained < sent;) {
      status = table->wait(handle, ARROYO_UDF_RESULTS, forever, &error);
      check("wait", status, &error);
      status = table->drain_results(handle, 0, &results, &schema, &error);
      if (status == ARROYO_UDF_WOULD_BLOCK) continue;
      check("drain_results", status, &error);
      drained += results.length;
      results.release(&results);
    }
  }
  status = table->stop_runtime(handle, ARROYO_UDF_DRAIN, forever, &error);
  check("stop_runtime", status, &error);
  status = table->release(handle, &error);
  check("release", status, &error);
  report("send", median(rounds, SEND_ROUNDS));
}

int main(int argc, char** argv) {
  const bool sync = argc == 3 && strcmp(argv[1], "sync") == 0;
  const bool text = argc == 3 && strcmp(argv[1], "text") == 0;
  if (!sync && !text && !(argc == 4 && strcmp(argv[1], "send") == 0)) {
    fprintf(stderr, "usage: %s sync PLUGIN.so | text PLUGIN.so | send PLUGIN.so FUNCTION\n", argv[0]);
    return 2;
  }
  const arroyo_udf_table* table = open_plugin(argv[2]);
  const uint32_t function =
      text ? find_function_of(table, "hash", 1, "u") : find_function(table, sync ? "mph" : argv[3], MOST_ARGUMENTS);
  const int n_arguments = (int)table->describe()->functions[function]->arguments->n_children;
  uint64_t random = 42; /* xorshift: the same data in each run */
  for (int i = 0; i < ROWS; i++) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    distance[i] = 80 + (int64_t)(random % 4900);
    air_time[i] = 20 + (int64_t)(random / 4900 % 600);
    all_valid[i / 8] |= (uint8_t)(1u << (i % 8));
    if (random / 4900 / 600 % 37 != 0) some_null[i / 8] |= (uint8_t)(1u << (i % 8));
  }
  if (sync) {
    bench_sync(table, function);
  } else if (text) {
    bench_text(table, function);
  } else {
    bench_send(table, function, n_arguments);
  }
  return 0;
}
