/* For storm.c: an async function whose calls are completed in its own thread or by two others, some of them twice. */
#include "arroyo_udf_async.h"

#include <pthread.h>

enum { THREADS = 2 };

struct job {
  struct job* next;
  arroyo_udf_token token;
  int64_t x;
};

struct workers {
  pthread_t threads[THREADS];
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct job* jobs;
  bool over;
};

static void* work(void* context) {
  struct workers* const workers = context;
  pthread_mutex_lock(&workers->lock);
  while (workers->jobs != NULL || !workers->over) {
    struct job* const job = workers->jobs;
    if (job == NULL) {
      pthread_cond_wait(&workers->changed, &workers->lock);
      continue;
    }
    workers->jobs = job->next;
    pthread_mutex_unlock(&workers->lock);
    arroyo_udf_complete_int64(job->token, job->x + 1);
    if (job->x % 5 == 0) arroyo_udf_complete_error(job->token, "again");
    free(job);
    pthread_mutex_lock(&workers->lock);
  }
  pthread_mutex_unlock(&workers->lock);
  return NULL;
}

static const char* hire(void** context) {
  struct workers* const workers = calloc(1, sizeof *workers);
  if (workers == NULL) return "out of memory";
  *context = workers;
  pthread_mutex_init(&workers->lock, NULL);
  pthread_cond_init(&workers->changed, NULL);
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&workers->threads[i], NULL, work, workers) != 0) abort();
  return NULL;
}

static const char* dismiss(void* context) {
  struct workers* const workers = context;
  pthread_mutex_lock(&workers->lock);
  workers->over = true;
  pthread_cond_broadcast(&workers->changed);
  pthread_mutex_unlock(&workers->lock);
  for (int i = 0; i < THREADS; i++) pthread_join(workers->threads[i], NULL);
  free(workers);
  return NULL;
}

static void plus(const arroyo_udf_call* call, int64_t x) {
  struct workers* const workers = call->context;
  struct job* const job = x % 3 == 0 ? malloc(sizeof *job) : NULL;
  if (job == NULL) {
    arroyo_udf_complete_int64(call->token, x + 1);
    return;
  }
  pthread_mutex_lock(&workers->lock);
  *job = (struct job){workers->jobs, call->token, x};
  workers->jobs = job;
  pthread_cond_signal(&workers->changed);
  pthread_mutex_unlock(&workers->lock);
}
ARROYO_UDF_ASYNC_FUNCTION(plus, (.init = hire, .close = dismiss), int64, (int64, x));

ARROYO_UDF_PLUGIN(plus);
