"""The UDFs of a query, by name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..build import plugin_for
from ..errors import InvalidArgument
from ..host.function import Function
from ..host.library import load


@dataclass(frozen=True)
class Udf:
    """file: the plugin or source that was named for it."""

    file: str
    function: Function

    @property
    def signature(self) -> str:
        """As in town(place: string, country: string) -> string."""
        arguments = ", ".join(f"{field.name}: {field.type}" for field in self.function.arguments)
        return f"{self.function.name}({arguments}) -> {self.function.returns}"

    @property
    def is_once(self) -> bool:
        """Whether two calls with the same arguments are one."""
        return self.function.volatility != "volatile"


@contextlib.contextmanager
def loaded(files: Sequence[str]) -> Iterator[Mapping[str, Udf]]:
    """The functions of plugins, or of sources, which are built if they are new or have changed; by name in lower case.

    Raises InvalidArgument for two functions of one name, and what building and loading raise.
    """
    found: dict[str, Udf] = {}
    with contextlib.ExitStack() as open_:
        for file in files:
            plugin = open_.enter_context(load(plugin_for(Path(file))))
            for name, function in plugin.functions.items():
                if name.lower() in found:
                    raise InvalidArgument(
                        f"{file} and {found[name.lower()].file} both have a function {name}: leave out one of them"
                    )
                found[name.lower()] = Udf(file, function)
        yield found
