"""A definition as a plugin, in a child process."""

from __future__ import annotations

import re
from pathlib import Path

from ...build import build
from ...errors import ArroyoUdfError, BuildError
from ...host.library import load
from .messages import Build, Built

_ENDINGS = {"python": ".py", "rust": ".rs", "c": ".c"}
_NAMES = {
    "python": re.compile(r"^\s*@udf\b.*?\bdef\s+([A-Za-z_]\w*)", re.DOTALL | re.MULTILINE),
    "rust": re.compile(r"#\[udf\b.*?\bfn\s+([A-Za-z_]\w*)", re.DOTALL),
    "c": re.compile(r"\bARROYO_UDF_PLUGIN\(\s*([A-Za-z_]\w*)"),
}
_FOREIGN = re.compile(r"^(\s*)(from|import)(\s+)arroyo_udf(?!\w)", re.MULTILINE)


def built(asked: Build) -> Built:
    """Builds it in the current folder. What is wrong with the definition is in the answer."""
    match = _NAMES[asked.language].search(asked.definition)
    source = Path(f"{match[1] if match else 'udf'}{_ENDINGS[asked.language]}").resolve()
    source.write_text(_own(asked), "utf-8")
    try:
        library = build(source, Path(asked.out) / f"lib{source.stem}.so")
        with load(library) as plugin:
            names = list(plugin.functions)
            if len(names) != 1:
                raise BuildError(f"has the functions {', '.join(names)}: write one in each definition", str(source))
            function = plugin.functions[names[0]]
            arguments = ", ".join(f"{field.name}: {field.type}" for field in function.arguments)
            return Built(name=names[0], signature=f"{names[0]}({arguments}) -> {function.returns}")
    except ArroyoUdfError as error:
        return Built(errors=[str(error).replace(f"{source.parent}/", "")])


def _own(asked: Build) -> str:
    """Python definitions for Arroyo import its module; ours has the same name for the decorator."""
    if asked.language != "python":
        return asked.definition
    return _FOREIGN.sub(r"\1\2\3arroyo_udf_plugin", asked.definition)
