"""An aggregate in Python, to be measured beside an engine's own."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_udf_plugin import udaf


@udaf
@dataclass
class own_sum:
    sum: int = 0
    count: int = 0

    def update(self, values: pa.Int64Array) -> None:
        self.sum += pc.sum(values).as_py() or 0
        self.count += len(values) - values.null_count

    def merge(self, other: "own_sum") -> None:
        self.sum += other.sum
        self.count += other.count

    def finish(self) -> int | None:
        return self.sum if self.count else None
