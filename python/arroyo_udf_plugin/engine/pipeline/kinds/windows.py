"""Rows in windows of event time, as GROUP BY has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, ClassVar, Literal

import pyarrow as pa
import pydantic

from ....errors import InvalidArgument
from ....host.aggregate import Aggregate
from ....host.isolation import Isolation
from ...connectors.cells import CellType
from ...connectors.described import Seconds, Several
from ...datafusion.query import WrongQuery
from ...operators.blocks import Given
from ...operators.calls import Call
from ...windows.grouping import Grouping
from ...windows.opened import opened
from ...windows.spans import Hop, Months, Session, Window
from ..queries import in_words
from .functions import Workers
from .kind import Building, WaitingOperator, lines_of_aggregates

MOST_MONTHS = 372
"""Of a window: as long as others may be, in whole years."""
NONE: Mapping[str, Aggregate] = {}


class Windows(WaitingOperator):
    """An operator: rows in windows of event time, as GROUP BY has them. With `keys`, each slice has some of them; without, the first slice has all.

    Its rows are the windows' results: the keys, the window, the aggregates, and the last moment of the window as their
    event time.
    """

    later: ClassVar[frozenset[str]] = frozenset(
        {"allowed_lateness", "months", "slide_months", "functions", "isolation", "workers"}
    )
    called_kinds: ClassVar[frozenset[str]] = frozenset({"aggregate"})
    """Of the functions that it may call."""

    type: Literal["windows"] = "windows"
    time: str
    """The column of event times."""
    width: Seconds | None = None
    """How long a window is."""
    slide: Seconds | None = None
    """The time from the start of one window to the next; default: `width`."""
    months: Annotated[int, pydantic.Field(ge=1, le=MOST_MONTHS)] | None = None
    """For windows of the calendar, in UTC, instead of `width`: how many months one has, from January 1970 on."""
    slide_months: Annotated[int, pydantic.Field(ge=1, le=MOST_MONTHS)] | None = None
    """How many months after one of them the next one begins; default: `months`."""
    gap: Seconds | None = None
    """For sessions, instead of `width`: the time without a row after which a session is over."""
    column: str = "window"
    """The name of the results' column with the window, a struct of its start and its end."""
    keys: Several[str] = ()
    """Columns: each window has a result for each of their values."""
    aggregates: dict[str, str] = pydantic.Field(default_factory=dict)
    """An aggregate in DataFusion's SQL for each name of a result, such as n = "count(*)"."""
    by_row: bool = False
    """Each row is a result: `aggregates` are window functions, such as place = "row_number() OVER (ORDER BY n)"."""
    table: str = "input"
    """The name by which aggregates may call the rows, as in input.column."""
    functions: dict[str, str] = pydantic.Field(default_factory=dict)
    """Aggregates of plugins that `aggregates` call: the plugin, or the source (.py, .rs or .c), for each name. A group
    that fails ends the pipeline."""
    isolation: Isolation | None = None
    """Where these run: "thread", "subinterpreter" or "process"; default: "thread"."""
    workers: Workers | None = None
    """How many interpreters or processes there are; "auto": one per core; default: 1."""

    @property
    def gathers(self) -> bool:
        return self.by_row or not self.keys

    @property
    def is_of_one_time(self) -> bool:
        return True

    def grouping(self, functions: Mapping[str, Aggregate] = NONE) -> Grouping:
        """functions: those of the same name. Raises InvalidArgument for windows that cannot be."""
        window = self._window()
        if self.by_row and isinstance(window, Session):
            raise InvalidArgument("sessions have no window functions: leave out by_row")
        return Grouping(
            time=self.time,
            window=window,
            column=self.column,
            keys=tuple(self.keys),
            aggregates=dict(self.aggregates),
            by_row=self.by_row,
            table=self.table,
            functions=functions,
        )

    def _window(self) -> Window:
        """Raises InvalidArgument."""
        keys = ("width", "slide", "months", "slide_months", "gap")
        given = {key for key in keys if getattr(self, key) is not None}
        if self.width is not None and given <= {"width", "slide"}:
            slide = self.width if self.slide is None else self.slide
            return Hop(round(self.width * 1e9), round(slide * 1e9))
        if self.months is not None and given <= {"months", "slide_months"}:
            return Months(self.months, self.slide_months or self.months)
        if self.gap is not None and given == {"gap"}:
            return Session(round(self.gap * 1e9))
        raise InvalidArgument(
            "write width, or width and slide, or months, or months and slide_months, or for sessions gap alone"
        )

    def build(self, building: Building, place: int) -> None:
        columns, problems = building.before(place), building.problems
        functions = building.functions_of(place, self)
        if columns is None or functions is None:
            return
        building.needs_time(place, "windows end by the event time")
        at_time = columns.schema.get_field_index(self.time)
        if at_time >= 0 and isinstance(columns.schema.types[at_time], CellType):
            reason = f"column {self.time!r} is text: give its type to the source"
            problems.add(("operators", place, "time"), f'{reason}, types = {{ {self.time} = "datetime" }}')
            return
        try:
            called = {name: function for name, function in functions.items() if isinstance(function, Aggregate)}
            grouping = self.grouping(called)
            schema = opened(grouping, columns.schema).schema
        except WrongQuery as error:
            at = ("aggregates", error.item) if error.item in self.aggregates else ()
            problems.add(("operators", place, *map(str, at)), in_words(error, columns.schema))
            return
        except InvalidArgument as error:
            problems.add(("operators", place, "width" if self.months is None else "months"), str(error))
            return
        self.build_waiting(building, place, grouping, Given(columns.schema, columns.origin), schema)

    def explained(self, schema: pa.Schema | None, calls: Iterable[Call]) -> Iterator[str]:
        assert schema is not None
        yield from lines_of_aggregates(self.aggregates, schema)

    def node(self, calls: Iterable[Call]) -> str:
        if self.by_row:
            return "WindowFunction"
        if self.gap is not None:
            return "SessionWindowAggregate"
        slides = self.slide not in (None, self.width) or self.slide_months not in (None, self.months)
        return "SlidingWindowAggregate" if slides else "TumblingWindowAggregate"
