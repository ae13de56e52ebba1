"""The documents beside the README are right: links, tables, Rust, rules; and so are maps and names in the package."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import build, load

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
DOCUMENTS = sorted(DOCS.rglob("*.md"))
ARROYO = (DOCS / "arroyo.md").read_text()
RUST = re.findall(r"^ *```rust\n(.*?)^ *```$", ARROYO, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The functions of all Rust in docs/arroyo.md, built, by name."""
    found: dict[str, object] = {}
    for number, text in enumerate(RUST):
        source = tmp_path_factory.mktemp("docs") / f"block_{number}.rs"
        source.write_text(text)
        found |= load(build(source)).functions
    return found


@pytest.mark.arroyo
def test_its_rust_builds_and_is_what_the_text_says(functions: dict[str, object]) -> None:
    assert [repr(function) for function in functions.values()] == [
        "<async function user_name(_id: int64) -> string>",
        "<sync function digits(text: string) -> int64>",
    ]
    digits = functions["digits"]
    assert callable(digits)
    assert digits(pa.array(["a1b22", None, ""])).to_pylist() == [3, None, 0]


def _anchors(document: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", document.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", document.read_text()):
        path, _, anchor = target.partition("#")
        linked = document.parent / path if path else document
        assert linked.exists(), target
        assert anchor == "" or anchor in _anchors(linked), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_tables_have_their_columns(document: Path) -> None:
    for table in re.findall(r"(?:^\|.*\|\n)+", document.read_text(), re.M):
        widths = {len(row.replace(r"\|", "").strip("|\n").split("|")) for row in table.splitlines()}
        assert len(widths) == 1, table


def test_the_pictures_of_benchmarks_are_those_of_their_tables() -> None:
    bench = ROOT / "bench"
    pictures = runpy.run_path(str(bench / "picture.py"))["pictures"]((bench / "README.md").read_text())
    assert len(pictures) == 3
    for name, drawn in pictures.items():
        assert drawn.count("<rect") >= 12
        assert (bench / name).read_text() == drawn, "python3 bench/picture.py draws it anew"


def test_every_rule_that_the_code_cites_exists() -> None:
    """R7, F3, O2, D1, I3 and the like; `-O2` is a compiler's, "D01" a value, `I64` a type."""
    rules = set(re.findall(r"^\*\*([A-Z]\d+a?)\b", (DOCS / "semantics.md").read_text(), re.M))
    sources = [path for suffix in ("c", "h", "py", "rs") for path in _sources(suffix)]
    cited = {
        (rule, path) for path in sources for rule in re.findall(r"(?<![-\x22])\b[FRODI]\d{1,2}a?\b", path.read_text())
    }
    assert len({rule for rule, _ in cited}) > 20
    types = {f"I{bits}" for bits in (8, 16, 32, 64)}
    assert {(rule, path) for rule, path in cited if rule not in rules | types} == set()


def _sources(suffix: str) -> list[Path]:
    folders = ("bench", "examples", "native", "python", "scripts", "tests")
    built = {"_sdk", "target"}
    return [path for name in folders for path in (ROOT / name).rglob(f"*.{suffix}") if not built & set(path.parts)]


PACKAGE = ROOT / "python" / "arroyo_udf_plugin"
ROOMS = sorted(
    path.parent for path in PACKAGE.rglob("__init__.py") if not {"_sdk", "templates", "__pycache__"} & set(path.parts)
)
SCHEMAS = PACKAGE / "cluster" / "api" / "shapes"
"""The REST API's schemas have Arroyo's names, whatever those mean elsewhere."""


def test_a_public_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if not {"_sdk", "templates"} & set(path.parts) and path.parent != SCHEMAS:
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert len(places) > 400
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(room.relative_to(PACKAGE.parent)))
def test_the_map_of_a_room_names_its_files_and_rooms(room: Path) -> None:
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
    files = {path.name for path in room.glob("*.py")} - {"__init__.py", "__main__.py", "_cdef.py"}
    rooms = {f"{path.name}/" for path in room.iterdir() if path in ROOMS}
    assert {name for name in files | rooms if name not in text} == set()
    named = set(re.findall(r"^ *(\w+\.py) {2,}", text, re.M))
    assert {name for name in named if not (room / name).exists()} == set()
