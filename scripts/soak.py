"""Looks for growth over a million calls, a tenth of which fails and a tenth times out, and a thousand starts and stops.

    python scripts/soak.py        with the Python of an environment in which the package is installed

Functions in Python and in Rust; tests/python/leaks.py says what is called and what must not grow. Takes a few minutes.
Exits with status 1 if something grows.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from arroyo_udf_plugin import build

PROGRAM = Path(__file__).resolve().parents[1] / "tests" / "python" / "leaks.py"


def main() -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for language, suffix in (("Python", ".py"), ("Rust", ".rs")):
            print(f"a million calls of functions in {language}", flush=True)
            plugin = build(PROGRAM.with_name(f"leaks_udf{suffix}"), Path(folder) / f"leaks_{language}.so")
            failed += subprocess.run([sys.executable, PROGRAM, plugin, "1000000", "1000"], check=False).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
