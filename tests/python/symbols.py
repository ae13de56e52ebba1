"""The symbols that a library exports."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

_OF_ENGINES = re.compile(
    r"_polars_plugin_\w+|daft_module_magic|sqlite3_extension_init|(lib)?\w+_init_c_api"
    r"|arroyo_udf_on_error_null"
)


def exported(library: str | Path) -> set[str]:
    """Without those of foreign engines, which every library has."""
    done = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
    found = {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines()}
    of_engines = {name for name in found if _OF_ENGINES.fullmatch(name)}
    assert {"_polars_plugin_get_version", "daft_module_magic", "sqlite3_extension_init"} <= of_engines, library
    return found - of_engines
