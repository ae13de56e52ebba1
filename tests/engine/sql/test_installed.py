"""Functions of installed packages: found by their entry points, and resolved when a query calls them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import packages
import pytest
from sql_world import run

from arroyo_udf_plugin.engine.planner.installed import installed
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.engine.planner.text import InvalidQuery

pytestmark = pytest.mark.usefixtures("folder")

DOCS = Path(__file__).resolve().parents[3] / "docs" / "sql.md"
GROUP = "arroyo_udf_plugin.functions"
SPEEDS = """
from arroyo_udf_plugin import udf

@udf
def mph(miles: int, minutes: int) -> float:
    return miles * 60 / minutes

@udf
def upper(n: int) -> int:
    return n
"""
QUERY = "SELECT id, mph(id, 30) AS speed FROM flights WHERE id < 2"
RESULT = {"rows (id, speed)": ["[0, 0.0]", "[1, 2.0]"]}


def install(name: str, points: Mapping[str, str], files: Mapping[str, str] | None = None) -> None:
    """In a folder of sys.path."""
    packages.install(Path("site"), name, {GROUP: points}, files or {})


@pytest.fixture(autouse=True)
def site(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "site").mkdir()
    monkeypatch.syspath_prepend(folder / "site")


def refusal(text: str) -> str:
    with pytest.raises(InvalidQuery) as error:
        run(text, ())
    return str(error.value).partition(":")[2]


@pytest.mark.parametrize("name", ["mph", "FASTER"])
def test_a_function_of_a_package(name: str) -> None:
    """Of a package that cannot be imported."""
    files = {"speeds/__init__.py": "raise SystemExit", "speeds/plane.py": SPEEDS}
    install("speeds", {"mph": "speeds.plane:mph", "Faster": "speeds.plane:mph"}, files)
    assert run(QUERY.replace("mph", name), ()) == RESULT


def test_a_plugin_of_a_package() -> None:
    install("speeds", {"twice": "speeds:functions.so"}, {"speeds/__init__.py": ""})
    os.symlink(Path("functions.so").resolve(), "site/speeds/functions.so")
    text = "SELECT twice(id) AS n FROM flights WHERE id = 3"
    assert run(text, ()) == {"rows (n)": ["[6]"]}


def test_a_package_of_one_file() -> None:
    install("speeds", {"mph": "speeds:mph"}, {"speeds.py": SPEEDS})
    assert run(QUERY, ()) == RESULT


def test_only_what_is_called_is_looked_at() -> None:
    install("broken", {"gone": "nowhere.plane:gone", "wrong": "speeds"})
    assert run("SELECT id FROM flights WHERE id = 3", ()) == {"rows (id)": ["[3]"]}


def test_no_package_changes_what_datafusion_has() -> None:
    install("speeds", {"upper": "speeds:upper"}, {"speeds.py": SPEEDS})
    assert run("SELECT upper('nine') AS t FROM flights WHERE id = 1", ()) == {"rows (t)": ['["NINE"]']}


def test_a_file_comes_before_a_package() -> None:
    install("speeds", {"twice": "nowhere:twice"})
    assert run("SELECT twice(id) AS n FROM flights WHERE id = 3", ("functions.so",)) == {"rows (n)": ["[6]"]}


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("nowhere.plane:mph", "there is no module nowhere.plane: install the package again"),
        ("nowhere:mph", "there is no module nowhere: install the package again"),
        ("speeds:mph.so", "there is no mph.so in the package speeds: install the package again"),
        ("speeds", 'write "module:function", or "package:libname.so", in the entry point'),
        ("speeds:mhp", r"/\S+/speeds/__init__.py has no function mhp: write 'mph'"),
        ("speeds.broken:mph", r"\S+broken.py.*annotat.*"),
    ],
)
def test_errors_name_the_package_and_the_place(value: str, error: str) -> None:
    broken = "from arroyo_udf_plugin import udf\n\n@udf\ndef mph(a, b):\n    return a\n"
    install("speeds", {"mph": value}, {"speeds/__init__.py": SPEEDS, "speeds/broken.py": broken})
    told = refusal(f"\n{QUERY}")
    assert re.fullmatch(rf"3:12: the function mph of the package speeds 1.0 \({value}\): {error}", told, re.DOTALL)


def test_two_packages_with_one_name() -> None:
    install("speeds", {"mph": "speeds:mph"}, {"speeds.py": SPEEDS})
    install("others", {"MPH": "speeds:mph"})
    assert re.fullmatch(
        r"2:12: several packages have a function mph, .*others 1.0 \(speeds:mph\).*: name the file with --udf",
        refusal(QUERY),
        re.IGNORECASE,
    )


def test_an_unknown_function_may_be_one_of_a_package() -> None:
    install("speeds", {"velocity": "speeds:mph"}, {"speeds.py": SPEEDS})
    assert refusal("SELECT velocty(id, 30) FROM flights") == "2:8: there is no function velocty: write 'velocity'"


def test_the_example_of_the_guide() -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```$", DOCS.read_text(), re.DOTALL | re.MULTILINE)
    project = tomllib.loads(text)["project"]
    install(project["name"], project["entry-points"][GROUP], {"speeds/plane.py": SPEEDS})
    (knots, mph) = (one for several in installed().values() for one in several)
    assert (mph.file, mph.function) == (Path.cwd() / "site/speeds/plane.py", "mph")
    assert (knots.problem, knots.function) == (
        "there is no libknots.so in the package speeds: install the package again",
        "knots",
    )
    Script("query.sql", f"CREATE TABLE flights WITH (connector = 'filesystem', path = 'flights'); {QUERY}")


def test_inspect_lists_them() -> None:
    def listed(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "arroyo_udf_plugin.cli", "inspect", *words]
        path = os.pathsep.join(["site", os.environ.get("PYTHONPATH", "")])
        return subprocess.run(
            command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
        )

    assert f"entry points of the group {GROUP}" in listed().stderr
    install("speeds", {"mph": "speeds:mph", "slow": "nowhere:mph"}, {"speeds.py": SPEEDS})
    assert listed().stdout.splitlines() == [
        "mph   speeds 1.0  speeds:mph",
        "slow  speeds 1.0  nowhere:mph  there is no module nowhere: install the package again",
    ]
    assert json.loads(listed("--json").stdout)[0] == {
        "name": "mph",
        "package": "speeds 1.0",
        "entry_point": "speeds:mph",
        "problem": None,
    }
