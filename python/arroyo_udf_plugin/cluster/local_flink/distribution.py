"""The Flink that a Python has: `pip install apache-flink` brings the whole distribution, but no Java."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ...errors import InvalidArgument

_PROBE = """
import importlib.util, json
found = [importlib.util.find_spec(name) for name in ("pyflink", "arroyo_udf_plugin")]
print(json.dumps([spec and spec.submodule_search_locations[0] for spec in found]))
"""
_WANTED = (
    "pip install apache-flink==2.3.0, then pip install 'arroyo_udf_plugin[engine]', in a Python 3.11 or 3.12, and name "
    "it with --python"
)


@dataclass(frozen=True)
class Distribution:
    """python: as it was named, for a virtual environment is found by its path. runner: what jobs are submitted with."""

    python: Path
    home: Path
    python_jar: Path
    runner: Path

    @classmethod
    def of(cls, python: Path) -> Distribution:
        """Raises InvalidArgument: there is no Flink or no Java, and what to install."""
        home, package = _places(python)
        jars = [*home.glob("opt/flink-python-*.jar")]
        if len(jars) != 1 or not (home / "bin" / "jobmanager.sh").exists():
            raise InvalidArgument(f"{home} is not the whole of Flink: {_WANTED}")
        _check_java()
        return cls(python, home, jars[0], package / "engine" / "flink" / "runner.py")


def _places(python: Path) -> tuple[Path, Path]:
    try:
        done = subprocess.run([python, "-c", _PROBE], capture_output=True, text=True, check=True, cwd="/")
        flink, package = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        raise InvalidArgument(f"{python} is no Python that works: {error}") from None
    for name, place in (("pyflink", flink), ("arroyo_udf_plugin", package)):
        if place is None:
            raise InvalidArgument(f"{python} has no {name}: {_WANTED}")
    return Path(flink), Path(package)


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java" if home is None else f"{home}/bin/java") is None:
        where = "" if home is None else f" (JAVA_HOME is {home})"
        raise InvalidArgument(
            f"java is missing{where}: install openjdk-17-jre-headless (Debian, Ubuntu) or "
            "java-17-openjdk-headless (Fedora)"
        )
