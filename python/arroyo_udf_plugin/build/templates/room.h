/* What a start of Python may need, looked for in advance: once Python has begun to start, a failure cannot be undone, and
 * a library that cannot be loaded does not say that it was for want of memory. A part of both libraries of a plugin. */
#ifndef ARROYO_UDF_ROOM_H
#define ARROYO_UDF_ROOM_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "arroyo_udf.h"

enum { ROOM_TEXT = 128 };

/* OK, or a status with a text. The room may be there later. */
static arroyo_udf_status look_for_room(char text[ROOM_TEXT]) {
  enum { DESCRIPTORS = 16, SPACE = 64 << 20 };
  arroyo_udf_status status = ARROYO_UDF_OK;
  int descriptors[DESCRIPTORS], n = 0;
  while (n < DESCRIPTORS && (descriptors[n] = eventfd(0, EFD_CLOEXEC)) >= 0) n++;
  if (n < DESCRIPTORS) {
    snprintf(text, ROOM_TEXT, "Python needs %d free file descriptors: %s", DESCRIPTORS, strerror(errno));
    status = ARROYO_UDF_ENVIRONMENT;
  }
  while (n > 0) close(descriptors[--n]);
  if (status) return status;
  void *space = mmap(NULL, SPACE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) {
    snprintf(text, ROOM_TEXT, "Python needs 64 MiB of address space");
    return ARROYO_UDF_OUT_OF_MEMORY;
  }
  munmap(space, SPACE);
  return ARROYO_UDF_OK;
}

#endif /* ARROYO_UDF_ROOM_H */
