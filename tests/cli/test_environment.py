"""scripts/environment.py finds Pythons by executing them, and names missing parts."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "environment.py"
THIS = "{}.{}".format(*sys.version_info)


@pytest.fixture
def environment() -> ModuleType:
    spec = importlib.util.spec_from_file_location("environment", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder as PATH, without pyenv and without a version chosen by a variable."""
    for variable in ("PYENV_ROOT", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "nowhere"))
    monkeypatch.delenv("PYTHON" + THIS.replace(".", ""), raising=False)
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_broken_shim_is_skipped(environment: ModuleType, bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(bin_folder / f"python{THIS}", "echo 'pyenv: command not found' >&2; exit 127")
    assert environment.find(THIS) is None
    pyenv = bin_folder.parent / "pyenv"
    script(pyenv / "versions" / f"{THIS}.0" / "bin" / "python", f'exec "{sys.executable}" "$@"')
    monkeypatch.setenv("PYENV_ROOT", str(pyenv))
    assert environment.find(THIS)["version"] == THIS


def test_a_name_is_not_trusted(environment: ModuleType, bin_folder: Path) -> None:
    script(bin_folder / "python3.99", f'exec "{sys.executable}" "$@"')
    assert environment.find("3.99") is None


def test_the_variable_comes_first(environment: ModuleType, bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(bin_folder / "mine", f'exec "{sys.executable}" "$@"')
    monkeypatch.setenv("PYTHON" + THIS.replace(".", ""), str(bin_folder / "mine"))
    assert environment.candidates(THIS)[0] == str(bin_folder / "mine")
    assert environment.find(THIS)["version"] == THIS


def test_missing_parts_of_a_python_are_named(environment: ModuleType) -> None:
    lacking = {"version": "3.13", "header": False, "shared": False, "venv": False}
    texts = environment.lacks(lacking)
    assert [text.split(":")[0] for text in texts] == [
        "Python.h",
        "a shared libpython3.13",
        "the modules venv and ensurepip",
    ]
    assert all("install" in text for text in texts)


def test_missing_tools_are_named(
    environment: ModuleType, bin_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(SystemExit) as stop:
        environment.check_tools()
    assert stop.value.code == 1
    text = capsys.readouterr().err
    assert "cargo: install Rust" in text
    assert "a C compiler" in text


def test_a_missing_version(
    environment: ModuleType, bin_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["environment.py", "3.99"])
    with pytest.raises(SystemExit) as stop:
        environment.main()
    assert stop.value.code == 3
    assert "no Python 3.99 runs here: install it, or name it in $PYTHON399" in capsys.readouterr().err
