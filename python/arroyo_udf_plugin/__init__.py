"""Write a UDF in Python, Rust or C; get one shared library that any engine calls over a small C ABI.

    from arroyo_udf_plugin import udf      mark a function (udf.py, types.py)
    from arroyo_udf_plugin import build    source -> shared library (build/)
    from arroyo_udf_plugin import load     shared library -> functions on Arrow arrays (host.py)
    from arroyo_udf_plugin import call_info   within a call: row, attempt, deadline, idempotency key (_call_info.py)

Importing this package must stay cheap, and possible in a subinterpreter, where neither cffi nor pyarrow can be
imported: `load`, which needs both, is looked up when first used. So is `call_info`, for calls are told of themselves
only where somebody may ask. (`build` and `udf` are imported here, so that the functions and not the modules of the same
names are what the package offers.)
"""

from typing import TYPE_CHECKING, Any

from ._errors import (
    AbiError,
    ArroyoUdfError,
    BuildError,
    InternalError,
    InvalidArgument,
    InvalidState,
    LoadError,
    PluginEnvironmentError,
    RowError,
    UnsupportedCall,
    UserCodeError,
    WouldBlock,
)
from .build import build
from .udf import udf

if TYPE_CHECKING:
    from ._call_info import CallInfo, call_info, call_infos
    from .host import load

__version__ = "0.1.0"
__all__ = [
    "AbiError",
    "ArroyoUdfError",
    "BuildError",
    "CallInfo",
    "InternalError",
    "InvalidArgument",
    "InvalidState",
    "LoadError",
    "PluginEnvironmentError",
    "RowError",
    "UnsupportedCall",
    "UserCodeError",
    "WouldBlock",
    "build",
    "call_info",
    "call_infos",
    "load",
    "udf",
]


def __getattr__(name: str) -> Any:
    if name == "load":
        from .host import load

        return load
    if name in ("CallInfo", "call_info", "call_infos"):
        from . import _call_info

        return getattr(_call_info, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
