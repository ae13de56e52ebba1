"""What runtimes report beside their rows goes to the logger "arroyo_udf_plugin": stuck calls, a blocked event loop, a
Context that is not closed.

A plugin reports from any thread, so the native function that it calls takes no GIL: it keeps the report. The next call
of this host hands it to `logging`, in the caller's thread.
"""

import logging
from typing import Any

from .._native import __file__ as _native_core
from .._native import take_log
from ..abi import ffi

_log = logging.getLogger("arroyo_udf_plugin")
_write = ffi.addressof(ffi.dlopen(_native_core), "arroyo_udf_host_log")  # loaded already: this only finds it


def attach(table: Any, handle: int) -> None:
    """Makes a started function report here."""
    log = ffi.new("arroyo_udf_log *", {"size": ffi.sizeof("arroyo_udf_log"), "write": _write})
    table.set_log(handle, log, ffi.NULL)  # without a log there are no reports: that is no reason to fail


def hand_on() -> None:
    """Logs what has been reported since the last call."""
    for report in take_log() or ():
        _log.warning("%s", report)
