"""The rows of several operators, as those of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Annotated, ClassVar, Literal

import pyarrow as pa
import pydantic

from ...connectors.cells import CellType, decoded, plain_field
from ...connectors.described import Several
from ...datafusion.query import Select
from ...operators.blocks import Given
from ...operators.calls import Call
from ...operators.queried import QueryPlan
from ..lines import Key
from .kind import Building, DescribedOperator


class Union(DescribedOperator):
    """An operator: the rows of several others, which have the same types in the same order. Names are the first's."""

    inputs_key: ClassVar[str] = "`inputs`"
    is_query: ClassVar[bool] = True

    type: Literal["union"] = "union"
    inputs: Annotated[Several[str], pydantic.Field(min_length=2)]
    """The operators whose rows it gets, or sources: "source" or names of `sources`."""

    def named_inputs(self) -> Sequence[tuple[Key, str]]:
        return [(("inputs", number), name) for number, name in enumerate(self.inputs)]

    def build(self, building: Building, place: int) -> None:
        columns = building.inputs(place)
        known = [_decoded(input_columns.schema) for input_columns in columns if input_columns is not None]
        if len(known) < len(columns):
            return
        schema = merged(known)
        for number, other in enumerate(known):
            if len(other) != len(known[0]) or not all(map(_fits, other.types, schema.types)):
                text = f"its rows have the types {_types(other)}, and those of the first input {_types(known[0])}"
                building.problems.add(
                    ("operators", place, "inputs", number), f"{text}: cast them in an operator before"
                )
                return
        building.merges(place, partial(_as_merged, schema))
        plan = QueryPlan(building.name(place), Select(), Given(schema, building.origin))
        building.add(place, [plan], schema)

    def node(self, calls: Iterable[Call]) -> str:
        return "Union"


def merged(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Of the rows of all. Cells are texts; a column that is always null has the type of another input."""
    columns = zip(*(_decoded(schema).types for schema in schemas), strict=False)
    types = [next((type_ for type_ in own if not pa.types.is_null(type_)), own[0]) for own in columns]
    return pa.schema(zip(schemas[0].names, types, strict=False))


def _decoded(schema: pa.Schema) -> pa.Schema:
    """Cells as the texts that they are."""
    return pa.schema(map(plain_field, schema))


def _fits(given: pa.DataType, wanted: pa.DataType) -> bool:
    return given == wanted or bool(pa.types.is_null(given))


def _as_merged(schema: pa.Schema, rows: pa.RecordBatch, input: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(map(_as_type, rows.columns, schema.types)), schema=schema)


def _as_type(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if isinstance(column.type, CellType):
        return decoded(column)
    return pa.nulls(len(column), wanted) if pa.types.is_null(column.type) else column


def _types(schema: pa.Schema) -> str:
    return ", ".join(map(str, schema.types))
