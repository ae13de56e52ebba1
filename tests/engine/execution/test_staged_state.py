"""What a checkpoint of windows writes, and where (execution/staged_state.py), state by state."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import MemoryStore

from arroyo_udf_plugin.engine.execution.manifest import PartsFile, StateFile
from arroyo_udf_plugin.engine.execution.staged_state import MOST_FILES, StagedState
from arroyo_udf_plugin.engine.operators.blocks import ORIGIN, Block, Given
from arroyo_udf_plugin.engine.operators.group_stage import GroupPlan
from arroyo_udf_plugin.engine.operators.grouped import GroupOperator
from arroyo_udf_plugin.engine.operators.state_parts import StoredState
from arroyo_udf_plugin.engine.windows.grouping import Grouping
from arroyo_udf_plugin.engine.windows.join_query import Joining, Within
from arroyo_udf_plugin.engine.windows.joining import Sides
from arroyo_udf_plugin.engine.windows.spans import Hop
from arroyo_udf_plugin.errors import InvalidArgument

SCHEMA = pa.schema([("t", pa.timestamp("ns")), ("k", pa.int64()), ("x", pa.int64())])
ROWS = 5000  # of a pane; fewer would be put together with those that come later


class Checkpoints:
    """Those of one operator, one after the other. written: the bytes of each."""

    def __init__(self) -> None:
        self.store, self.files, self.written = MemoryStore(), list[PartsFile](), list[int]()

    def take(self, operator: GroupOperator, is_committed: bool = True) -> StagedState:
        snapshot = operator.snapshot()
        assert snapshot is not None
        number = len(self.written)
        staged = StagedState("groups", snapshot, self.files, f"{number}", f"{number}-rows")
        staged.store(self.store)
        self.written.append(staged.written)
        if is_committed:
            staged.committed()
            self.files = list(staged.file.parts)
        return staged

    def stored(self, state: StateFile) -> StoredState:
        parts = tuple((file.sha256, self.store.files[file.name]) for file in state.parts)
        return StoredState(self.store.files[state.name], parts)


def opened(*states: StoredState) -> GroupOperator:
    asked = Grouping("t", Hop(100, 100), keys=("k",), aggregates={"m": "median(x)", "n": "count(*)"})
    operator = GroupOperator(GroupPlan("groups", asked, Given(SCHEMA)))
    operator.start(states)
    return operator


def push(operator: GroupOperator, pane: int, rows: int = ROWS) -> None:
    numbers = pa.array(range(rows), pa.int64())
    times = pa.array([pane * 100] * rows, SCHEMA.types[0])
    batch = pa.RecordBatch.from_arrays([times, numbers, numbers], schema=SCHEMA)
    operator.push(without_origin(batch))
    operator.take()


def without_origin(rows: pa.RecordBatch) -> Block:
    nulls = [pa.nulls(rows.num_rows, one) for one in ORIGIN.types]
    return Block(rows, pa.RecordBatch.from_arrays(nulls, schema=ORIGIN))


def counted(operator: GroupOperator) -> dict[int, int]:
    """The rows of each window, by its end."""
    operator.finish()
    counts: dict[int, int] = {}
    while not operator.is_finished:
        for block in operator.take():
            assert isinstance(block, Block)
            ends = block.rows.column("window").field("end").cast(pa.int64()).to_pylist()
            for end, n in zip(ends, block.rows.column("n").to_pylist(), strict=True):
                counts[end] = counts.get(end, 0) + n
    return counts


def test_a_checkpoint_writes_what_is_new() -> None:
    checkpoints, operator = Checkpoints(), opened()
    for pane in range(100):
        push(operator, pane)
    checkpoints.take(operator)
    push(operator, 100)
    staged = checkpoints.take(operator)
    whole, more = checkpoints.written
    assert more < 0.02 * whole
    assert [file.name for file in staged.file.parts] == ["0-rows", "1-rows"]
    assert counted(opened(checkpoints.stored(staged.file))) == {100 * (pane + 1): ROWS for pane in range(101)}


def test_rows_in_windows_are_written_without_ids_and_origins() -> None:
    checkpoints, operator = Checkpoints(), opened()
    push(operator, 0)
    (file,) = checkpoints.take(operator).file.parts
    with pa.ipc.open_stream(checkpoints.store.files[file.name]) as stream:
        assert stream.schema.names == ["__pane", "k", "x"]
    assert file.size < 1.05 * ROWS * 2 * 8


def test_rows_of_one_side_are_written_without_the_other_one() -> None:
    """Its columns are null in all of them, and so one run."""
    checkpoints, sides = Checkpoints(), Sides([SCHEMA, SCHEMA], "t")
    asked = Joining("t", "full", "a.k = b.k", {"l": "a.x", "r": "b.x"}, ("a", "b"), Within(-5, 5))
    operator = GroupOperator(GroupPlan("groups", asked, Given(sides.schema)))
    operator.start()
    numbers = pa.array(range(ROWS), pa.int64())
    rows = pa.RecordBatch.from_arrays([numbers.cast(SCHEMA.types[0]), numbers, numbers], schema=SCHEMA)
    for side in range(2):
        operator.push(without_origin(sides.together(rows, side)))
        operator.take()
    (file,) = checkpoints.take(operator).file.parts
    assert file.size < 1.05 * 2 * ROWS * 4 * 8


def test_a_resumed_operator_does_not_write_its_rows_again() -> None:
    checkpoints, operator = Checkpoints(), opened()
    for pane in range(100):
        push(operator, pane)
    resumed = opened(checkpoints.stored(checkpoints.take(operator).file))
    assert not checkpoints.take(resumed).has_new
    push(resumed, 100)
    checkpoints.take(resumed)
    assert checkpoints.written[2] < 0.02 * checkpoints.written[0]


def test_what_was_not_committed_is_written_again() -> None:
    checkpoints, operator = Checkpoints(), opened()
    push(operator, 0)
    checkpoints.take(operator, is_committed=False)
    staged = checkpoints.take(operator)
    assert [file.name for file in staged.file.parts] == ["1-rows"]


def test_a_file_of_which_less_than_half_is_needed_is_written_anew() -> None:
    checkpoints, operator = Checkpoints(), opened()
    for pane in range(5):
        push(operator, pane)
    checkpoints.take(operator)
    operator.push_watermark(200)
    operator.take()
    assert [file.name for file in checkpoints.take(operator).file.parts] == ["0-rows"]
    operator.push_watermark(300)
    operator.take()
    staged = checkpoints.take(operator)
    assert [file.name for file in staged.file.parts] == ["2-rows"]
    assert counted(opened(checkpoints.stored(staged.file))) == {400: ROWS, 500: ROWS}


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=80, max_size=120))
def test_files_stay_few_and_rows_are_written_a_few_times(panes: list[int]) -> None:
    """The logarithm of the number of checkpoints, of both."""
    checkpoints, operator, pane = Checkpoints(), opened(), 0
    for number in panes:
        for _ in range(number):
            push(operator, pane, 300)
            pane += 1
        staged = checkpoints.take(operator)
        assert len(staged.file.parts) <= 4 * MOST_FILES
    whole = sum(file.size for file in staged.file.parts)
    heads = sum(len(data) for name, data in checkpoints.store.files.items() if "rows" not in name)
    assert sum(checkpoints.written) - heads < 5 * whole
    assert sum(counted(opened(checkpoints.stored(staged.file))).values()) == 300 * pane


def test_two_slices_with_the_same_rows_become_one() -> None:
    """Their files have the same bytes, and both count."""
    checkpoints, states = Checkpoints(), []
    for _ in range(2):
        operator = opened()
        push(operator, 0)
        states.append(checkpoints.stored(checkpoints.take(operator).file))
    assert states[0].parts[0][0] == states[1].parts[0][0]
    both = opened(*states)
    staged = checkpoints.take(both)
    assert counted(opened(checkpoints.stored(staged.file))) == {100: 2 * ROWS}


def test_damaged_parts_are_refused() -> None:
    checkpoints, operator = Checkpoints(), opened()
    push(operator, 0, 10)
    state = checkpoints.stored(checkpoints.take(operator).file)
    ((sha256, data),) = state.parts
    for parts in ((), ((sha256, data[:-40]),), ((sha256, b""),), ((sha256, data[:60]),)):
        with pytest.raises(InvalidArgument, match="the state is damaged"):
            opened(StoredState(state.head, parts))
