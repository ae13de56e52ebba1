"""Where a build puts the library: beside its source, under a name that no `import` finds, and never over another's."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import BuildError, build, load

SOURCE = "from arroyo_udf_plugin import udf\n\n@udf(native=False)\ndef twice(x: int) -> int:\n    return 2 * x\n"
IN_RUST = "use arroyo_udf_plugin::udf;\n#[udf]\nfn twice(x: i64) -> i64 { 2 * x }\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sources with the names of a module of Python and of a test's module, built."""
    folder = tmp_path_factory.mktemp("names")
    for name in ("json.py", "mine.py"):
        (folder / name).write_text(SOURCE)
        assert build(folder / name) == folder / f"lib{Path(name).stem}.so"
    (folder / "test_mine.py").write_text("import mine\n\ndef test_it() -> None:\n    assert mine.twice(2) == 4\n")
    return folder


def test_a_build_of_json_does_not_break_python_in_its_folder(folder: Path) -> None:
    code = "import json; print(json.__file__, json.twice(2))"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.stdout.split() == [str(folder / "json.py"), "4"], done.stderr


def test_pytest_imports_the_source_beside_its_library(folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    (folder / "json.py").rename(folder / "kept")
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    finally:
        (folder / "kept").rename(folder / "json.py")
    assert done.returncode == 0, done.stdout


def test_a_build_does_not_replace_the_library_of_another_source(folder: Path) -> None:
    """Sources in Python, Rust and C may share a stem, and so a library's default name."""
    library = folder / "libmine.so"
    before = library.read_bytes()
    (folder / "mine.rs").write_text(IN_RUST)
    with pytest.raises(BuildError, match=r"mine\.rs: libmine\.so exists and was built from mine\.py: .* -o"):
        build(folder / "mine.rs")
    assert library.read_bytes() == before
    build(folder / "mine.py")  # its own
    build(folder / "mine.rs", folder / "in_rust.so")
    assert load(folder / "in_rust.so").language == "rust"
    build(folder / "mine.rs", library)  # chosen
    with pytest.raises(BuildError, match=r"libmine\.so exists and was built from mine\.rs"):
        build(folder / "mine.py")


def test_a_build_does_not_replace_a_foreign_library(tmp_path: Path) -> None:
    (tmp_path / "ssl.py").write_text(SOURCE)
    (tmp_path / "libssl.so").write_bytes(b"\x7fELF something else")
    with pytest.raises(BuildError, match=r"libssl\.so exists and is no library of arroyo-udf build"):
        build(tmp_path / "ssl.py")
    assert (tmp_path / "libssl.so").read_bytes() == b"\x7fELF something else"


def test_a_library_that_was_built_again_is_loaded_anew(folder: Path) -> None:
    """As in a notebook: the same path, another function. Both stay callable."""
    source, path = folder / "again.py", folder / "libagain.so"
    loaded = []
    for factor in (2, 3, 4):
        source.write_text(SOURCE.replace("2 * x", f"{factor} * x"))
        loaded.append(load(build(source)))
        assert loaded[-1].path == str(path)
    assert load(path).hash == loaded[2].hash
    assert [plugin.functions["twice"](pa.array([1])).to_pylist() for plugin in loaded] == [[2], [3], [4]]
