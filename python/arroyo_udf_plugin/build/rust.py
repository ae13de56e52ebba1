"""Builds a Rust plugin: a small cargo project around the author's file and the SDK that came with this package.

The author's file is copied beside a root module that exports the table. So a plugin is one file, which with the SDK is
all that the cache's key has to cover, and compiler messages and panics name it as `udf.rs:12:5` wherever it is built.
The project, a copy of the SDK and cargo's target folder stay in the cache: the SDK is compiled once, a function takes a
second or two. A lock keeps builds at the same time apart. The runtime that C plugins with async functions are linked to
comes from the same SDK, in the same way.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from .._errors import BuildError
from . import cache
from .cache import BY_DEFAULT, Arroyo, Identity

SDK = Path(__file__).resolve().parent.parent / "_sdk"

MANIFEST = """\
[package]
name = "plugin-{name}"
version = "0.0.0"
edition = "2021"

[lib]
crate-type = ["cdylib"]
path = "{root}"

[dependencies]
arroyo-udf-plugin = {{ path = {runtime}, features = [{features}] }}

[profile.release]
panic = "unwind"
strip = true

[workspace]
"""
# Not a name that an author's file can have: it would be no plugin's name.
ROOT = "plugin-root.rs"
ROOT_MODULE = """\
#![allow(non_snake_case)] // the crate has the plugin's name
#[path = "{name}.rs"]
mod functions;
arroyo_udf_plugin::plugin!(name: "{name}", hash: "{hash}", toolkit_version: "{toolkit_version}"{arroyo});
"""
# A marked function, in the author's text: options, `async`, name, and whether there are arguments. What this overlooks
# (a function that a macro makes) is exported for Arroyo only if it is asked for, and then refused by name.
MARKED = re.compile(
    r"^[ \t]*#\[\s*(?:\w+\s*::\s*)*udf\b([^\]]*)\]\s*(?:(?:#\[[^\]]*\]|//[^\n]*)\s*)*"
    r"(?:pub(?:\([^)]*\))?\s+)?(async\s+)?fn\s+(?:r#)?(\w+)\s*(?:<[^>]*>)?\s*\(\s*(\)?)",
    re.MULTILINE,
)
# The section that lists the functions is nobody else's business: its two ends would be exported.
LINK_FLAGS = [f"-Clink-arg=-Wl,-z,{option}" for option in ("nodelete", "start-stop-visibility=hidden")]
CRATES = "a plugin can use std, `arroyo_udf_plugin` and, re-exported by that, `arroyo_udf_plugin::tokio`"
TYPES = "the table of types is at the top of {sdk}/runtime/src/sdk/types.rs"
NETWORK = "the first build of a Rust plugin downloads a few crates: is the network there?"
# What the compiler's words mean here; the first that fits.
HINTS = {
    "cannot be an argument of a UDF": TYPES,
    "cannot be the result of a UDF": TYPES,
    "file not found for module": "a plugin is one .rs file: write the module into it",
    "couldn't read": "a plugin is one .rs file, and is compiled in a folder of its own",
    "unresolved import": CRATES,
    "unresolved module": CRATES,
    "use of undeclared": CRATES,
    "cannot be sent between threads": "an async function may go on in another thread after each await: use Arc for Rc, "
    "Mutex for RefCell, and end a std lock's scope before the await",
    "failed to get": NETWORK,
    "failed to download": NETWORK,
    "requires rustc": "update Rust: rustup update",
}
OTHER_HINT = "how a function looks in Rust is written at the top of {sdk}/macros/src/lib.rs"


def inputs(source: Path) -> list[str]:
    """What else the library depends on: compiler, flags, and the SDK with the versions of its crates.

    Raises BuildError: no cargo, or no SDK in this package.
    """
    if not (SDK / "runtime").is_dir():
        raise BuildError("this package lacks its Rust SDK; in a checkout: python setup.py stage", str(source))
    return [
        _call(source, ["rustc", "-vV"], SDK).stdout,
        _call(source, ["cargo", "--version"], SDK).stdout,
        os.environ.get("RUSTFLAGS", ""),
        json.dumps([MANIFEST, ROOT_MODULE, LINK_FLAGS]),
        _sdk_hash(),
    ]


def compile(source: Path, output: Path, identity: Identity, arroyo: Arroyo = BY_DEFAULT) -> None:
    """Writes the shared library to `output`. What the compiler warns of goes to stderr as it said it.

    Raises BuildError with the compiler's own output, and a hint below.
    """
    try:
        text = source.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise BuildError(f"a Rust source is UTF-8: {error}", str(source)) from None
    if not re.search(r"#\[\s*(\w+\s*::\s*)*udf\b", text):
        raise BuildError(
            "no function is marked: write `use arroyo_udf_plugin::udf;`, and `#[udf]` before each function", str(source)
        )
    with _workshop() as workshop:
        project = workshop / "projects" / identity.name
        project.mkdir(parents=True, exist_ok=True)
        (project / "Cargo.toml").write_text(
            MANIFEST.format(
                name=identity.name,
                root=ROOT,
                runtime=json.dumps(str(workshop / "sdk" / "runtime")),
                features='"tokio"' if re.search(r"\b(async|tokio)\b", text) else "",
            )
        )
        (project / ROOT).write_text(ROOT_MODULE.format(**vars(identity), arroyo=_exports(source, text, arroyo)))
        (project / f"{identity.name}.rs").write_text(text, "utf-8")
        # The versions of crates are the SDK's own; cargo adds this project to the copy.
        shutil.copyfile(SDK / "Cargo.lock", project / "Cargo.lock")
        target = workshop / "target"
        command = ["cargo", "rustc", "--release", "--lib", "--quiet", "--color=never", "--", *LINK_FLAGS]
        done = _call(source, command, project, {"CARGO_TARGET_DIR": str(target), **_flags(workshop)})
        sys.stderr.write(done.stderr)
        shutil.copyfile(target / "release" / f"libplugin_{identity.name}.so", output)


def _exports(source: Path, text: str, arroyo: Arroyo) -> str:
    """What the plugin's table is followed by: the function for Arroyo, if there is one."""
    starts = {name: bool(is_async) or "blocking" in options for options, is_async, name, _ in MARKED.findall(text)}
    without_arguments = {name for _, _, name, closed in MARKED.findall(text) if closed}
    callable = [name for name in starts if starts[name] or name not in without_arguments]
    chosen = arroyo.choose(list(starts), callable, source)
    if chosen is None:
        return ""
    return f', arroyo: {"async" if starts[chosen] else "sync"} "{chosen}", on_error: "{arroyo.on_error}"'


