"""Builds a Rust plugin: a small cargo project around the author's file and the SDK that came with this package.

The author's file is copied beside a root module that exports the table. So a plugin is one file, which with the SDK is
all that the cache's key has to cover, and compiler messages and panics name it as `udf.rs:12:5` wherever it is built.
The project, a copy of the SDK and cargo's target folder stay in the cache: the SDK, and each crate that some function
depends on, is compiled once, a function takes a second or two. A lock keeps builds at the same time apart. The runtime
that C plugins with async functions are linked to comes from the same SDK, in the same way.

Which versions of crates a source with [dependencies] gets is written beside it, in Cargo's words: udf.rs.lock, made by
the first build, followed by later ones, and changed only where [dependencies] or the toolkit has.
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
from typing import Any

from ..author.options import abi_fields
from ..errors import BuildError
from . import cache, rust_source
from .cache import BY_DEFAULT, Arroyo, Identity, Resolution
from .rust_source import Source

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
{dependencies}

[profile.release]
panic = "unwind"
strip = true

[workspace]
"""
# Not a name that an author's file can have: it would be no plugin's name.
ROOT = "plugin-root.rs"
ROOT_MODULE = """\
#![allow(non_snake_case)] // the crate has the plugin's name
{types}
#[path = "{name}.rs"]
mod functions;
arroyo_udf_plugin::plugin!(name: "{name}", hash: "{hash}", toolkit_version: "{toolkit_version}"{options}{arroyo});
"""
# Sources for Arroyo name the trait of a Context `types::UdfContext`.
TYPES = "extern crate arroyo_udf_plugin as types;"
# The section that lists the functions is nobody else's business: its two ends would be exported.
LINK_FLAGS = [f"-Clink-arg=-Wl,-z,{option}" for option in ("nodelete", "start-stop-visibility=hidden")]
CRATES = (
    "a plugin can use std, `arroyo_udf_plugin`, `arroyo_udf_plugin::tokio`, and the crates that a comment at its head "
    'names, as in: /* [dependencies] on a line of its own, then regex = "1" */'
)
TABLE = "the table of types is at the top of {sdk}/runtime/src/sdk/types.rs"
NETWORK = "a build downloads the crates that no earlier one did: is the network there?"
OFFLINE = "--offline takes what earlier builds have downloaded, and this has not been: build once without it"
# What the compiler's words mean here; the first that fits.
HINTS = {
    "cannot be an argument of a UDF": TABLE,
    "cannot be the result of a UDF": TABLE,
    "file not found for module": "a plugin is one .rs file: write the module into it",
    "couldn't read": "a plugin is one .rs file, and is compiled in a folder of its own",
    "unresolved import": CRATES,
    "unresolved module": CRATES,
    "use of undeclared": CRATES,
    "item named `new` found": "a Context has a function `new() -> Self`, which makes it before `init` opens it",
    "cannot be sent between threads": "an async function may go on in another thread after each await: use Arc for Rc, "
    "Mutex for RefCell, and end a std lock's scope before the await",
    "no matching package": "crates and their versions are listed at https://crates.io",
    "failed to select a version": "crates and their versions are listed at https://crates.io",
    "failed to get": NETWORK,
    "failed to download": NETWORK,
    "requires rustc": "update Rust: rustup update",
}
OTHER_HINT = "how a function looks in Rust is written at the top of {sdk}/macros/src/lib.rs"


def inputs(source: Path, how: Resolution) -> list[str]:
    """What else the library depends on: compiler, flags, the SDK with its crates' versions, the source's lock.

    Raises BuildError: no cargo, no SDK in this package, a header that is none, dependencies that cannot be had.
    """
    toolchain = toolchain_inputs(source)
    written = rust_source.read(source)
    lock = _locked(source, written, how) if written.dependencies else ""
    return [*toolchain, json.dumps([MANIFEST, ROOT_MODULE, LINK_FLAGS]), lock]


def toolchain_inputs(source: Path) -> list[str]:
    """What everything that cargo makes of the SDK depends on: compiler, flags, the SDK with its crates' versions.

    Raises BuildError: no cargo, no SDK in this package.
    """
    if not (SDK / "runtime").is_dir():
        raise BuildError("this package lacks its Rust SDK; in a checkout: python setup.py stage", str(source))
    compilers = [_call(source, ["rustc", "-vV"], SDK).stdout, _call(source, ["cargo", "--version"], SDK).stdout]
    return [*compilers, os.environ.get("RUSTFLAGS", ""), _sdk_hash()]


def compile(source: Path, output: Path, identity: Identity, how: Resolution, arroyo: Arroyo = BY_DEFAULT) -> None:
    """Writes the shared library to `output`. What the compiler warns of goes to stderr as it said it.

    Raises BuildError with the compiler's own output, and a hint below.
    """
    written = rust_source.read(source)
    lock = _lock_file(source).read_text("utf-8") if written.dependencies else None
    with _workshop() as workshop:
        project = _project(workshop, identity.name, written, lock)
        options = ", ".join(f"{field}: {value}" for field, value in abi_fields(written.options).items())
        types = "" if "types" in written.dependencies or not _is_async(written) else TYPES
        options = f", options: {{ {options} }}" if options else ""
        exported = _exports(source, written, arroyo)
        root = ROOT_MODULE.format(**vars(identity), options=options, arroyo=exported, types=types)
        (project / ROOT).write_text(root)
        (project / f"{identity.name}.rs").write_text(written.text, "utf-8")
        target = workshop / "target"
        command = ["cargo", "rustc", "--release", "--lib", "--quiet", "--color=never", "--", *LINK_FLAGS]
        environment = {"CARGO_TARGET_DIR": str(target), **_flags(workshop), **_network(how)}
        done = _call(source, command, project, environment)
        sys.stderr.write(done.stderr)
        shutil.copyfile(target / "release" / f"libplugin_{identity.name}.so", output)


