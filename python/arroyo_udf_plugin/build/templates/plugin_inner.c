/* The inner library of a plugin in Python: it joins or boots Python, and starts the plugin (plugin_inner.h). It is made of
 * cffi's embedding code, which includes Python.h, and this file.
 *
 * GUARANTEES  The first start joins the interpreter of the process, or boots one. If the environment is why that fails,
 *             a later one tries again: descriptors, threads or memory may be back. Any other failure stays.
 * ASSUMES     A host that is not Python never calls Py_Finalize. The library is never unloaded (-z nodelete). */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>
#include "plugin_inner.h"
#include "room.h"

#define CAPSULE "arroyo_udf_plugin._native.TABLE"
#define ADVICE "; set ARROYO_UDF_PYTHON to the python of an environment in which arroyo_udf_plugin is installed"

static shared_plugin *plugin;         /* set before anything else is called */
static const arroyo_udf_table *found; /* the native core's table; set once, when Python runs */

/* Written in Python (arroyo_udf_plugin/plugin/entry.py) and called through cffi. */
static int64_t plugin_load(void); /* executes the user's module, registers its functions; returns `base`, or -1 */
static void plugin_leave(void);   /* stops runtimes and flushes, before the process ends */

/* ---- A failed start: under the lock of `start` ------------------------------------------------------------------ */

static arroyo_udf_status failure; /* 0: none */
static char *failure_text;
static bool stays;   /* do not try again */
static bool lacking; /* for want of descriptors, threads or memory */

static void plugin_failed(int32_t status, const char *text) {
  if (failure) return;
  failure = status;
  lacking = status == ARROYO_UDF_OUT_OF_MEMORY;
  stays = status != ARROYO_UDF_ENVIRONMENT && !lacking;
  if (asprintf(&failure_text, "plugin \"%s\": %s", plugin->descriptor->name, text) < 0) failure_text = NULL;
}

__attribute__((format(printf, 1, 2))) static void environment_failed(const char *format, ...) {
  char *text = NULL;
  va_list arguments;
  va_start(arguments, format);
  int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  plugin_failed(ARROYO_UDF_ENVIRONMENT, length < 0 ? "out of memory" : text);
  if (length >= 0) free(text);
}

static void environment_failed_with_exception(const char *what) { /* with the GIL */
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject *string = value ? PyObject_Str(value) : NULL;
  const char *text = string ? PyUnicode_AsUTF8(string) : NULL;
  PyObject *prefix = PySys_GetObject("prefix");
  const char *where = prefix ? PyUnicode_AsUTF8(prefix) : NULL;
  environment_failed("%s: %s (Python " PY_VERSION ", prefix %s; built with %s)" ADVICE, what,
                     text ? text : "no reason given", where ? where : "unknown", plugin->python->python);
  PyErr_Clear();
  Py_XDECREF(string);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}

/* ---- Boot ------------------------------------------------------------------------------------------------------ */

/* Extension modules do not depend on libpython: in a process that is not Python, its symbols must be global before the
 * first module is opened. */
