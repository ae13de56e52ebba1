"""The kinds of operators. Each file has one: its keys in a description, its checks, what it becomes in a chain, and how
people see it.

kind.py          `DescribedOperator`, what all of them have; `WaitingOperator`, what those with windows have
functions.py     functions of a plugin            sql.py          items and condition of a SELECT
lookup.py        columns of a table in a database      union.py        rows of several operators
windows.py       windows of event time                 join.py         rows of two that have the same time
deduplicate.py   the first rows of keys                look_back.py    window functions over the rows of keys
whole.py         a query over all rows             updating.py     the latest results of keys, as changes
followed.py      rows that come and go, of tables that change     updating_join.py   two joined on keys, for ever

A new one is a file and a line in `OPERATORS`.
"""

from __future__ import annotations

from .deduplicate import Deduplicate
from .followed import FollowTable, LatestRows
from .functions import Functions
from .join import Join
from .kind import DescribedOperator
from .look_back import LookBack
from .lookup import Lookup
from .sql import Sql
from .union import Union
from .updating import Updating
from .updating_join import UpdatingJoin
from .whole import WholeQuery
from .windows import Windows

__all__ = [
    "OPERATORS",
    "Deduplicate",
    "FollowTable",
    "Functions",
    "Join",
    "LatestRows",
    "LookBack",
    "Lookup",
    "Sql",
    "Union",
    "Updating",
    "UpdatingJoin",
    "WholeQuery",
    "Windows",
]

OPERATORS: tuple[type[DescribedOperator], ...] = (
    Functions,
    Sql,
    Lookup,
    Windows,
    Union,
    Join,
    Deduplicate,
    LookBack,
    WholeQuery,
    Updating,
    FollowTable,
    LatestRows,
    UpdatingJoin,
)
