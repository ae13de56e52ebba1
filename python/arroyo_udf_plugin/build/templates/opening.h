/* Opens the inner library of a plugin in Python, whose bytes are in this one; a part of plugin.c.
 *
 * GUARANTEES  Does not touch Python, so a thread may have the GIL. After a failure, the next call tries again.
 * ASSUMES     The loader finds a library that it has by its path first, and only then by its inode. */

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8
#endif

extern const char arroyo_udf_inner_file[], arroyo_udf_inner_end[] __attribute__((visibility("hidden")));

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static const inner_table *inner; /* set once */
static arroyo_udf_status failed; /* how it was not opened */
static char *not_opened;         /* why */
static bool lacking;             /* for want of descriptors, memory or space */
static bool incomplete;          /* what the inner library needs cannot be opened */

enum { REASON = 512 };
#define CANNOT_START "plugin \"" PLUGIN_NAME "\": Python does not start: "

static void note(char reason[REASON], const char *step, int number) {
  if (number == EMFILE || number == ENFILE || number == ENOMEM || number == ENOSPC || number == EFBIG) lacking = true;
  snprintf(reason, REASON, "%s: %s", step, strerror(number));
}

/* Copies the inner library into a file. False: errno is set. */
static bool filled(int file) {
  const size_t size = (size_t)(arroyo_udf_inner_end - arroyo_udf_inner_file);
  struct rlimit limit;
  if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < size) { /* to try it would end the process with SIGXFSZ */
    errno = EFBIG;
    return false;
  }
  for (size_t done = 0; done < size;) {
    const ssize_t n = write(file, arroyo_udf_inner_file + done, size - done);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) done += (size_t)n;
  }
  return true;
}

/* NULL: `reason` says why, or is empty if the loader has another library under this path. */
static const inner_table *open_path(const char *path, char reason[REASON]) {
  reason[0] = 0;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char *text = dlerror();
    incomplete = text && strncmp(text, path, strlen(path)); /* it begins with the file that it is about */
    snprintf(reason, REASON, "%s", text ? text : "no reason given");
    return NULL;
  }
  const inner_opener open = (inner_opener)dlsym(library, ARROYO_UDF_INNER);
  return open ? open(&plugin) : NULL;
}

/* A file that is only in memory. The number of its descriptor is used again, and the loader remembers paths; so the path
 * gets longer until no library has it. */
static const inner_table *open_in_memory(char reason[REASON]) {
  int file = memfd_create(ARROYO_UDF_INNER, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
  if (file < 0 && errno == EINVAL) file = memfd_create(ARROYO_UDF_INNER, MFD_CLOEXEC); /* before Linux 6.3 */
  if (file < 0 || !filled(file)) {
    note(reason, "memfd_create", errno);
    if (file >= 0) close(file);
    return NULL;
  }
  const inner_table *table = NULL;
  char path[PATH_MAX] = "/proc/self/fd/";
  size_t end = strlen(path);
  do {
    snprintf(path + end, sizeof path - end, "./%d", file);
    end += 2;
    table = open_path(path, reason);
  } while (!table && !reason[0] && end < sizeof path - 16);
  close(file);
  return table;
}

/* A private file, which has no name any more afterwards. */
static const inner_table *open_in_folder(const char *folder, char reason[REASON]) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s/" ARROYO_UDF_INNER "_XXXXXX", folder) >= (int)sizeof path) path[0] = 0;
  const int file = mkostemp(path, O_CLOEXEC);
  const inner_table *table = NULL;
  if (file >= 0 && filled(file))
    table = open_path(path, reason);
  else
    note(reason, folder, errno);
  if (file >= 0) {
    unlink(path);
    close(file);
  }
  return table;
}

static void open_inner(void) {
  free(not_opened);
  not_opened = NULL;
  incomplete = false;
  char lack[ROOM_TEXT];
  failed = look_for_room(lack);
  lacking = failed;
  if (lacking) {
    if (asprintf(&not_opened, "plugin \"" PLUGIN_NAME "\": %s", lack) < 0) not_opened = NULL;
    return;
  }
  failed = ARROYO_UDF_ENVIRONMENT;
  char in_memory[REASON], in_folder[REASON];
  const char *chosen = secure_getenv("TMPDIR");
  const inner_table *table = open_in_memory(in_memory);
  const char *missing = incomplete ? in_memory : NULL;
  if (!table && !missing) {
    table = open_in_folder(chosen && *chosen ? chosen : "/tmp", in_folder);
    if (incomplete) missing = in_folder;
  }
  __atomic_store_n(&inner, table, __ATOMIC_RELEASE);
  if (table) return;
  int length = missing
      ? asprintf(&not_opened, CANNOT_START "%s; it was built with %s, and needs the shared library of that Python here",
                 missing, PLUGIN_PYTHON)
      : asprintf(&not_opened, CANNOT_START "its part of this library can be opened neither in memory (%s) nor as a file "
                 "(%s): permit one of them, or name a folder in TMPDIR from which libraries may be opened",
                 in_memory, in_folder);
  if (length < 0) not_opened = NULL;
}

/* NULL: see `why_not_opened`. */
static const inner_table *opened(void) {
  const inner_table *known = __atomic_load_n(&inner, __ATOMIC_ACQUIRE);
  if (known) return known;
  pthread_mutex_lock(&opening);
  if (!inner) open_inner();
  pthread_mutex_unlock(&opening);
  return inner;
}

/* The text of the latest failure, for the caller to free; NULL: out of memory. */
static char *why_not_opened(arroyo_udf_status *status, bool *retryable) {
  pthread_mutex_lock(&opening);
  *status = failed;
  *retryable = lacking || !not_opened;
  char *text = strdup(not_opened ? not_opened : inner ? "the plugin can start now: call again" : "out of memory");
  pthread_mutex_unlock(&opening);
  return text;
}