def runtime_for_c(source: Path, output: Path) -> None:
    """Writes the runtime below async functions in C, a static library, to `output`.

    source: the author's file, for the text of an error.
    Raises BuildError: no cargo, or what it said.
    """
    with _workshop() as workshop:
        crate, target = workshop / "sdk" / "c", workshop / "target"
        shutil.copyfile(SDK / "Cargo.lock", crate / "Cargo.lock")
        command = ["cargo", "build", "--release", "--quiet", "--color=never"]
        _call(source, command, crate, {"CARGO_TARGET_DIR": str(target), **_flags(workshop)})
        shutil.copyfile(target / "release" / "libarroyo_udf_c.a", output)


@contextmanager
def _workshop() -> Iterator[Path]:
    """The folder where projects are built, for one process at a time."""
    folder = cache.folder().resolve() / "rust"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _copy_sdk(folder)
        yield folder


def _copy_sdk(workshop: Path) -> None:
    """Cargo knows a changed file by its time alone, and an installed file may have any: each file of a copy is new. All
    installations of the package share one, and what is compiled from it."""
    wanted, stamp = _sdk_hash(), workshop / "sdk.hash"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    stamp.unlink(missing_ok=True)
    shutil.rmtree(workshop / "sdk", ignore_errors=True)
    shutil.copytree(SDK, workshop / "sdk", copy_function=shutil.copyfile)
    stamp.write_text(wanted)


def _sdk_hash() -> str:
    digest = hashlib.sha256()
    for file in sorted(path for path in SDK.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(SDK)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _flags(workshop: Path) -> dict[str, str]:
    """The user's flags, and no folder of this machine in the library: panics of the SDK name its own files."""
    home = os.environ.get("CARGO_HOME") or str(Path.home() / ".cargo")
    remaps = [f"--remap-path-prefix={workshop / 'sdk'}=sdk", f"--remap-path-prefix={home}=cargo"]
    return {"CARGO_ENCODED_RUSTFLAGS": "\x1f".join([*os.environ.get("RUSTFLAGS", "").split(), *remaps])}


def _call(
    source: Path, command: list[str], folder: Path, environment: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[str]:
    try:
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise BuildError(
            f"{command[0]} cannot be run ({error.strerror}): install Rust from https://rustup.rs", str(source)
        ) from None
    if done.returncode != 0:
        first = re.search(rf"^error.*\n\s*--> {re.escape(source.name)}:(\d+):", done.stderr, re.MULTILINE)
        hint = next((hint for words, hint in HINTS.items() if words in done.stderr), OTHER_HINT)
        raise BuildError(
            f"cargo refused it:\n{done.stderr.rstrip()}\nhint: {hint.format(sdk=SDK)}",
            file=str(source),
            line=int(first[1]) if first else None,
        )
    return done
