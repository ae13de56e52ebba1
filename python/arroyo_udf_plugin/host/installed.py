"""Plugins that are found by name: `load("geo")`.

    install(load("libgeo.so"))            copies it into the user's folder, with a manifest
    find("geo")                           InstalledPlugin(...): checked before it is believed
    search_path()                         $ARROYO_UDF_PLUGINS, the user's folder, those of the system

    FOLDER/geo/geo.json                   the manifest: hash, versions, functions
    FOLDER/geo/libgeo.so                  the library; libgeo.duckdb_extension, a link to it, for DuckDB

Guarantees: a plugin is loaded by name only if its library has the hash of the manifest, and if nobody but root and this
user can write to the library, the manifest, or the folders that contain them. An installation appears in one step.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from ..errors import InvalidArgument, LoadError

VARIABLE = "ARROYO_UDF_PLUGINS"
"""Folders to look into first, with colons between them."""
SYSTEM = (Path("/usr/local/share/arroyo-udf/plugins"), Path("/usr/share/arroyo-udf/plugins"))
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VERSION = 1
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclasses.dataclass(frozen=True)
class InstalledPlugin:
    """What is known of an installed plugin without opening its library."""

    folder: Path
    """Its own folder."""
    name: str
    sha256: str
    """Of the library's bytes."""
    language: str
    abi_version: int
    toolkit_version: str
    python: str | None
    """The version that runs it, such as "3.13"; None: it needs none."""
    functions: tuple[str, ...]

    @property
    def library(self) -> Path:
        return self.folder / f"lib{self.name}.so"

    @property
    def problem(self) -> str | None:
        """Why it is not loaded; None: it is as it was installed, and safe."""
        return _unsafe(self.folder, self.name) or _changed(self)


def search_path() -> list[Path]:
    """The folders of installed plugins; the first one that has a name counts."""
    named = [Path(folder) for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder]
    return [*named, user_folder(), *SYSTEM]


def user_folder() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "arroyo-udf" / "plugins"


def find(name: str) -> InstalledPlugin:
    """The installed plugin of this name. Raises LoadError if there is none, or one that must not be loaded."""
    for folder in search_path():
        if (folder / name / f"{name}.json").exists():
            manifest = _read(folder, name)
            if (problem := manifest.problem) is not None:
                raise LoadError(f"the plugin {name} is not loaded: {problem}")
            return manifest
    looked = ", ".join(map(str, search_path()))
    raise LoadError(f"no plugin {name!r} is installed (looked in {looked}): `arroyo-udf install` installs one")


def listed() -> Iterator[InstalledPlugin | str]:
    """All installed plugins, as `find` finds them; for one whose manifest cannot be read, why."""
    seen = set[str]()
    for folder in search_path():
        for file in sorted(folder.glob("*/*.json")):
            name = file.stem
            if file.parent.name != name or name in seen:
                continue
            seen.add(name)
            try:
                yield _read(folder, name)
            except LoadError as error:
                yield str(error)


class LoadedPlugin(Protocol):
    """A loaded plugin."""

    path: str
    name: str
    language: str
    abi_version: int
    toolkit_version: str

    @property
    def functions(self) -> Mapping[str, object]: ...


