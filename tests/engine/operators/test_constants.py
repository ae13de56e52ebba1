"""Arguments that are one value for all rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from gates import SCHEMA, block

from arroyo_udf_plugin import InvalidArgument, load
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns
from arroyo_udf_plugin.engine.operators.calls import Call, CallPlan, ConstantArgument
from arroyo_udf_plugin.engine.operators.operator import Operator

SOURCE = """
import datetime

from arroyo_udf_plugin import udf


@udf
def shown(x: int, factor: float, unit: str | None, since: datetime.date) -> str:
    return f"{x * factor:g} {unit} since {since.year}"
"""


@pytest.fixture(scope="module")
def shown(build_plugin: Callable[..., Path]) -> Any:
    return load(build_plugin(SOURCE, name="constants")).functions["shown"]


def test_constants_become_the_type_of_the_argument(shown: Any) -> None:
    call = Call.of(shown, ["x", ConstantArgument(2), ConstantArgument("km"), ConstantArgument("2013-01-01")], "text")
    plan = CallPlan([call], Columns(SCHEMA), typed=True)
    operator = Operator("test", plan.stages)
    operator.start()
    operator.push(block([4]))
    (out,) = operator.take()
    assert isinstance(out, Block)
    assert plan.output(out).column("text").to_pylist() == ["8 km since 2013"]


def test_a_null_is_passed_on_where_the_function_takes_one(shown: Any) -> None:
    call = Call.of(shown, ["x", ConstantArgument(2.5), ConstantArgument(None), ConstantArgument("2013-01-01")], "text")
    operator = Operator("test", CallPlan([call], Columns(SCHEMA), typed=True).stages)
    operator.start()
    operator.push(block([4]))
    (out,) = operator.take()
    assert isinstance(out, Block)
    assert out.rows.column("text").to_pylist() == ["10 None since 2013"]


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (1, "fast", "the constant for 'factor': 'fast' "),
        (2, 3, "the constant for 'unit': "),
        (3, True, "the constant for 'since': "),
        (3, "2013-13-01", "the constant for 'since': '2013-13-01' "),
        (1, 10**30, "the constant for 'factor', 10{30}, is too large"),
    ],
)
def test_a_constant_that_does_not_fit_is_refused_before_the_start(
    shown: Any, place: int, value: Any, said: str
) -> None:
    arguments: list[str | ConstantArgument] = [
        "x",
        ConstantArgument(2),
        ConstantArgument("km"),
        ConstantArgument("2013-01-01"),
    ]
    arguments[place] = ConstantArgument(value)
    with pytest.raises(InvalidArgument, match=said):
        CallPlan([Call.of(shown, arguments, "text")], Columns(SCHEMA), typed=True)


def test_a_call_without_columns_is_made_for_every_row(shown: Any) -> None:
    arguments: list[str | ConstantArgument] = [
        ConstantArgument(1),
        ConstantArgument(2),
        ConstantArgument("km"),
        ConstantArgument("2013-01-01"),
    ]
    operator = Operator("test", CallPlan([Call.of(shown, arguments, "text")], Columns(SCHEMA), typed=True).stages)
    operator.start()
    operator.push(block([4, 5, 6]))
    rows: list[str] = []
    while len(rows) < 3:
        for item in operator.take():
            assert isinstance(item, Block)
            assert isinstance(item.rows.column("text"), pa.StringArray)
            rows += item.rows.column("text").to_pylist()
    assert rows == ["2 km since 2013"] * 3
