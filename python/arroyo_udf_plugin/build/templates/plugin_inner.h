/* plugin_inner.h: what the two libraries of a plugin in Python share. The outer one (plugin.c) is the plugin as hosts
 * see it, and needs no Python. The inner one (plugin_inner.c) joins or boots Python, and needs libpython. Its bytes are
 * in the outer one, which opens it when something needs Python for the first time.
 *
 * GUARANTEES  The inner library has no data of a plugin: it is compiled once, and linked into all plugins. Each plugin
 *             opens a copy of its own. */
#ifndef ARROYO_UDF_PLUGIN_INNER_H
#define ARROYO_UDF_PLUGIN_INNER_H

#include <stdbool.h>
#include "arroyo_udf_c_python.h"

/* The plugin. It is the outer library's; the inner one fills in what begins with a start. */
typedef struct {
  const arroyo_udf_descriptor *descriptor;
  const arroyo_udf_c_python *python;
  const arroyo_udf_table *core; /* the native core's table; set once, when the plugin has started */
  uint32_t base;                /* the number that function 0 has in the core */
  void (*guard_exit)(void);     /* of the plugin that booted Python: after user code; NULL in a Python process */
} shared_plugin;

typedef struct {
  /* Starts Python, and the plugin too if `whole`. The core's table; NULL: see `why_not_started`. The caller may have the
   * GIL. */
  const arroyo_udf_table *(*start)(bool whole);
  /* The text of the latest failure, for the caller to free; NULL: out of memory. Another thread may have started the
   * plugin since, or may have failed otherwise. */
  char *(*why_not_started)(arroyo_udf_status *status, bool *retryable);
  /* The core's table for the Arroyo engine, once the plugin has started; NULL: see `why_not_started`. */
  const void *(*arroyo)(void);
} inner_table;

/* The inner library's only symbol: gives it its plugin. NULL: it has one. */
#define ARROYO_UDF_INNER "arroyo_udf_inner"
typedef const inner_table *(*inner_opener)(shared_plugin *plugin);

#endif /* ARROYO_UDF_PLUGIN_INNER_H */
