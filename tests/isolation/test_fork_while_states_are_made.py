"""A process that forks while a thread of the toolkit makes its thread state: CPython gh-112275, see new_states.rs.

A library before Python holds a thread in `PyThreadState_New` until the process forks, and says whether the fork has
gone on meanwhile. Where the child would wait for ever, it must not; and nowhere may the fork and the thread wait for
each other.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

BuildPlugin = Callable[..., Path]

SOURCE = """
from arroyo_udf_plugin import udf


@udf(blocking=True)
def same(a: int) -> int:
    return a
"""

PRELOADED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static sem_t inside, forks, prepared;
static atomic_int armed, is_inside, forked_inside;

static int wait_for(sem_t *semaphore, long milliseconds) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += (end.tv_nsec / 1000000 + milliseconds) / 1000;
  end.tv_nsec = (end.tv_nsec / 1000000 + milliseconds) % 1000 * 1000000;
  return sem_timedwait(semaphore, &end) == 0;
}

/* Handlers run in the reverse order of their registration: those that make the fork wait come before this one. */
static void prepare(void) {
  forked_inside = is_inside;
  sem_post(&prepared);
}

__attribute__((constructor)) static void begin(void) {
  sem_init(&inside, 0, 0), sem_init(&forks, 0, 0), sem_init(&prepared, 0, 0);
  pthread_atfork(prepare, NULL, NULL);
}

void *PyThreadState_New(void *interpreter) {
  void *(*original)(void *) = (void *(*)(void *))dlsym(RTLD_NEXT, "PyThreadState_New");
  if (!atomic_exchange(&armed, 0)) return original(interpreter);
  is_inside = 1;
  sem_post(&inside);
  wait_for(&forks, 10000);
  wait_for(&prepared, 200); /* a fork that does not wait comes by */
  void *state = original(interpreter);
  is_inside = 0;
  return state;
}

pid_t fork(void) {
  sem_post(&forks);
  return ((pid_t(*)(void))dlsym(RTLD_NEXT, "fork"))();
}

int arm(void) { return armed = 1; }
int state_is_made(void) { return wait_for(&inside, 10000); }
int has_forked_inside(void) { return forked_inside; }
"""

PROGRAM = """
import ctypes, os, sys, threading
import pyarrow as pa
from arroyo_udf_plugin import load

library = ctypes.CDLL(sys.argv[1])
same = load(sys.argv[2]).functions["same"]
library.arm()
thread = threading.Thread(target=same, args=(pa.array([1]),))
thread.start()
assert library.state_is_made(), "no thread state was made by PyThreadState_New"
child = os.fork()
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
thread.join()
is_mended = sys.version_info >= (3, 11, 8)
assert is_mended or not library.has_forked_inside(), "the process forked while a thread made its state"
"""


def test_a_fork_and_a_new_thread_state(build_plugin: BuildPlugin, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    assert compiler is not None
    (tmp_path / "preloaded.c").write_text(PRELOADED)
    library = tmp_path / "preloaded.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "preloaded.c", "-ldl"], check=True)
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAM, library, build_plugin(SOURCE)],
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
