"""Functions over pandas.

    udf = functions("libudf.so")
    frame["mph"] = udf.mph(frame.distance, frame.air_time)

A result has the Arrow type of the function (pandas.ArrowDtype) and the index of the first series among the arguments.
"""

from __future__ import annotations

import os
from functools import partial
from types import SimpleNamespace
from typing import Any

import pandas

from ..errors import InvalidArgument
from ..host.function import Function
from ..host.policy import Policy
from .opened import by_row, plugin_of, policy_of, values


def functions(library: str | os.PathLike[str]) -> Any:
    """Each function of a library under its name: it takes series and constants, and returns a series.

    library: or a source. Raises LoadError, BuildError.
    """
    plugin = plugin_of(library)
    policy = policy_of(plugin)
    return SimpleNamespace(**{name: partial(_called, function, policy) for name, function in by_row(plugin).items()})


def _called(function: Function, policy: Policy, /, *arguments: Any) -> pandas.Series:
    """Raises what `Function` raises, and InvalidArgument without a series."""
    series = [one for one in arguments if isinstance(one, pandas.Series)]
    if not series:
        raise InvalidArgument(f"{function.name} needs a series among its arguments")
    found = values(function, function.outcomes(*arguments), policy)
    dtype = pandas.ArrowDtype(function.returns)
    return pandas.Series(pandas.arrays.ArrowExtensionArray(found), index=series[0].index, dtype=dtype)
