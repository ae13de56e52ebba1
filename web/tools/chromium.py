"""A Chromium for the tests of the web page.

    path, environment = chromium.found()

It is an installed one, else Debian's package, downloaded with the libraries that are missing and unpacked below build/,
not installed.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts"))

import debian  # noqa: E402 (beside the other scripts)

UNPACKED = ROOT / "build" / "chromium"
NAMES = ("chromium", "chromium-browser", "google-chrome")
HOW_TO_GET_IT = "install it (Debian: apt-get install chromium)"


class NoChromium(Exception):
    """There is none here. The text says why, and how to get one."""


def found() -> tuple[str, dict[str, str]]:
    """The program, and the variables that it needs. Raises NoChromium."""
    for name in NAMES:
        if installed := shutil.which(name):
            return installed, {}
    program = UNPACKED / "usr" / "lib" / "chromium" / "chromium"
    if not program.exists():
        try:
            debian.unpack(UNPACKED, packages)
        except debian.Missing as error:
            raise NoChromium(f"there is no Chromium, and {error}: {HOW_TO_GET_IT}") from None
    # Some have a folder of their own, which the system's loader would know.
    libraries = sorted({str(file.parent) for file in (UNPACKED / "usr" / "lib").glob("*-linux-gnu*/**/*.so*")})
    return str(program), {
        "LD_LIBRARY_PATH": os.pathsep.join(libraries),
        "FONTCONFIG_PATH": str(UNPACKED / "etc" / "fonts"),
        "XDG_DATA_DIRS": f"{UNPACKED / 'usr' / 'share'}:/usr/share",
    }


def packages(apt: debian.Apt) -> list[str]:
    """Chromium with its data, a font, and those of their libraries that are not installed."""
    wanted = ["chromium", "chromium-common", "fonts-dejavu-core"]
    plan = apt("apt-get", "--simulate", "--no-install-recommends", "install", *wanted)
    return [*wanted, *sorted(set(re.findall(r"^Inst (\S+)", plan, re.MULTILINE)) - set(wanted))]
