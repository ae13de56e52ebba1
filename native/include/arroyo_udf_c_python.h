/* arroyo_udf_c_python.h: what a plugin in Python tells the toolkit of itself, so that its functions can run in other
 * interpreters: the answer to extension("python/1"). Private to the toolkit; native/runtime/src/isolation/python.rs is its
 * mirror.
 *
 * GUARANTEES  It is a constant of the library. Asking for it starts nothing. */
#ifndef ARROYO_UDF_C_PYTHON_H
#define ARROYO_UDF_C_PYTHON_H

#include <stdint.h>

#define ARROYO_UDF_C_PYTHON "python/1"

typedef struct arroyo_udf_c_python {
  uint64_t size;       /* sizeof(arroyo_udf_c_python) */
  uint32_t format;     /* PLUGIN_FORMAT (version.py) of the toolkit that built the plugin */
  uint32_t reserved;
  const char* parcel;  /* JSON, UTF-8: the source, and the modules of its folder that it imports */
  const char* library; /* the path of the library, absolute; empty if unknown */
  const char* python;  /* the path of the interpreter that built the plugin */
} arroyo_udf_c_python;

#endif /* ARROYO_UDF_C_PYTHON_H */
