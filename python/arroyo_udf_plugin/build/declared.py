"""What a Python source declares, as the functions of a descriptor (arroyo_udf_function in arroyo_udf.h).

Functions come first, then aggregates, then the steps of aggregates: so their numbers are those that users count.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from ..author.options import abi_fields, check_cache
from ..author.steps import takes_arrays
from ..author.types import aggregate_signatures, signature
from ..author.udaf import STEPS, Udaf
from ..author.udf import Udf, Volatility

_is = pa.types


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A function of the descriptor. options: of an async one, by their names. timeout_ns: of a sync one; 0: none.
    constants: bit i: argument number i may come as a constant."""

    name: str
    kind: Literal["SYNC", "ASYNC", "AGGREGATE", "TABLE", "STEP"]
    arguments: pa.Schema
    returns: pa.Field
    vectorized: bool = False
    options: dict[str, Any] | None = None
    documentation: str = ""
    volatility: Volatility | None = None
    first_step: int = 0
    timeout_ns: int = 0
    constants: int = 0


def functions(udfs: Sequence[Udf[..., Any]], aggregates: Sequence[Udaf], block: dict[str, Any]) -> list[Declared]:
    """All functions of a source. block: options from its head. Raises BuildError."""
    first = len(udfs) + len(aggregates)
    of_aggregates = [_of_aggregate(aggregate, first + len(STEPS) * i) for i, aggregate in enumerate(aggregates)]
    steps = [step for _, *steps in of_aggregates for step in steps]
    return [*(_of_udf(udf, block) for udf in udfs), *(seen for seen, *_ in of_aggregates), *steps]


def _of_udf(udf: Udf[..., Any], block: dict[str, Any]) -> Declared:
    read = signature(udf)
    is_called_by_row = not (udf.starts or udf.gives_rows or udf.vectorized)
    options = block | udf.chosen if udf.starts else None
    if options and (wrong := check_cache(options)):
        raise udf.mistake(wrong)
    timeout = 0 if udf.starts else abi_fields(udf.chosen).get("timeout_ns", 0)
    return Declared(
        name=udf.__name__,
        kind="ASYNC" if udf.starts else "TABLE" if udf.gives_rows else "SYNC",
        arguments=read.arguments,
        returns=read.returns,
        vectorized=udf.vectorized,
        options=options,
        documentation=inspect.cleandoc(udf.function.__doc__ or ""),
        volatility=udf.volatility,
        timeout_ns=0 if timeout == 2**64 - 1 else timeout,
        constants=_constants(read.arguments) if is_called_by_row else 0,
    )


def _constants(arguments: pa.Schema) -> int:
    """Those of text and bytes, which cost something to repeat."""
    kinds = (_is.is_string, _is.is_large_string, _is.is_binary, _is.is_large_binary)
    bits = (1 << i for i, type_ in enumerate(arguments.types[:64]) if any(of(type_) for of in kinds))
    return sum(bits)


def _of_aggregate(aggregate: Udaf, first_step: int) -> list[Declared]:
    """Itself, and its steps."""
    name, reads = aggregate.__name__, aggregate_signatures(aggregate)
    documentation = vars(aggregate.cls).get("__doc__") or ""
    if documentation.startswith(f"{name}("):  # what @dataclass writes for a class without a text
        documentation = ""
    seen = Declared(
        name=name,
        kind="AGGREGATE",
        arguments=reads[""].arguments,
        returns=reads[""].returns,
        documentation=inspect.cleandoc(documentation),
        volatility=aggregate.volatility,
        first_step=first_step,
    )
    steps = (
        Declared(
            name=f"{name}.{step}",
            kind="STEP",
            arguments=reads[step].arguments,
            returns=reads[step].returns,
            vectorized=step == "update" and takes_arrays(aggregate),
        )
        for step in STEPS
    )
    return [seen, *steps]
