"""Write a UDF in Python, Rust or C; get one shared library that any engine calls over a small C ABI.

    from arroyo_udf_plugin import udf      mark a function (udf.py, types.py)
    from arroyo_udf_plugin import build    source -> shared library (build/)
    from arroyo_udf_plugin import load     shared library -> functions on Arrow arrays (host.py)

Importing this package must stay cheap, and possible in a subinterpreter, where neither cffi nor pyarrow can be
imported: `load`, which needs both, is looked up when first used. (`build` and `udf` are imported here, so that the
functions and not the modules of the same names are what the package offers.)
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
    from .host import load

__version__ = "0.1.0"
__all__ = [
    "AbiError",
    "ArroyoUdfError",
    "BuildError",
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
    "load",
    "udf",
]


def __getattr__(name: str) -> Any:
    if name != "load":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .host import load

    return load
