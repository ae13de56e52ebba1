"""Arrays as a function's types, where nothing can be lost."""

import dataclasses

import pyarrow as pa


@dataclasses.dataclass(frozen=True)
class Cast:
    """array: has the wanted type; null where refused. refused: position in the array -> why."""

    array: pa.Array
    refused: dict[int, str]
