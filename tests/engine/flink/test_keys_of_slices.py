"""Keys that spread slices evenly over Flink's subtasks."""

from __future__ import annotations

import pytest

from arroyo_udf_plugin.engine.flink.keys import key_group, keys_of_slices


def test_flink_puts_keys_into_these_key_groups() -> None:
    """As KeyGroupRangeAssignment.assignToKeyGroup of Flink 2.3 answers for Row.of(0), Row.of(1), ... and 8 groups."""
    assert [key_group(key, 8) for key in range(12)] == [1, 4, 1, 0, 1, 1, 5, 1, 0, 7, 5, 5]


@pytest.mark.parametrize("width", [1, 2, 3, 8, 128])
def test_each_slice_has_a_key_group_of_its_own(width: int) -> None:
    assert [key_group(key, width) for key in keys_of_slices(width)] == list(range(width))
