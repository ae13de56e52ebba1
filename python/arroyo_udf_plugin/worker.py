"""The program of a worker process: `python -m arroyo_udf_plugin.worker`, started by the native core of a host.

Its standard input is the host's control socket; run by hand it ends with an error. It imports the native core alone, so
that it is ready soon: cffi and pyarrow come with the plugin, if that needs them.
"""

from ._native import work

if __name__ == "__main__":
    work()