def runtime_for_c(source: Path, output: Path, how: Resolution) -> None:
    """Writes the runtime below async functions in C, a static library, to `output`.

    source: the author's file, for the text of an error.
    Raises BuildError: no cargo, or what it said.
    """
    with _workshop() as workshop:
        crate, target = workshop / "sdk" / "c", workshop / "target"
        shutil.copyfile(SDK / "Cargo.lock", crate / "Cargo.lock")
        command = ["cargo", "build", "--release", "--quiet", "--color=never"]
        _call(source, command, crate, {"CARGO_TARGET_DIR": str(target), **_flags(workshop), **_network(how)})
        shutil.copyfile(target / "release" / "libarroyo_udf_c.a", output)


def _is_async(written: Source) -> bool:
    return re.search(r"\b(async|tokio)\b", written.text) is not None


def _project(workshop: Path, name: str, written: Source, lock: str | None) -> Path:
    """The project's folder, with manifest and lock; without one of its own it has the SDK's, and cargo adds to it."""
    project = workshop / "projects" / name
    project.mkdir(parents=True, exist_ok=True)
    own = {"path": str(workshop / "sdk" / "runtime"), "features": ["tokio"] if _is_async(written) else []}
    dependencies = {"arroyo-udf-plugin": own, **written.dependencies}
    lines = [f"{json.dumps(crate)} = {_toml(wanted)}" for crate, wanted in dependencies.items()]
    (project / "Cargo.toml").write_text(MANIFEST.format(name=name, root=ROOT, dependencies="\n".join(lines)), "utf-8")
    for root in (ROOT, f"{name}.rs"):  # cargo looks whether they are there
        (project / root).touch()
    (project / "Cargo.lock").write_text((SDK / "Cargo.lock").read_text() if lock is None else lock, "utf-8")
    return project


def _toml(value: Any) -> str:
    """Tables are the one thing of a manifest that JSON writes otherwise."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def _lock_file(source: Path) -> Path:
    return source.with_name(f"{source.name}.lock")


def _locked(source: Path, written: Source, how: Resolution) -> str:
    """The lock of a source with dependencies, made or renewed where that is allowed."""
    file = _lock_file(source)
    lock = how.former_lock(file, source, written.dependencies_line)
    with _workshop() as workshop:
        project = _project(workshop, source.stem, written, lock)
        # Adds what is missing and drops what is not needed any more; versions that fit stay.
        command = ["cargo", "update", "--workspace", "--quiet", "--color=never", *["--locked"] * how.locked]
        _call(source, command, project, _network(how), line=written.dependencies_line)
        resolved = (project / "Cargo.lock").read_text("utf-8")
    if resolved != lock:
        cache.write(file, resolved.encode())
    return resolved


def _network(how: Resolution) -> dict[str, str]:
    return {"CARGO_NET_OFFLINE": "true"} if how.offline else {}


def _exports(source: Path, written: Source, arroyo: Arroyo) -> str:
    """What the plugin's table is followed by: the function for Arroyo, if there is one."""
    functions = {function.name: function for function in written.functions}
    callable = [name for name, function in functions.items() if function.starts or function.has_arguments]
    chosen = arroyo.choose(list(functions), callable, source)
    if chosen is None:
        return ""
    kind = "async" if functions[chosen].starts else "sync"
    return f', arroyo: {kind} "{chosen}", on_error: "{arroyo.on_error}"'


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
    source: Path,
    command: list[str],
    folder: Path,
    environment: Mapping[str, str] = MappingProxyType({}),
    line: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs a tool. Raises BuildError, with the line of the source that the compiler names, else with `line`."""
    try:
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise BuildError(
            f"{command[0]} cannot be run ({error.strerror}): install Rust from https://rustup.rs", str(source)
        ) from None
    if done.returncode == 0:
        return done
    if "--locked was passed" in done.stderr:
        stale = f"{_lock_file(source).name} is stale: [dependencies] or the toolkit has changed since it was made"
        raise BuildError(f"{stale}; build once without --locked, and look at what changes in it", str(source), line)
    first = re.search(rf"^error.*\n\s*--> {re.escape(source.name)}:(\d+):", done.stderr, re.MULTILINE)
    hint = next((hint for words, hint in HINTS.items() if words in done.stderr), OTHER_HINT)
    if "CARGO_NET_OFFLINE" in environment and hint in (NETWORK, HINTS["no matching package"]):
        hint = OFFLINE
    raise BuildError(
        f"cargo refused it:\n{done.stderr.rstrip()}\nhint: {hint.format(sdk=SDK)}",
        file=str(source),
        line=int(first[1]) if first else line,
    )