def install(plugin: LoadedPlugin, folder: Path | None = None) -> InstalledPlugin:
    """Copies a plugin, which replaces one of its name. folder: in which; None: the user's.

    Raises InvalidArgument: the folder cannot be written, or others can write there.
    """
    library = Path(plugin.path)
    into = user_folder() if folder is None else folder
    if NAME.fullmatch(plugin.name) is None:
        raise InvalidArgument(
            f"{library}: its name {plugin.name!r} is no name of a folder: build it from another source"
        )
    data = library.read_bytes()
    manifest = InstalledPlugin(
        into / plugin.name,
        plugin.name,
        hashlib.sha256(data).hexdigest(),
        plugin.language,
        plugin.abi_version,
        plugin.toolkit_version,
        f"{sys.version_info[0]}.{sys.version_info[1]}" if plugin.language == "python" else None,
        tuple(plugin.functions),
    )
    try:
        into.mkdir(mode=0o755, parents=True, exist_ok=True)
        if (problem := _open_to_others(into)) is not None:
            raise InvalidArgument(problem)
        with tempfile.TemporaryDirectory(prefix=".installing-", dir=into) as temporary:
            new = Path(temporary) / "new"
            new.mkdir(mode=0o755)
            (new / manifest.library.name).write_bytes(data)
            (new / manifest.library.name).chmod(0o755)
            (new / f"lib{plugin.name}.duckdb_extension").symlink_to(manifest.library.name)
            (new / f"{plugin.name}.json").write_text(_text(manifest), encoding="utf-8")
            (new / f"{plugin.name}.json").chmod(0o644)
            if manifest.folder.exists():
                manifest.folder.rename(Path(temporary) / "old")
            new.rename(manifest.folder)
    except OSError as error:
        raise InvalidArgument(f"{into} cannot be written: {error.strerror}: name another folder") from None
    return manifest


def uninstall(name: str) -> Path:
    """Removes the plugin that `find` would look at first. Returns its folder. Raises LoadError, InvalidArgument."""
    for folder in search_path():
        if (folder / name / f"{name}.json").exists():
            try:
                shutil.rmtree(folder / name)
            except OSError as error:
                raise InvalidArgument(f"{folder / name} cannot be removed: {error.strerror}") from None
            return folder / name
    raise LoadError(f"no plugin {name!r} is installed")


# ---- Manifests -------------------------------------------------------------------------------------------------------


def _text(manifest: InstalledPlugin) -> str:
    fields = {name: value for name, value in dataclasses.asdict(manifest).items() if name != "folder"}
    return json.dumps({"version": _VERSION, **fields}, indent=2) + "\n"


def _read(folder: Path, name: str) -> InstalledPlugin:
    """Raises LoadError for a manifest that is none."""
    file = folder / name / f"{name}.json"
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(data, dict) or data.get("version") != _VERSION:
            raise ValueError("it is of another version of arroyo_udf_plugin")
        manifest = InstalledPlugin(
            folder / name,
            _typed(data, "name", str),
            _typed(data, "sha256", str),
            _typed(data, "language", str),
            _typed(data, "abi_version", int),
            _typed(data, "toolkit_version", str),
            None if data.get("python") is None else _typed(data, "python", str),
            tuple(map(str, _typed(data, "functions", list))),
        )
        if manifest.name != name:
            raise ValueError(f"its name is {manifest.name!r}")
    except (OSError, ValueError) as error:
        raise LoadError(f"{file} is no manifest: {error}: install the plugin again") from None
    return manifest


def _typed(data: dict[str, Any], key: str, kind: type[Any]) -> Any:
    if not isinstance(data.get(key), kind):
        raise ValueError(f"{key} is not there, or of another type")
    return data[key]


def _unsafe(folder: Path, name: str) -> str | None:
    """Of an installed plugin: who else could have changed it."""
    for path in (folder.parent, folder, folder / f"{name}.json", folder / f"lib{name}.so"):
        if (problem := _open_to_others(path)) is not None:
            return problem
    return None


def _open_to_others(path: Path) -> str | None:
    try:
        status = path.stat()
    except OSError as error:
        return f"{path}: {error.strerror}: install it again"
    if status.st_uid not in (0, os.geteuid()):
        return f"{path} is of another user: install the plugin in a folder of your own"
    if status.st_mode & _OTHERS_WRITE:
        return f"others can write to {path}: chmod go-w {path}"
    return None


def _changed(manifest: InstalledPlugin) -> str | None:
    try:
        with manifest.library.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"{manifest.library}: {error.strerror}: install it again"
    if sha256 != manifest.sha256:
        return f"{manifest.library} is not the library that was installed: its hash differs; install it again"
    return None
