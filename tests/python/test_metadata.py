"""What a function says of itself for engines: its documentation and its volatility."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from arroyo_udf_plugin import build, load

PYTHON = '''
from arroyo_udf_plugin import udf

@udf(volatility="stable")
def rate(x: int) -> int:
    """Converts with today's rate.

    And "quotes", ümlauts.
    """
    return x

@udf(volatility="volatile")
async def later(x: int) -> int:
    return x

@udf(native=False)
def plain(x: int) -> int:
    return x
'''
RATE = 'Converts with today\'s rate.\n\nAnd "quotes", ümlauts.'
RUST = """
use arroyo_udf_plugin::udf;

/// Converts with today's rate.
///
/// And "quotes", ümlauts.
#[udf(volatility = "stable")]
fn rate(x: i64) -> i64 { x }

#[udf(volatility = "volatile")]
async fn later(x: i64) -> i64 { x }

#[udf]
fn plain(x: i64) -> i64 { x }
"""
C = r"""
#include "arroyo_udf_async.h"
static const char* rate(int64_t x, int64_t* out) {
  *out = x;
  return NULL;
}
ARROYO_UDF_DESCRIBED_FUNCTION(rate, "Converts with today's rate.\n\nAnd \"quotes\", ümlauts.", ARROYO_UDF_STABLE,
                              int64, (int64, x));
static void later(const arroyo_udf_call* call, int64_t x) { arroyo_udf_complete_int64(call->token, x); }
ARROYO_UDF_DESCRIBED_ASYNC_FUNCTION(later, NULL, ARROYO_UDF_VOLATILE, (), int64, (int64, x));
static const char* plain(int64_t x, int64_t* out) { return rate(x, out); }
ARROYO_UDF_FUNCTION(plain, int64, (int64, x));
ARROYO_UDF_PLUGIN(rate, later, plain);
"""


def said(path: Path) -> dict[str, tuple[str, str | None]]:
    return {one.name: (one.documentation, one.volatility) for one in load(path).functions.values()}


EXPECTED = {"rate": (RATE, "stable"), "later": ("", "volatile"), "plain": ("", None)}


def test_in_python(build_plugin: Callable[..., Path]) -> None:
    assert said(build_plugin(PYTHON)) == EXPECTED


def test_in_rust(tmp_path: Path) -> None:
    (tmp_path / "one.rs").write_text(RUST)
    assert said(build(tmp_path / "one.rs")) == EXPECTED


def test_in_c(tmp_path: Path) -> None:
    (tmp_path / "one.c").write_text(C)
    assert said(build(tmp_path / "one.c")) == EXPECTED


def test_written_by_hand(tmp_path: Path) -> None:
    source = Path(__file__).parents[2] / "examples" / "by_hand" / "udf.c"
    path = build(source, tmp_path / "by_hand.so")
    assert said(path) == {"kilometres": ("Converts miles to kilometres.", "immutable")}
    command = [str(Path(sys.executable).parent / "arroyo-udf"), "inspect", str(path)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "    sync, immutable\n    Converts miles to kilometres.\n" in shown


def test_notebooks_show_functions_as_a_table(build_plugin: Callable[..., Path]) -> None:
    source = '''
from arroyo_udf_plugin import udf

@udf(native=False)
def ratio(a: int, b: int | None) -> float | None:
    """a / b, if a < b.

    More."""
    return a / b if b else None
'''
    plugin = load(build_plugin(source, name="shown"))
    assert "<caption>python plugin shown</caption>" in plugin._repr_html_()
    cells = ["ratio", "sync", "a: int64, b: int64 or null", "double or null", "a / b, if a &lt; b."]
    row = f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    assert row in plugin._repr_html_()
    assert row in plugin.functions["ratio"]._repr_html_()
