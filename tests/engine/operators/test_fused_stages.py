"""Native functions in one pass: rows, dead letters, counts and snapshots are those of stages one after the other."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from stored_states import stored

from arroyo_udf_plugin import Function, RowError, load
from arroyo_udf_plugin.engine.connectors.cells import Dialect, cell_type
from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.operators import queued
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns
from arroyo_udf_plugin.engine.operators.calls import Call, CallPlan, ConstantArgument, PlacedCall
from arroyo_udf_plugin.engine.operators.fused import FusedCalls, fused_calls, join_stages
from arroyo_udf_plugin.engine.operators.operator import Operator
from arroyo_udf_plugin.engine.operators.stages import Dead, Item
from arroyo_udf_plugin.engine.operators.watermarks import Watermark
from arroyo_udf_plugin.host.fused import Fused
from arroyo_udf_plugin.host.policy import Action, Policy

SOURCE = """
from arroyo_udf_plugin import udf

@udf
def speed(distance: int, minutes: int) -> float:
    return distance * 60.0 / minutes

@udf
def allowed(speed: float) -> float | None:
    if speed > 900.0:
        raise ValueError("too fast")
    return None if speed < 9.0 else speed / 2

@udf
def word(distance: int, unit: str) -> str:
    return f"{distance} {unit.upper()}"

@udf
def shown(speed: float | None, text: str) -> str:
    if text.startswith("66 "):
        raise KeyError(text)
    return text if speed is None else f"{text}: {round(speed)}"

@udf
async def later(x: int) -> int:
    return x

@udf(native=False)
def python(x: int) -> int:
    return x

@udf
def whole(x: int) -> int:
    return x + 1

@udf
def is_even(x: int) -> bool:
    return x % 2 == 0
