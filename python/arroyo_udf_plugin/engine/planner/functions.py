"""The UDFs of a query, by name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...build import plugin_for
from ...errors import ArroyoUdfError, InvalidArgument, nearest
from ...host.function import Function
from ...host.library import load
from ..datafusion.feed import functions_by_kind
from ..datafusion.native_calls import NAMES
from .installed import Installed, installed
from .text import Wrong

_SYNTAX = {
    *("tumble", "hop", "session", "cast", "try_cast", "extract", "exists", "any", "all", "some", "over", "filter"),
    *("values", "in", "and", "or", "not", "as", "on", "using", "with", "when", "then", "else", "case", "interval"),
    *("between", "like", "select", "from", "where", "by", "group", "key", "decimal", "numeric", "varchar", "char"),
    *("timestamp", "time", "date", "array", "grouping", "sets", "rollup", "cube", "ceiling", "floor", "metadata"),
}


@dataclass(frozen=True)
class PlannedUdf:
    """file: the plugin or source that was named for it."""

    file: str
    function: Function

    @property
    def signature(self) -> str:
        """As in town(place: string, country: string) -> string."""
        arguments = ", ".join(f"{field.name}: {field.type}" for field in self.function.arguments)
        return f"{self.function.name}({arguments}) -> {self.function.returns}"

    @property
    def is_aggregate(self) -> bool:
        return self.function.kind == "aggregate"

    @property
    def is_once(self) -> bool:
        """Whether two calls with the same arguments are one."""
        return self.function.volatility != "volatile"


@contextlib.contextmanager
def loaded(files: Sequence[str], called: Mapping[str, int] | None = None) -> Iterator[Mapping[str, PlannedUdf]]:
    """The functions of plugins, or of sources, which are built if they are new or have changed; by name in lower case.
    And those of installed packages among the names `called`, which have the places of the calls.

    A function of a file comes before DataFusion's of the same name, and DataFusion's before one of a package: no
    package changes what a query means that does without it.

    Raises InvalidArgument for two functions of one name, what building and loading raise, and Wrong for a package's.
    """
    udfs: dict[str, PlannedUdf] = {}
    with contextlib.ExitStack() as open_:
        for file in files:
            plugin = open_.enter_context(load(plugin_for(Path(file))))
            for name, function in plugin.functions.items():
                if name.lower() in udfs:
                    raise InvalidArgument(
                        f"{file} and {udfs[name.lower()].file} both have a function {name}: leave out one of them"
                    )
                udfs[name.lower()] = PlannedUdf(file, function)
        unknown = {name: at for name, at in (called or {}).items() if name not in udfs and name not in _own_names()}
        known = installed() if unknown else {}
        for name in unknown.keys() & known.keys():
            try:
                udfs[name] = _of_package(known[name], open_)
            except InvalidArgument as error:
                raise Wrong(str(error), unknown[name]) from error
        yield udfs


def _of_package(candidates: Sequence[Installed], open_: contextlib.ExitStack) -> PlannedUdf:
    candidate = candidates[0]
    if len(candidates) > 1:
        packages = " and ".join(f"{other.package} ({other.value})" for other in candidates)
        raise InvalidArgument(
            f"several packages have a function {candidate.name}, {packages}: name the file with --udf"
        )
    try:
        plugin = open_.enter_context(load(plugin_for(candidate.file)))
        if candidate.function not in plugin.functions:
            instead = nearest(candidate.function, plugin.functions)
            raise InvalidArgument(f"{candidate.file} has no function {candidate.function}: {instead}")
    except (ArroyoUdfError, OSError) as error:
        raise InvalidArgument(f"{candidate}: {error}") from error
    return PlannedUdf(str(candidate.file), plugin.functions[candidate.function])


def all_names() -> list[str]:
    """What a query may call, besides functions of files."""
    return [*_of_datafusion(), *NAMES, *installed()]


def _own_names() -> set[str]:
    """Names that mean something without a function of this name."""
    return {*_of_datafusion(), *NAMES, *_SYNTAX}


def _of_datafusion() -> list[str]:
    kinds = functions_by_kind()
    return sorted(kinds["SCALAR"] | kinds["AGGREGATE"] | kinds["WINDOW"])
