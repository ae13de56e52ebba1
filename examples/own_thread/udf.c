/* An asynchronous function in C with a thread of its own: counts the lines of a file.
 *
 * Reading a file blocks, so the function only puts a request into a queue. The reader, a thread that init starts and
 * close ends, takes one request after another and completes its call. A cancelled request leaves the queue if it still
 * waits there; if it is being read, reading goes on and its result is discarded.
 */
#include "arroyo_udf_async.h"

#include <errno.h>
#include <pthread.h>

struct request {
  arroyo_udf_token token;
  struct request* next;
  char path[]; /* ends with a zero, unlike an argument */
};

/* The Context: shared by the calls of one started function. */
struct reader {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct request* first;
  struct request** end; /* where the next request goes */
  bool over;
};

static void answer(const struct request* request) {
  FILE* const file = fopen(request->path, "rb");
  if (file == NULL) {
    arroyo_udf_complete_error(request->token, arroyo_udf_failure("%s: %s", request->path, strerror(errno)));
    return;
  }
  char block[1 << 16];
  int64_t lines = 0;
  size_t length;
  while ((length = fread(block, 1, sizeof block, file)) > 0)
    for (const char* at = block; (at = memchr(at, '\n', (size_t)(block + length - at))) != NULL; at++) lines++;
  if (ferror(file))
    arroyo_udf_complete_error(request->token, arroyo_udf_failure("%s: %s", request->path, strerror(errno)));
  else
    arroyo_udf_complete_int64(request->token, lines);
  fclose(file);
}

static void* read_files(void* context) {
  struct reader* const reader = context;
  pthread_mutex_lock(&reader->lock);
  for (;;) {
    struct request* const request = reader->first;
    if (request == NULL) {
      if (reader->over) break;
      pthread_cond_wait(&reader->changed, &reader->lock);
      continue;
    }
    reader->first = request->next;
    if (reader->first == NULL) reader->end = &reader->first;
    pthread_mutex_unlock(&reader->lock);
    answer(request);
    free(request);
    pthread_mutex_lock(&reader->lock);
  }
  pthread_mutex_unlock(&reader->lock);
  return NULL;
}

static const char* start_reader(void** context) {
  struct reader* const reader = calloc(1, sizeof *reader);
  if (reader == NULL) return "out of memory";
  pthread_mutex_init(&reader->lock, NULL);
  pthread_cond_init(&reader->changed, NULL);
  reader->end = &reader->first;
  if (pthread_create(&reader->thread, NULL, read_files, reader) != 0) {
    free(reader);
    return "no thread for the reader";
  }
  *context = reader;
  return NULL;
}

static const char* end_reader(void* context) {
  struct reader* const reader = context;
  pthread_mutex_lock(&reader->lock);
  reader->over = true;
  pthread_cond_signal(&reader->changed);
  pthread_mutex_unlock(&reader->lock);
  pthread_join(reader->thread, NULL);
  free(reader);
  return NULL;
}

static void forget(void* context, arroyo_udf_token token) {
  struct reader* const reader = context;
  struct request* found = NULL;
  pthread_mutex_lock(&reader->lock);
  for (struct request** at = &reader->first; *at != NULL; at = &(*at)->next) {
    if ((*at)->token != token) continue;
    found = *at;
    *at = found->next;
    if (found->next == NULL) reader->end = at;
    break;
  }
  pthread_mutex_unlock(&reader->lock);
  if (found != NULL) arroyo_udf_complete_cancelled(token);
  free(found);
}

/* Counts the lines of a file. If the file cannot be read, the row is an error. */
static void lines(const arroyo_udf_call* call, arroyo_udf_utf8 path) {
  struct reader* const reader = call->context;
  struct request* const request = malloc(sizeof *request + path.length + 1);
  if (request == NULL || memchr(path.data, '\0', path.length) != NULL) {
    arroyo_udf_complete_error(call->token, request == NULL ? "out of memory" : "the path contains a zero");
    free(request);
    return;
  }
  request->token = call->token;
  request->next = NULL;
  memcpy(request->path, path.data, path.length);
  request->path[path.length] = '\0';
  pthread_mutex_lock(&reader->lock);
  *reader->end = request;
  reader->end = &request->next;
  pthread_cond_signal(&reader->changed);
  pthread_mutex_unlock(&reader->lock);
}
ARROYO_UDF_ASYNC_FUNCTION(lines, (.init = start_reader, .cancel = forget, .close = end_reader,
                                  .options.timeout_ns = 5 * ARROYO_UDF_SECOND),
                          int64, (utf8, path));

ARROYO_UDF_PLUGIN(lines);
