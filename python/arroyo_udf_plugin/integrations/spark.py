"""Functions in Spark, from version 4.1 on, which has Arrow UDFs.

    register(spark, "libudf.so")
    spark.sql("SELECT mph(distance, air_time) FROM flights")

    udf = functions(spark, "libudf.so")
    flights.withColumn("mph", udf.mph("distance", "air_time"))

Spark sends the library to its executors, whose Python needs this package. A worker process refuses a file that is not
the one that was registered, loads it once, and starts an async function once. The host calls each function for a batch.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from pyspark import SparkFiles
from pyspark.sql import SparkSession
from pyspark.sql.functions import arrow_udf

from ..errors import InvalidArgument, LoadError, RowError
from ..host.function import Function
from ..host.library import Plugin, load
from ..plugin.casting import cast
from .opened import Batches, by_row, library_of, volatility_of
from .spark_types import nearest, spark_type


def register(session: SparkSession, library: str | os.PathLike[str]) -> list[str]:
    """All functions of a library, for SQL. Returns their names.

    Raises what `functions` raises, and InvalidArgument for the name of a function that Spark has.
    """
    made = vars(functions(session, library))
    own = {row.function for row in session.sql("SHOW SYSTEM FUNCTIONS").collect()}
    if taken := [name for name in made if name.lower() in own]:
        raise InvalidArgument(f"SQL would call Spark's own {taken[0]}: rename the function, or call it as a column")
    for name, function in made.items():
        session.udf.register(name, function)
    return list(made)


def functions(session: SparkSession, library: str | os.PathLike[str]) -> Any:
    """Each function of a library under its name: it takes columns or their names, and returns a column.

    library: or a source. Raises LoadError, BuildError; InvalidArgument for a function that Spark cannot call.
    """
    content = library_of(library).read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    file = _folder() / f"{sha256}.so"  # Spark sends one file of a name
    if not file.exists():
        file.write_bytes(content)
    made = {name: _udf(function, sha256) for name, function in by_row(load(file)).items()}
    session.addArtifacts(str(file), file=True)
    return SimpleNamespace(**made)


@functools.cache
def _folder() -> Path:
    """Of the files that executors fetch, as long as this process lives."""
    folder = tempfile.mkdtemp(prefix="arroyo-udf-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _udf(function: Function, sha256: str) -> Any:
    name = function.name
    if not function.arguments:
        raise InvalidArgument(f"{function.where} has no arguments, so Spark cannot say for how many rows to call it")
    types = {f"the argument {field.name}": field.type for field in function.arguments} | {
        "the result": function.returns
    }
    for what, type_ in types.items():
        if spark_type(nearest(type_)) is None:
            raise InvalidArgument(f"{function.where}: {what} is {type_}, which Spark has not")
    returns = nearest(function.returns)

    def call(*columns: pa.Array) -> pa.Array:
        return _called(sha256, name, returns, columns)

    call.__name__ = name
    made = arrow_udf(call, returnType=spark_type(returns))
    return made.asNondeterministic() if volatility_of(function) == "volatile" else made


# ---- In a worker process ---------------------------------------------------------------------------------------------


def _called(sha256: str, name: str, returns: pa.DataType, columns: Sequence[pa.Array]) -> pa.Array:
    """Raises what a function raises, and RowError for a result that does not fit Spark's type."""
    batches = _batches(sha256, name)
    found = cast(batches.call(columns), pa.field(name, returns))
    if found.refused and batches.policy.error == "fail":
        row, why = next(iter(found.refused.items()))
        raise RowError(f"{batches.function.where}, row {row}: the result {why}", found.refused)
    return found.array


@functools.cache
def _batches(sha256: str, name: str) -> Batches:
    return Batches(_plugin(sha256), name)


@functools.cache
def _plugin(sha256: str) -> Plugin:
    """Raises LoadError if the file has changed on its way."""
    file = Path(SparkFiles.get(f"{sha256}.so"))
    if hashlib.sha256(file.read_bytes()).hexdigest() != sha256:
        raise LoadError(f"{file}: is not the library that was registered, whose sha256 is {sha256}")
    return load(file)
