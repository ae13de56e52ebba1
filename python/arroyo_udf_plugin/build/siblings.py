"""The modules that a Python source imports from its own folder. Its plugin carries them, because a plugin is one file.

As in a script, a module of the folder comes before an installed one of the same name; but modules of Python itself come
first. Of a package all files ending in .py are carried, and nothing else of it.

Guarantees: reads the text only and runs nothing, so an import in a function counts too.
"""

import ast
import sys
from pathlib import Path

from ..errors import BuildError
from ..plugin.module import Parcel

_NOT_CARRIED = {*sys.stdlib_module_names, "arroyo_udf_plugin"}


def parcel(source: Path, text: str, folder: Path) -> Parcel:
    """A source with the modules of `folder` that it imports, and those that they import. Raises BuildError: one of
    them cannot be read."""
    modules: dict[str, tuple[str, str]] = {}
    left = [text]
    while left:
        for name in _imported(left.pop()) - modules.keys() - _NOT_CARRIED:
            for module, file in _files(folder, name).items():
                modules[module] = (file.relative_to(folder).as_posix(), _read(file, source))
                left.append(modules[module][1])
    return Parcel(text, dict(sorted(modules.items())))


def _imported(text: str) -> set[str]:
    """The first words of the absolute imports of a text; none if it is not Python, which its execution will tell."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return set()
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0}
    return {name.partition(".")[0] for name in names}


def _files(folder: Path, name: str) -> dict[str, Path]:
    """The files of a module or package of the folder; none if there is no such one, or if parts of it are compiled."""
    package = folder / name
    if (package / "__init__.py").is_file():
        if any(package.rglob("*.so")):
            return {}
        files = sorted(package.rglob("*.py"))
        return {_module(folder, file): file for file in files}
    file = folder / f"{name}.py"
    return {name: file} if file.is_file() else {}


def _module(folder: Path, file: Path) -> str:
    parts = file.relative_to(folder).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _read(file: Path, source: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except (UnicodeDecodeError, OSError) as error:
        raise BuildError(f"imports {file.name}, which cannot be read: {error}", str(source)) from None