__attribute__((constructor)) static void promote_libpython(void) {
  Dl_info library;
  if (dladdr((void *)&Py_InitializeEx, &library)) dlopen(library.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

/* The keeper: the thread that boots Python, and never ends, because Python takes it for its main thread: asyncio and
 * signal treat that one specially, and the id of an ended thread is used again. */
static struct {
  const char *python;
  sem_t booted, leave, left;
  int runs;
} keeper;

static int is_folder_of(const char *prefix, char *path) { /* path: PREFIX/bin/python; is shortened */
  for (int level = 0; level < 2; level++) {
    char *slash = strrchr(path, '/');
    if (!slash) return 0;
    *slash = 0;
  }
  char real_path[PATH_MAX], real_prefix[PATH_MAX];
  return realpath(*path ? path : "/", real_path) && realpath(prefix, real_prefix) && !strcmp(real_path, real_prefix);
}

/* How long a thread waits for the GIL before it asks the holder to release it. With Python's 5 ms, a sync call would
 * wait that long for a busy event loop, and the loop for a busy call. We may choose, because we booted this interpreter.
 * With the GIL. */
static void shorten_switch_interval(void) {
  PyObject *set = PySys_GetObject("setswitchinterval");
  PyObject *done = set ? PyObject_CallFunction(set, "d", 0.0002) : NULL;
  Py_XDECREF(done);
}

/* Python accepts any program name, and silently falls back to the prefix compiled into libpython. With the GIL. */
static void check_prefix(void) {
  PyObject *object = PySys_GetObject("prefix");
  const char *prefix = object ? PyUnicode_AsUTF8(object) : NULL;
  char given[PATH_MAX], real[PATH_MAX], library[PATH_MAX];
  if (!prefix || snprintf(given, sizeof given, "%s", keeper.python) >= (int)sizeof given ||
      !realpath(keeper.python, real) || (!is_folder_of(prefix, given) && !is_folder_of(prefix, real))) {
    environment_failed("%s is not the interpreter of an environment: with it, Python's prefix is %s" ADVICE,
                       keeper.python, prefix ? prefix : "unknown");
    return;
  }
  snprintf(library, sizeof library, "%s/lib/python%d.%d", prefix, PY_MAJOR_VERSION, PY_MINOR_VERSION);
  if (access(library, F_OK))
    environment_failed("built for Python %d.%d, and %s is of another version (there is no %s)" ADVICE,
                       PY_MAJOR_VERSION, PY_MINOR_VERSION, keeper.python, library);
}

static void *keep(void *unused) {
  (void)unused;
  pthread_setname_np(pthread_self(), "python-main");
  struct sigaction interrupt;
  sigaction(SIGINT, NULL, &interrupt);
  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  config.install_signal_handlers = 0;
  config.parse_argv = 0;
  config.use_environment = 0; /* a wrong PYTHONHOME would end the host */
  PyStatus status = PyConfig_SetBytesString(&config, &config.program_name, keeper.python);
  if (!PyStatus_Exception(status)) status = Py_InitializeFromConfig(&config);
  PyConfig_Clear(&config);
  if (PyStatus_Exception(status)) {
    environment_failed("Python does not start with %s: %s" ADVICE, keeper.python,
                       status.err_msg ? status.err_msg : "no reason given");
    stays = true;
    sem_post(&keeper.booted);
    return NULL;
  }
  check_prefix();
  stays = failure;
  shorten_switch_interval();
  Py_XDECREF(PyImport_ImportModule("threading")); /* before 3.13, the thread that imports it first is the main thread */
  Py_XDECREF(PyImport_ImportModule("signal"));
  PyErr_Clear(); /* a broken standard library shows at the next import */
  sigaction(SIGINT, &interrupt, NULL); /* `import signal` has taken SIGINT from the host */
  keeper.runs = 1;
  PyThreadState *mine = PyEval_SaveThread();
  sem_post(&keeper.booted);

  while (sem_wait(&keeper.leave) && errno == EINTR) {}
  PyEval_RestoreThread(mine);
  plugin_leave();
  sem_post(&keeper.left);
  for (;;) pause(); /* keeps the GIL: no Python thread runs while C++ destructors do */
}

static void boot_python(void) {
  if (Py_IsInitialized()) return;
  keeper.python = getenv("ARROYO_UDF_PYTHON");
  if (!keeper.python || !*keeper.python) keeper.python = plugin->python->python;
  if (access(keeper.python, X_OK)) {
    environment_failed("there is no Python at %s" ADVICE, keeper.python);
    return;
  }
  sem_init(&keeper.booted, 0, 0);
  sem_init(&keeper.leave, 0, 0);
  sem_init(&keeper.left, 0, 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 16 << 20); /* Python 3.13 expects room for deep C recursion */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited: only the host's threads get signals */
  pthread_t thread;
  int refused = pthread_create(&thread, &attributes, keep, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (refused) {
    environment_failed("no thread for Python: %s", strerror(refused));
    lacking = true;
  } else
    while (sem_wait(&keeper.booted) && errno == EINTR) {}
}

/* ---- Leave ----------------------------------------------------------------------------------------------------- */

extern int __cxa_atexit(void (*handler)(void *), void *argument, void *library);
extern void __cxa_finalize(void *library);

static __thread int registers; /* this thread is inside guard_our_exit */

static void at_exit(void *unused) {
  (void)unused;
  static int done;
  if (registers || __atomic_exchange_n(&done, 1, __ATOMIC_SEQ_CST)) return;
  sem_post(&keeper.leave);
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 2;
  while (sem_timedwait(&keeper.left, &end) && errno == EINTR) {}
  usleep(20000); /* for threads inside a library, without the GIL */
}

/* Exit handlers run last in, first out, and every static C++ object adds one, for its destructor, when first used. So
 * ours is registered again after each call that ran user code, to run first. Other plugins that joined our Python call
 * this too. Objects that rows in flight use for the first time after the last such call are not covered. */
static void guard_our_exit(void) {
  static char ours; /* its address serves as a library whose only handler is at_exit */
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  if (pthread_mutex_trylock(&lock)) return;
  registers = 1;
  __cxa_finalize(&ours); /* calls the former registration, without effect, and removes it */
  registers = 0;
  __cxa_atexit(at_exit, NULL, &ours);
  pthread_mutex_unlock(&lock);
}

/* ---- Start: without the GIL ------------------------------------------------------------------------------------ */

/* Called from Python (arroyo_udf_plugin/plugin/entry.py), through cffi. */
static uintptr_t plugin_descriptor(void) { return (uintptr_t)plugin->descriptor; }
static bool defined; /* `plugin_load` and `plugin_leave` */
static void plugin_defined(void) { defined = true; }
static uint32_t plugin_format(void) { return plugin->python->format; }
static const char *plugin_parcel(void) { return plugin->python->parcel; }
static const char *plugin_library(void) { return plugin->python->library; }
static const char *plugin_python(void) { return plugin->python->python; }
static uintptr_t plugin_guard(void) { return keeper.runs ? (uintptr_t)&guard_our_exit : 0; }
static void plugin_set_guard(uintptr_t guard) { plugin->guard_exit = (void (*)(void))guard; }

static void import_cffi(void) { /* because cffi would only print its failure */
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *backend = PyImport_ImportModule("_cffi_backend");
  if (!backend) environment_failed_with_exception("cffi cannot be imported");
  Py_XDECREF(backend);
  PyGILState_Release(gil);
}

static const arroyo_udf_table *find_core(void) {
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *module = PyImport_ImportModule("arroyo_udf_plugin._native");
  PyObject *capsule = module ? PyObject_GetAttrString(module, "TABLE") : NULL;
  const arroyo_udf_table *table = capsule ? PyCapsule_GetPointer(capsule, CAPSULE) : NULL; /* static in the core */
  if (!table) {
    environment_failed_with_exception("arroyo_udf_plugin cannot be imported");
  } else if (table->magic != ARROYO_UDF_MAGIC) {
    environment_failed("the installed arroyo_udf_plugin is from before ABI version 1 was final: install a newer one, or "
                       "build the plugin again");
    table = NULL;
  } else if (table->abi_version != ARROYO_UDF_ABI_VERSION || table->table_size < ARROYO_UDF_TABLE_SIZE_1) {
    environment_failed("built for ABI version %d with a table of %d bytes or more, and the installed arroyo_udf_plugin "
                       "has version %u with %u: install a newer arroyo_udf_plugin, or build the plugin again",
                       ARROYO_UDF_ABI_VERSION, ARROYO_UDF_TABLE_SIZE_1, table->abi_version, table->table_size);
    table = NULL;
  }
  Py_XDECREF(capsule);
  Py_XDECREF(module);
  PyGILState_Release(gil);
  return table;
}

/* Finds the core's table; boots Python if need be. Runs no user code. */
static void start_python(void) {
  if (Py_Version >> 16 != PY_VERSION_HEX >> 16) {
    environment_failed("built for Python %d.%d, and this process has Python %lu.%lu: build it with that one",
                       PY_MAJOR_VERSION, PY_MINOR_VERSION, Py_Version >> 24, Py_Version >> 16 & 0xff);
    return;
  }
  /* One plugin at a time, until user code runs. The file is an inode that only this process has. */
  int lock = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (lock >= 0) flock(lock, LOCK_EX);
  char lack[ROOM_TEXT];
  arroyo_udf_status lacks = look_for_room(lack);
  if (lacks) {
    plugin_failed(lacks, lack);
    lacking = true;
  }
  if (!failure) boot_python();
  if (!failure) import_cffi();
  if (!failure) {
    /* The copies of other plugins have one name in sys.modules. The lock keeps them away, if there is one. */
    if (cffi_start_python() < 0 || !(defined || failure))
      plugin_failed(ARROYO_UDF_INTERNAL, "cffi did not start, see standard error");
    stays = failure; /* it starts once */
  }
  if (lock >= 0) close(lock);
  if (!failure) found = find_core();
}

static void start_plugin(void) {
  if (!found) start_python();
  if (!found) return;
  int64_t first = plugin_load();
  if (plugin->guard_exit) plugin->guard_exit();
  if (first < 0) {
    plugin_failed(ARROYO_UDF_INTERNAL, "its functions were not registered, see standard error");
    return;
  }
  plugin->base = (uint32_t)first;
  __atomic_store_n(&plugin->core, found, __ATOMIC_RELEASE);
}

/* Not PyGILState_Check(): once the process has had a subinterpreter, it returns 1 in every thread. */
static int holds_gil(void) {
  if (!Py_IsInitialized()) return 0;
#if PY_VERSION_HEX >= 0x030D0000
  return PyThreadState_GetUnchecked() != NULL;
#elif PY_VERSION_HEX >= 0x030C0000
  return _PyThreadState_UncheckedGet() != NULL;
#else
  PyThreadState *mine = PyGILState_GetThisThreadState(); /* in 3.11 the unchecked one may be another thread's */
  return mine && mine == _PyThreadState_UncheckedGet();
#endif
}

/* ---- What the outer library calls: see plugin_inner.h ------------------------------------------------------------ */

static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;

static const arroyo_udf_table *start(bool whole) {
  PyThreadState *mine = holds_gil() ? PyEval_SaveThread() : NULL; /* else two first callers could deadlock */
  pthread_mutex_lock(&starting);
  if (!(whole ? plugin->core : found) && !stays) {
    failure = 0;
    free(failure_text);
    failure_text = NULL;
    if (whole)
      start_plugin();
    else
      start_python();
  }
  const arroyo_udf_table *table = whole ? plugin->core : found;
  pthread_mutex_unlock(&starting);
  if (mine) PyEval_RestoreThread(mine);
  return table;
}

static char *why_not_started(arroyo_udf_status *status, bool *retryable) {
  pthread_mutex_lock(&starting);
  *status = failure ? failure : ARROYO_UDF_ENVIRONMENT;
  *retryable = lacking || !failure;
  char *text = strdup(failure_text ? failure_text : failure ? "out of memory" : "the plugin has started now: call again");
  pthread_mutex_unlock(&starting);
  return text;
}

static const void *arroyo(void) {
  PyGILState_STATE gil = PyGILState_Ensure();
  const void *table = PyCapsule_Import("arroyo_udf_plugin._native.ARROYO", 0);
  if (!table) environment_failed_with_exception("arroyo_udf_plugin cannot be imported");
  PyGILState_Release(gil);
  return table;
}

ARROYO_UDF_EXPORT const inner_table *arroyo_udf_inner(shared_plugin *of) {
  static const inner_table table = {.start = start, .why_not_started = why_not_started, .arroyo = arroyo};
  if (plugin) return NULL;
  plugin = of;
  return &table;
}
