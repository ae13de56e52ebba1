"""The rows that leave: keys, the window, aggregates, and the window's last moment as their event time."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from .grouping import Grouping
from .spans import times_of

Step = list[pa.RecordBatch]
"""Results that leave together. Between two steps, what is kept and `closed` say exactly what has not left; no rows are
added there."""
_BOUNDS = pa.struct([("start", pa.timestamp("ns")), ("end", pa.timestamp("ns"))])


class Results:
    """schema: of the rows. computed: of keys and aggregates. time: the type of event times."""

    def __init__(self, grouping: Grouping, computed: pa.Schema, time: pa.DataType) -> None:
        self._n_keys = len(grouping.keys)
        fields = list(computed)
        window = pa.field(grouping.column, _BOUNDS)
        self.schema = pa.schema(
            [*fields[: self._n_keys], window, *fields[self._n_keys :], pa.field(grouping.time, time)]
        )

    def of(self, answers: pa.RecordBatch, starts: pa.Int64Array, ends: pa.Int64Array) -> pa.RecordBatch:
        """starts, ends: of each row's window."""
        bounds = [times.view(pa.timestamp("ns")) for times in (starts, ends)]
        window = pa.StructArray.from_arrays(bounds, fields=list(_BOUNDS))
        time = times_of(pc.subtract(ends, 1), self.schema.types[-1])
        columns = [*answers.columns[: self._n_keys], window, *answers.columns[self._n_keys :], time]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
