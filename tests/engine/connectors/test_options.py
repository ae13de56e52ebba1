"""The options of the command line for inputs and outputs."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from arroyo_udf_plugin.cli.files import input_options, output_options
from arroyo_udf_plugin.engine.connectors.options import Reading, Writing


def given(*arguments: str) -> dict[str, Any]:
    got: dict[str, Any] = {}

    @click.command()
    @input_options
    @output_options
    def command(**values: Any) -> None:
        got.update(values)

    done = CliRunner().invoke(command, arguments, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return got


def test_defaults() -> None:
    assert given("a.csv", "-", "--out", "b.csv") == {
        "inputs": ("a.csv", "-"),
        "reading": Reading(),
        "target": "b.csv",
        "writing": Writing(),
    }


def test_every_option_arrives() -> None:
    options = (
        "--in-format tsv --types zip=str,amount=decimal(10,2) --types at=timestamp[us,UTC] --schema s.parquet "
        '--null-values ,-,null --select a,"b,c" --delimiter ; --quote \' --no-header --limit 5 '
        "--out-format parquet --compression zstd --row-group-rows 9 --force --out -"
    )
    got = given("x", *options.split(" "))
    assert got["reading"] == Reading(
        format="tsv",
        types={"zip": "str", "amount": "decimal(10,2)", "at": "timestamp[us,UTC]"},
        schema="s.parquet",
        null_values=("", "-", "null"),
        delimiter=";",
        quote="'",
        header=False,
        limit=5,
    )
    assert got["writing"] == Writing(
        format="parquet",
        compression="zstd",
        row_group_rows=9,
        columns=("a", "b,c"),
        force=True,
        null_values=("", "-", "null"),
        delimiter=";",
        quote="'",
        header=False,
    )


def test_a_tab_can_be_written() -> None:
    assert given("x", "--out", "y", "--delimiter", r"\t")["reading"].delimiter == "\t"


@pytest.mark.parametrize("pair", ["zip", "zip=", "=str", "a=int,"])
def test_types_that_are_no_pairs(pair: str) -> None:
    with pytest.raises(click.UsageError, match=r"--types .*: write NAME=TYPE, such as zip=str"):
        given("x", "--out", "y", "--types", pair)


def test_null_values_with_a_line_end() -> None:
    with pytest.raises(click.UsageError, match=r"^--null-values 'a\\nb': new-line character"):
        given("x", "--out", "y", "--null-values", "a\nb")


def test_spaces_between_selected_columns_are_no_part_of_their_names() -> None:
    """As with --args."""
    assert given("x", "--out", "y", "--select", 'a, inv , "b "')["writing"].columns == ("a", "inv", "b ")
