/* arroyo_udf_c_python.h: what a plugin in Python tells the toolkit of itself, so that its functions can run in other
 * interpreters: the answer to extension("python/1"); and how it opens instances of itself: the native core's answer to
 * extension("opener/1"). Private to the toolkit; python.rs and contract.rs in native/runtime/src/isolation are the mirrors.
 *
 * GUARANTEES  Both are constants of their library. Asking for them starts nothing. */
#ifndef ARROYO_UDF_C_PYTHON_H
#define ARROYO_UDF_C_PYTHON_H

#include "arroyo_udf.h"

#define ARROYO_UDF_C_PYTHON "python/1"

typedef struct arroyo_udf_c_python {
  uint64_t size;       /* sizeof(arroyo_udf_c_python) */
  uint32_t format;     /* PLUGIN_FORMAT (version.py) of the toolkit that built the plugin */
  uint32_t reserved;
  const char* parcel;  /* JSON, UTF-8: the source, and the modules of its folder that it imports */
  const char* library; /* the path of the library, absolute; empty if unknown */
  const char* python;  /* the path of the interpreter that built the plugin */
} arroyo_udf_c_python;

#define ARROYO_UDF_C_OPENER "opener/1"

typedef struct arroyo_udf_c_opener {
  uint64_t size; /* sizeof(arroyo_udf_c_opener) */
  /* As in arroyo_udf_isolation, for the plugin with this table. */
  arroyo_udf_status (*open)(const arroyo_udf_table* plugin, const arroyo_udf_isolation_options* options,
                            arroyo_udf_instance* instance, arroyo_udf_error* error);
  arroyo_udf_status (*close)(const arroyo_udf_table* plugin, const arroyo_udf_instance* instance,
                             arroyo_udf_error* error);
} arroyo_udf_c_opener;

#endif /* ARROYO_UDF_C_PYTHON_H */