"""
NUMBERS = [(name, pa.int64()) for name in ("x", "distance", "minutes")]
SCHEMA = pa.schema([*NUMBERS, ("unit", pa.string()), ("some", pa.bool_())])
CALLS = (
    ("a", "speed", ("distance", "minutes")),
    ("b", "allowed", ("a",)),
    ("c", "word", ("distance", "unit")),
    ("v", "shown", ("b", "c")),
)
POLICIES: list[Action] = ["null", "drop", "dead_letter"]


@pytest.fixture(scope="module")
def native(build_plugin: Callable[..., Path]) -> dict[str, Function]:
    functions = dict(load(build_plugin(SOURCE, name="fused"), validate=True).functions)
    assert [name for name, function in functions.items() if not function.native] == ["later", "python"]
    return functions


def blocks(seed: int, extreme: float) -> list[Block]:
    """extreme: the share of rows that Python decides, and of those with nulls."""
    choices, made, first = random.Random(seed), [], 1
    for count in (1, 3, 200, 1300, 64):
        rows = []
        for x in range(first, first + count):
            row: dict[str, Any] = {"x": x, "distance": choices.randrange(100, 900), "minutes": 60, "unit": "km"}
            row["some"] = choices.choice([True, True, False, None])
            if choices.random() < extreme:
                row |= choices.choice(
                    [
                        {"minutes": 0},
                        {"minutes": None},
                        {"distance": 950},
                        {"unit": "ñ"},
                        {"unit": None},
                        {"distance": 66},
                    ]
                )
            rows.append(row | ({"distance": 5} if choices.random() < extreme else {}))
        refused = {0: "has no unit"} if count == 64 and extreme else {}
        given = Rows("rows", first, pa.RecordBatch.from_pylist(rows, SCHEMA), refused)
        made.append(Columns(SCHEMA).block(given))
        first += count
    return made


def placed(
    functions: dict[str, Function], calls: Iterable[tuple[str, str, Sequence[Any]]], of_some: str = ""
) -> Sequence[PlacedCall]:
    """of_some: the names of calls that are made for some rows."""
    of = [
        Call.of(functions[function], list(columns), name, "some" if name in of_some else None)
        for name, function, columns in calls
    ]
    return CallPlan(of, Columns(SCHEMA), typed=True).stages


def operators(
    functions: dict[str, Function], action: Action, fused: bool, sizes: Sequence[int] = (4,), of_some: str = ""
) -> list[Operator]:
    """sizes: how many of the calls each has."""
    calls, made = placed(functions, CALLS, of_some), []
    for size in sizes:
        place = sum(len(operator.stages) for operator in made)
        made.append(Operator("test", calls[place : place + size], Policy(action, action)))
    if fused:
        (together,) = fused_calls(calls, (), {"v"})
        join_stages([together], [stage for operator in made for stage in operator.stages])
    for operator in made:
        operator.start()
    return made


def driven(chain: Sequence[Operator], given: Iterable[Block]) -> list[Item]:
    """What leaves the last operator."""
    found: list[Item] = []
    for number, block in enumerate(given):
        chain[0].push(block)
        chain[0].push_watermark(number)
        while any(operator.held_rows for operator in chain):
            for place, operator in enumerate(chain):
                for item in operator.take():
                    if place + 1 == len(chain) or isinstance(item, Dead):
                        found.append(item)
                    elif isinstance(item, Watermark):
                        chain[place + 1].push_watermark(item.time)
                    else:
                        chain[place + 1].push(item)
    return found


def rows_of(items: Iterable[Item]) -> list[tuple[int, Any]]:
    found: list[tuple[int, Any]] = []
    for item in items:
        if isinstance(item, Block):
            assert item.rows.schema.names == [*SCHEMA.names, "a", "b", "c", "v"]
            item.rows.validate(full=True)
            assert item.origin.column("row").equals(item.rows.column("x").cast(pa.uint64()))
            found += zip(item.rows.column("x").to_pylist(), item.rows.column("v").to_pylist(), strict=True)
        elif isinstance(item, Watermark):
            found.append((-1, item.time))
    return found


def letters_of(items: Iterable[Item]) -> list[Any]:
    dead = [item for item in items if isinstance(item, Dead)]
    letters = [letter for item in dead for letter in item.letters.to_pylist()]
    rows = [row for item in dead for row in item.rows.rows.select(SCHEMA.names).to_pylist()]
    return sorted(zip(map(str, rows), map(str, letters), strict=True))


def counts_of(chain: Sequence[Operator]) -> list[dict[str, int]]:
    return [dataclasses.asdict(stage.counts) for operator in chain for stage in operator.stages]


def native_rows(functions: dict[str, Function]) -> list[int]:
    """Of each call's function: all, and those that were deferred."""
    return [number for _, function, _ in CALLS for number in functions[function].native_rows() or ()]


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each pass was given."""
    found, run = list[int](), Fused.run

    def counted(self: Fused, columns: Sequence[pa.Array]) -> Any:
        found.append(len(columns[0]))
        return run(self, columns)

    monkeypatch.setattr(Fused, "run", counted)
    return found


@pytest.mark.parametrize(("sizes", "of_some"), [((4,), ""), ((3, 1), "ab"), ((1, 2, 1), ""), ((4,), "abcv")])
@pytest.mark.parametrize("extreme", [0.0, 0.02, 0.5])
@pytest.mark.parametrize("action", POLICIES)
def test_rows_letters_and_counts(
    native: dict[str, Function], passes: list[int], action: Action, extreme: float, sizes: Sequence[int], of_some: str
) -> None:
    given, counted = blocks(3, extreme), [native_rows(native)]
    singly = operators(native, action, False, sizes, of_some)
    expected = driven(singly, given)
    counted.append(native_rows(native))
    assert not passes
    together = operators(native, action, True, sizes, of_some)
    found = driven(together, given)
    counted.append(native_rows(native))
    assert sum(passes) == sum(len(block) for block in given) - 64 * bool(extreme)
    assert rows_of(found) == rows_of(expected)
    assert letters_of(found) == letters_of(expected)
    assert counts_of(together) == counts_of(singly)
    for one, other in zip(together, singly, strict=True):
        assert [stage.failures.so_far for stage in one.stages] == [stage.failures.so_far for stage in other.stages]
    alone, in_passes = (pc.subtract(pa.array(now), pa.array(was)) for was, now in itertools.pairwise(counted))
    assert in_passes[::2] == alone[::2], "rows"
    assert extreme > 0.1 or in_passes == alone, "deferred ones: of many, Python runs whole batches"
    if not extreme:
        hidden = [item.rows.column(name) for item in found if isinstance(item, Block) for name in "abc"]
        assert all(column.null_count == len(column) for column in hidden), "they have been whole arrays"


def test_a_failed_row_ends_the_run_with_the_same_text(native: dict[str, Function]) -> None:
    texts = []
    for fused in (False, True):
        with pytest.raises(RowError) as raised:
            driven(operators(native, "fail", fused), blocks(5, 0.02))
        texts.append((str(raised.value), raised.value.errors))
    assert texts[0] == texts[1]
    assert "fused.speed, rows, row " in texts[0][0]


@pytest.mark.parametrize("restored_fused", [False, True])
@pytest.mark.parametrize("extreme", [0.0, 0.2])
def test_answered_rows_that_wait_are_kept_as_they_were_given(
    native: dict[str, Function], extreme: float, restored_fused: bool
) -> None:
    """A snapshot between two operators of a pass is one without passes."""
    given = blocks(7, extreme)[3]
    expected = rows_of(driven(operators(native, "null", False), [given]))
    first, second = operators(native, "null", True, (3, 1))
    first.push(given)
    while first.held_rows:
        for item in first.take():
            assert isinstance(item, Block)
            second.push(item)
    assert second.held_rows == len(given)
    state = stored(second.snapshot())
    assert len(rows_of(driven([second], []))) == 0
    *_, resumed = operators(native, "null", restored_fused, (3, 1))
    resumed = Operator("test", placed(native, CALLS)[3:], Policy("null", "null")) if not restored_fused else resumed
    resumed.restore([state])
    resumed.start()
    found: list[Item] = []
    while resumed.held_rows:
        found += resumed.take()
    assert rows_of(found) == [row for row in expected if row[0] >= 0]


def test_rows_that_wait_before_a_pass_are_kept(native: dict[str, Function], monkeypatch: pytest.MonkeyPatch) -> None:
    given = blocks(7, 0.2)[3]
    (waiting,) = operators(native, "drop", True)
    waiting.push(given)
    left = waiting.take()
    state = stored(waiting.snapshot())
    for fused in (True, False):
        (fresh,) = operators(native, "drop", fused)
        fresh.restore([state])
        fresh.start()
        found = list(left)
        while fresh.held_rows:
            found += fresh.take()
        assert rows_of(found) == [
            row for row in rows_of(driven(operators(native, "drop", False), [given])) if row[0] >= 0
        ]


def test_cells_of_text_files(native: dict[str, Function], passes: list[int]) -> None:
    """Arguments that are parsed join the rows, for outputs with types; a cell that cannot be parsed is an error."""
    cells = pa.ExtensionArray.from_storage(cell_type(Dialect()), pa.array(["300", "40", "NA", "far", "500"]))
    columns = Columns(pa.schema([("distance", cells.type), ("minutes", cells.type)]))
    calls = [("a", "speed", ("distance", "minutes")), ("b", "allowed", ("a",)), ("v", "shown", ("b", "minutes"))]
    found = []
    for fused in (False, True):
        of = [Call.of(native[function], list(given), name) for name, function, given in calls]
        made = CallPlan(of, columns, typed=True)
        assert made.schema.names == ["distance", "minutes", "a", "b", "v"]
        operator = Operator("test", made.stages, Policy("drop", "drop"))
        if fused:
            join_stages(fused_calls(made.stages, (), {"v"}), operator.stages)
        operator.start()
        rows = []
        for count in (2, 5):
            batch = pa.RecordBatch.from_arrays([cells.slice(0, count)] * 2, schema=columns.schema)
            operator.push(columns.block(Rows("cells", 1, batch)))
            while operator.held_rows:
                rows += [item for item in operator.take() if isinstance(item, Block)]
        outputs = [made.output(block) for block in rows]
        assert outputs[0].schema.types == [pa.int64(), pa.int64(), pa.float64(), pa.float64(), pa.string()]
        found.append([row for output in outputs for row in output.select(["distance", "minutes", "v"]).to_pylist()])
    assert passes
    assert found[1] == found[0]
    assert [row["v"] for row in found[0]] == ["300: 30", "40: 30", "300: 30", "40: 30", None, "500: 30"]


def test_steps_are_those_of_the_first_stage(native: dict[str, Function], passes: list[int]) -> None:
    """What comes out of a pass is handed on whole."""
    (operator,) = operators(native, "null", True)
    operator.push(blocks(3, 0.0)[3])
    taken = [operator.take() for _ in range(5)]
    assert passes == [1, 8, 64, 512, 715]
    assert [len(item) for items in taken for item in items if isinstance(item, Block)] == passes
    assert queued.STEP_ROWS > 715


# ---- Which calls are in one pass ----


def together(functions: dict[str, Function], *calls: tuple[str, str, Sequence[Any]], **how: Any) -> list[str]:
    passes: list[FusedCalls] = fused_calls(placed(functions, calls), **{"apart": (), "needed": {"v", "w"}, **how})
    return [fused.text for fused in passes]


def test_nested_calls_are_one_pass(native: dict[str, Function]) -> None:
    text = "v = shown(allowed(speed(distance, minutes)), word(distance, unit))"
    assert together(native, *CALLS) == [text]
    text = "a = speed(distance, minutes), b = allowed(a), c = word(distance, unit), v = shown(b, c)"
    assert together(native, *CALLS, needed=None) == [text]
    constants = ("c", "word", (ConstantArgument(3), ConstantArgument("km")))
    text = "v = shown(allowed(speed(distance, minutes)), word(3, 'km'))"
    assert together(native, *CALLS[:2], constants, CALLS[3]) == [text]


def test_calls_that_take_nothing_of_each_other_are_single(native: dict[str, Function]) -> None:
    assert together(native, ("v", "whole", ("x",)), ("w", "whole", ("distance",))) == []


def test_another_call_between_them_takes_their_results(native: dict[str, Function]) -> None:
    """Functions in Python, and async ones, are called where they stand, for the rows that are left then."""
    for function in ("python", "later"):
        assert together(native, ("a", "whole", ("x",)), ("b", function, ("a",)), ("v", "whole", ("b",))) == []
        calls = [("a", "whole", ("x",)), ("w", "whole", ("a",)), ("b", function, ("a",)), ("v", "whole", ("b",))]
        assert together(native, *calls) == ["a = whole(x), w = whole(a)"]


def test_results_of_other_types_are_cast_between_passes(native: dict[str, Function]) -> None:
    """`whole` gives int64, and `allowed` takes float64."""
    assert together(native, ("a", "whole", ("x",)), ("v", "allowed", ("a",))) == []
    calls = [("a", "whole", ("x",)), ("b", "whole", ("a",)), ("v", "allowed", ("b",))]
    assert together(native, *calls) == ["b = whole(whole(x))"]


def test_calls_of_some_rows(native: dict[str, Function]) -> None:
    calls = placed(native, [("a", "whole", ("x",)), ("v", "whole", ("a",))], of_some="av")
    (fused,) = fused_calls(calls, (), {"v"})
    assert fused.text == "v = whole(whole(x) if some) if some"


def test_calls_of_rows_that_another_one_chooses_are_single(native: dict[str, Function]) -> None:
    calls = [Call.of(native["is_even"], ["x"], "even"), Call.of(native["whole"], ["x"], "v", "even")]
    assert fused_calls(CallPlan(calls, Columns(SCHEMA), typed=True).stages, (), None) == []


def test_an_operator_that_waits_begins_a_pass(native: dict[str, Function]) -> None:
    calls = [("a", "whole", ("x",)), ("b", "whole", ("a",)), ("v", "whole", ("b",))]
    assert together(native, *calls, apart=(1,)) == ["v = whole(whole(a))"]
