"""Where a plugin's functions run: in the host's own interpreter, in subinterpreters, or in worker processes
(docs/isolation.md).

The other isolations answer the same table, the same descriptor and the same functions as the thread does: the native
core opens them, and nothing above knows the difference.
"""

import atexit
import os
import sys
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from .. import abi
from .._native import open_processes, open_subinterpreters, stop_all
from ..abi import ffi
from ..errors import InvalidArgument, by_status

Isolation: TypeAlias = Literal["thread", "subinterpreter", "process"]
ISOLATIONS: tuple[str, ...] = get_args(Isolation)

atexit.register(stop_all)  # before the interpreter ends, while its threads still get the GIL (R18)

_WORKER = b"arroyo_udf_plugin.worker"
MOST_WORKERS = 1024


@dataclass(frozen=True, kw_only=True)
class Where:
    """The choice of a host, checked.

    workers: interpreters or processes. memory_limit: bytes that each process may have of its own; cpu_limit: seconds of
        processor time that each may use. Raises InvalidArgument.
    """

    isolation: Isolation = "thread"
    workers: int | Literal["auto"] = 1
    memory_limit: int | None = None
    cpu_limit: int | None = None

    def __post_init__(self) -> None:
        if self.isolation not in ISOLATIONS:
            raise InvalidArgument(f"isolation={self.isolation!r}: write one of {', '.join(map(repr, ISOLATIONS))}")
        number = self.workers
        if number != "auto" and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise InvalidArgument(f'workers={number!r}: it is a number from 1 on, or "auto" for one per core')
        if isinstance(number, int) and number > MOST_WORKERS:
            raise InvalidArgument(f"workers={number}: at most {MOST_WORKERS}")
        if self.isolation == "thread" and number not in (1, "auto"):
            raise InvalidArgument(
                f'workers={number} with isolation="thread": a thread shares one interpreter; choose '
                'isolation="process" or "subinterpreter"'
            )
        for name, value in (("memory_limit", self.memory_limit), ("cpu_limit", self.cpu_limit)):
            if value is None:
                continue
            if self.isolation != "process":
                raise InvalidArgument(f'{name} is for isolation="process": only processes can be limited')
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidArgument(f"{name}={value!r}: it is a whole number from 1 on")

    @property
    def count(self) -> int:
        """How many workers there are."""
        return cores() if self.workers == "auto" else self.workers


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def open_isolated(path: str, table: Any, where: Where) -> tuple[Any, int]:
    """The table and the number of the first function of a plugin in workers. `table` is the plugin's own."""
    if where.isolation == "subinterpreter":
        return _open_subinterpreters(path, table, where)
    try:
        address, base = open_processes(
            os.fsencode(path),
            abi.address(table),
            os.fsencode(sys.executable),
            _WORKER,
            where.count,
            where.memory_limit or 0,
            where.cpu_limit or 0,
        )
    except ValueError as error:
        raise InvalidArgument(f"{path}: {error}") from None
    return ffi.cast("arroyo_udf_table *", address), base


def _open_subinterpreters(path: str, table: Any, where: Where) -> tuple[Any, int]:
    address, base = open_subinterpreters(abi.address(table), where.count)
    if isinstance(base, str):
        raise by_status(address, f"{path}: {base}")
    return ffi.cast("arroyo_udf_table *", address), base
