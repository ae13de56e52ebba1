"""Functions of installed packages, which queries call by name. A package names them in its pyproject.toml:

    [project.entry-points."arroyo_udf_plugin.functions"]
    mph = "speeds.plane:mph"           a function of a module, which is built as any source is
    knots = "speeds:libknots.so"       a function of a file of a package: a plugin, or a source

Guarantees: nothing of a package is imported, built or loaded to find its functions.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import InvalidArgument

GROUP = "arroyo_udf_plugin.functions"
_ENDINGS = (".so", ".py", ".rs", ".c")


@dataclass(frozen=True)
class Installed:
    """name: as queries write it. value: of the entry point. package: with its version, as in "speeds 1.0"."""

    name: str
    value: str
    package: str

    @property
    def function(self) -> str:
        """Its name in the plugin."""
        attribute = self.value.partition(":")[2].strip()
        return self.name if attribute.endswith(_ENDINGS) else attribute

    @property
    def file(self) -> Path:
        """The plugin or source. Raises InvalidArgument."""
        module, colon, attribute = (part.strip() for part in self.value.partition(":"))
        if not colon or not attribute:
            raise InvalidArgument('write "module:function", or "package:libname.so", in the entry point')
        folders = _folders_of(module) if attribute.endswith(_ENDINGS) else None
        files = _files_of(module) if folders is None else [folder / attribute for folder in folders]
        for file in files:
            if file.is_file():
                return file
        what = f"module {module}" if folders is None else f"{attribute} in the package {module}"
        raise InvalidArgument(f"there is no {what}: install the package again")

    @property
    def problem(self) -> str | None:
        """Why its file is not found."""
        try:
            _ = self.file
        except InvalidArgument as error:
            return str(error)
        return None

    def __str__(self) -> str:
        return f"the function {self.name} of the package {self.package} ({self.value})"


def installed() -> Mapping[str, list[Installed]]:
    """By name in lower case. Several packages may have functions of one name."""
    functions: dict[str, list[Installed]] = {}
    for point in importlib.metadata.entry_points(group=GROUP):
        package = "?" if point.dist is None else f"{point.dist.name} {point.dist.version}"
        functions.setdefault(point.name.lower(), []).append(Installed(point.name, point.value, package))
    return dict(sorted(functions.items()))


def _folders_of(package: str) -> list[Path]:
    """Of a package; of those around it nothing is imported, because `find_spec` is asked for the first one only."""
    first, *rest = package.split(".")
    try:
        spec = importlib.util.find_spec(first)
    except (ImportError, ValueError):
        spec = None
    locations = [] if spec is None else spec.submodule_search_locations or []
    return [Path(location, *rest) for location in locations]


def _files_of(module: str) -> list[Path]:
    """Where a module may be."""
    package, _, last = module.rpartition(".")
    if package:
        return [file for folder in _folders_of(package) for file in _files_in(folder, last)]
    inner = [folder / "__init__.py" for folder in _folders_of(module)]
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    return inner or ([] if spec is None or spec.origin is None else [Path(spec.origin)])


def _files_in(folder: Path, module: str) -> list[Path]:
    return [folder / f"{module}.py", folder / module / "__init__.py"]
