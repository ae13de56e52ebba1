"""The program of a worker process: `python -m arroyo_udf_plugin.worker`, started by the native core of a host.

Its standard input is the host's control socket; run by hand it ends with an error. It imports the native core alone, so
that it is ready soon: cffi and pyarrow come with the plugin, if that needs them.
"""

import _signal  # type: ignore[import-not-found]  # `signal` imports enums, which this program does not need
import os

from ._native import work

PYTHON_IGNORES = (_signal.SIGPIPE, _signal.SIGXFSZ)


def _forget_signals_of_host() -> None:
    """Gives every signal its default. A process inherits what the thread that has started it blocks and ignores."""
    for signal in _signal.valid_signals():
        if signal not in PYTHON_IGNORES and _signal.getsignal(signal) == _signal.SIG_IGN:
            _signal.signal(signal, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


if __name__ == "__main__":
    _forget_signals_of_host()
    os.environ["ARROYO_UDF_IN_WORKER"] = "1"  # for plugin.c: native functions are for hosts
    work()
