"""Builds a Rust plugin: a small cargo project around the author's file and the SDK of this package.

The author's file is copied beside a root module that exports the table. So a plugin is one file: the cache's key covers
that file and the SDK, and compiler messages and panics name it as `udf.rs:12:5` wherever it is built.
The project, a copy of the SDK and cargo's target folder stay in the cache. The SDK and each crate that a function
depends on are compiled once; a function then takes a second or two. A file lock runs one build at a time. The runtime
below async functions in C is built from the same SDK, in the same way.

An installed package contains the crates that the SDK depends on (vendor.tar.gz, made by setup.py). A source without
[dependencies] is built from these and needs no network. A checkout does not contain them; there, and for sources with
[dependencies], cargo takes crates from its own folder or downloads them.

The versions of a source's crates are written beside it, in Cargo's format: udf.rs.lock. The first build makes it, later
builds follow it, and it changes only if [dependencies] or the toolkit change.
"""

import fcntl
import hashlib
import json
import logging
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..author.options import abi_fields
from ..errors import BuildError
from . import cache, engines, rust_source, tools
from .cache import BY_DEFAULT, Exports, PluginIdentity, Resolution
from .rust_source import RustSource

SDK = Path(__file__).resolve().parent.parent / "_sdk"
VENDORED = SDK / "vendor.tar.gz"

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
overflow-checks = true
codegen-units = 1

[profile.release.package."*"]
overflow-checks = false

[workspace]
"""
# No author's file has this name, because a plugin's name has no hyphen.
ROOT = "plugin-root.rs"
ROOT_MODULE = """\
#![allow(non_snake_case)] // the crate has the plugin's name
{types}
#[path = "{name}.rs"]
mod functions;
arroyo_udf_plugin::plugin!(name: "{name}", hash: "{hash}", toolkit_version: "{toolkit_version}"{options}{arroyo});
{engines}"""
# In sources for Arroyo the trait of a Context is `types::UdfContext`.
TYPES = "extern crate arroyo_udf_plugin as types;"
# The linker makes two symbols for the section that lists the functions; they must not be exported.
LINK_FLAGS = [f"-Clink-arg=-Wl,-z,{option}" for option in ("nodelete", "start-stop-visibility=hidden")]
LINK_FLAGS.append(f"-Clink-arg=-Wl,{engines.OWN_SYMBOLS}")
# A line of cargo's on its progress, such as `   Compiling tokio v1.40.0`: the first word ends in column 12.
_PROGRESS = re.compile(r"( *[A-Z][a-z]+) (.*)")
_SHOWN = ("Compiling", "Downloading", "Downloaded", "Updating", "Blocking")
CRATES = (
    "a plugin can use std, `arroyo_udf_plugin`, `arroyo_udf_plugin::tokio`, and the crates that a comment at its head "
    'names, as in: /* [dependencies] on a line of its own, then regex = "1" */'
)
TABLE = "the table of types is at the top of {sdk}/runtime/src/sdk/types.rs"
NETWORK = "a build downloads crates that no earlier build has downloaded: is the network there?"
OFFLINE = "--offline uses only crates that earlier builds have downloaded: build once without it"
# How to mend what the compiler refuses, by words of its message; the first that fits.
HINTS = {
    "cannot be an argument of a UDF": TABLE,
    "cannot be the result of a UDF": TABLE,
    "cannot be in the state of an aggregate": "a state is a struct with #[derive(Default, State)]",
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
DAMAGED = (
    "this is no error in the source; if it stays, the build cache may be damaged: `arroyo-udf cache --clear` empties it"
)
OTHER_HINT = "how a function looks in Rust is written at the top of {sdk}/macros/src/lib.rs"


def inputs(source: Path, how: Resolution) -> list[str]:
    """What else the library depends on: compiler, flags, the SDK with its crates' versions, the source's lock.

    Raises BuildError: no cargo, no SDK in this package, a wrong header, unavailable dependencies.
    """
    toolchain = toolchain_inputs(source)
    written = rust_source.read(source)
    lock = _locked(source, written, how) if written.dependencies else ""
    generated = [MANIFEST, ROOT_MODULE, LINK_FLAGS, engines.RUST_FLAGS, engines.rust_entry_points("", "null")]
    return [*toolchain, json.dumps(generated), engines.sources_hash(), lock]


def toolchain_inputs(source: Path) -> list[str]:
    """The inputs of every build with the SDK: compiler, flags, the SDK with its crates' versions.

    Raises BuildError: no cargo, no SDK in this package.
    """
    if not (SDK / "runtime").is_dir():
        raise BuildError("this package lacks its Rust SDK; in a checkout: python setup.py stage", str(source))
    compilers = [_call(source, ["rustc", "-vV"], SDK).stdout, _call(source, ["cargo", "--version"], SDK).stdout]
    return [*compilers, os.environ.get("RUSTFLAGS", ""), _sdk_hash()]


def compile(
    source: Path, output: Path, identity: PluginIdentity, how: Resolution, exports: Exports = BY_DEFAULT
) -> None:
    """Writes the shared library to `output`. The compiler's warnings go to stderr unchanged.

    Raises BuildError with the compiler's own output and a hint.
    """
    written = rust_source.read(source)
    lock = _lock_file(source).read_text("utf-8") if written.dependencies else None
    with _workshop() as workshop:
        project = _project(workshop, identity.name, written, lock)
        cargo, target = _cargo(workshop, own_crates=bool(written.dependencies))
        options = ", ".join(f"{field}: {value}" for field, value in abi_fields(written.options).items())
        types = "" if "types" in written.dependencies or not _is_async(written) else TYPES
        options = f", options: {{ {options} }}" if options else ""
        exported = _exports(source, written, exports)
        entry_points = engines.rust_entry_points(identity.name, exports.on_error)
        root = ROOT_MODULE.format(**vars(identity), options=options, arroyo=exported, types=types, engines=entry_points)
        linked = engines.object_file(source, exports.flags)
        (project / ROOT).write_text(root)
        (project / f"{identity.name}.rs").write_text(written.text, "utf-8")
        flags = [*LINK_FLAGS, *engines.RUST_FLAGS, f"-Clink-arg={linked}"]
        command = [*cargo, "rustc", "--release", "--lib", "--color=never", "--", *flags]
        environment = {"CARGO_TARGET_DIR": str(target), **_flags(workshop), **_network(how)}
        done = _call(source, command, project, environment, hints=_hints(how, written))
        tools.warn(done.stderr)
        shutil.copyfile(target / "release" / f"libplugin_{identity.name}.so", output)


def runtime_for_c(source: Path, output: Path, how: Resolution) -> None:
    """Writes the runtime below async functions in C, a static library, to `output`.

    source: the author's file, for error texts.
    Raises BuildError: no cargo, or cargo failed.
    """
    with _workshop() as workshop:
        crate = workshop / "sdk" / "c"
        cargo, target = _cargo(workshop, own_crates=False)
        shutil.copyfile(SDK / "Cargo.lock", crate / "Cargo.lock")
        command = [*cargo, "build", "--release", "--color=never"]
        environment = {"CARGO_TARGET_DIR": str(target), **_flags(workshop), **_network(how)}
        _call(source, command, crate, environment, hints=_hints(how))
        shutil.copyfile(target / "release" / "libarroyo_udf_c.a", output)


def _cargo(workshop: Path, own_crates: bool) -> tuple[list[str], Path]:
    """The command that runs cargo, and its target folder. Without crates of the source's own, cargo looks for crates
    in the SDK's archive alone, if there is one.

    Two target folders: cargo would compile a crate again whenever it comes from the other place.
    """
    vendored = workshop / "sdk" / "vendor"
    if own_crates or not vendored.is_dir():
        return ["cargo"], workshop / "target"
    source = f"source.arroyo-udf.directory={json.dumps(str(vendored))}"
    replaced = ["--config", source, "--config", 'source.crates-io.replace-with="arroyo-udf"']
    return ["cargo", *replaced], workshop / "target-vendored"


def _is_async(written: RustSource) -> bool:
    return re.search(r"\b(async|tokio)\b", written.text) is not None


def _project(workshop: Path, name: str, written: RustSource, lock: str | None) -> Path:
    """The project's folder, with manifest and lock. lock: None for the SDK's lock, which cargo then completes."""
    project = workshop / "projects" / name
    project.mkdir(parents=True, exist_ok=True)
    own = {"path": str(workshop / "sdk" / "runtime"), "features": ["tokio"] if _is_async(written) else []}
    dependencies = {"arroyo-udf-plugin": own, **written.dependencies}
    lines = [f"{json.dumps(crate)} = {_toml(wanted)}" for crate, wanted in dependencies.items()]
    (project / "Cargo.toml").write_text(MANIFEST.format(name=name, root=ROOT, dependencies="\n".join(lines)), "utf-8")
    for root in (ROOT, f"{name}.rs"):  # cargo checks that they exist
        (project / root).touch()
    (project / "Cargo.lock").write_text((SDK / "Cargo.lock").read_text() if lock is None else lock, "utf-8")
    return project


def _toml(value: Any) -> str:
    """A value of a manifest. TOML differs from JSON only in tables."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def _lock_file(source: Path) -> Path:
    return source.with_name(f"{source.name}.lock")


def _locked(source: Path, written: RustSource, how: Resolution) -> str:
    """The lock of a source with dependencies; made or renewed unless --locked forbids it."""
    file = _lock_file(source)
    lock = how.former_lock(file, source, written.dependencies_line)
    with _workshop() as workshop:
        project = _project(workshop, source.stem, written, lock)
        # Adds missing crates and removes unused ones; versions that fit stay.
        command = ["cargo", "update", "--workspace", "--color=never", *["--locked"] * how.locked]
        _call(source, command, project, _network(how), written.dependencies_line, _hints(how, written))
        resolved = (project / "Cargo.lock").read_text("utf-8")
    if resolved != lock:
        cache.keep_lock(file, source, resolved)
    return resolved


def _network(how: Resolution) -> dict[str, str]:
    return {"CARGO_NET_OFFLINE": "true"} if how.offline else {}


def _hints(how: Resolution, written: RustSource | None = None) -> Mapping[str, str]:
    """HINTS for a source. Offline, they name its crates that were never downloaded; cargo names only the first."""
    if not how.offline:
        return HINTS
    wanted = written.dependencies if written else {}
    cache = _cargo_home() / "registry" / "cache"
    absent = [name for name in wanted if not any(cache.glob(f"*/{_crate(name, wanted[name])}-[0-9]*.crate"))]
    hint = OFFLINE + (f"; never downloaded: {', '.join(absent)}" if absent else "")
    words = ("no matching package", "failed to select a version", "failed to get", "failed to download")
    return {**HINTS, **dict.fromkeys(words, hint)}


def _crate(name: str, wanted: Any) -> str:
    """The crate of a dependency, which may have another name in the source."""
    return str(wanted.get("package", name)) if isinstance(wanted, dict) else name


def _exports(source: Path, written: RustSource, exports: Exports) -> str:
    """The argument of `plugin!` that exports a function for Arroyo; empty without one."""
    functions = {function.name: function for function in written.functions}
    callable = [name for name, function in functions.items() if function.starts or function.has_arguments]
    chosen = exports.choose(list(functions), callable, source)
    if chosen is None:
        return ""
    kind = "async" if functions[chosen].starts else "sync"
    return f', arroyo: {kind} "{chosen}", on_error: "{exports.on_error}"'


@contextmanager
def _workshop() -> Iterator[Path]:
    """The folder where projects are built, for one process at a time."""
    folder = cache.folder().resolve() / "rust"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tools.LOG.info("waiting for another build to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        _copy_sdk(folder)
        yield folder


def _copy_sdk(workshop: Path) -> None:
    """Copies the SDK and unpacks its crates. All installations with the same SDK share the copy and its target folder.

    Cargo finds changed files by their time only, and an installed file may have any time: the files of a copy are new.
    """
    wanted, stamp = _sdk_hash(), workshop / "sdk.hash"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    stamp.unlink(missing_ok=True)
    shutil.rmtree(workshop / "sdk", ignore_errors=True)
    shutil.copytree(SDK, workshop / "sdk", copy_function=shutil.copyfile, ignore=shutil.ignore_patterns(VENDORED.name))
    if VENDORED.exists():
        with tarfile.open(VENDORED) as archive:
            for entry in archive:  # not `extractall`: its `filter` is missing before 3.11.4, and demanded after 3.11
                file, content = workshop / "sdk" / "vendor" / entry.name, archive.extractfile(entry)
                assert content is not None  # setup.py puts files only into it
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content.read())
    stamp.write_text(wanted)


def _sdk_hash() -> str:
    digest = hashlib.sha256()
    root = f"{SDK}{os.sep}"  # texts: paths of the same files take three times as long
    for file in sorted(os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names):
        with open(file, "rb") as opened:
            content = hashlib.sha256(opened.read()).hexdigest()
        digest.update(f"{file.removeprefix(root)} {content}\n".encode())
    return digest.hexdigest()


def _flags(workshop: Path) -> dict[str, str]:
    """The user's flags. The others keep folders of this machine out of the library: panics name files of the SDK."""
    remaps = [f"--remap-path-prefix={workshop / 'sdk'}=sdk", f"--remap-path-prefix={_cargo_home()}=cargo"]
    return {"CARGO_ENCODED_RUSTFLAGS": "\x1f".join([*os.environ.get("RUSTFLAGS", "").split(), *remaps])}


def _cargo_home() -> Path:
    return Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")


def _log_progress(line: str) -> bool:
    """Logs what cargo says of its progress; False for any other line."""
    said = _PROGRESS.match(line)
    if said is None or len(said[1]) != 12:
        return False
    word, what = said[1].strip(), said[2].partition(" (")[0]
    if word in _SHOWN:
        tools.LOG.log(logging.DEBUG if what.startswith("plugin-") else logging.INFO, "%s %s", word.lower(), what)
    return True


def _call(
    source: Path,
    command: list[str],
    folder: Path,
    environment: Mapping[str, str] = MappingProxyType({}),
    line: int | None = None,
    hints: Mapping[str, str] = MappingProxyType(HINTS),
) -> subprocess.CompletedProcess[str]:
    """Runs a tool. Raises BuildError, with the line of the source that the compiler names, else with `line`."""
    try:
        done = tools.call(command, folder, environment, _log_progress)
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
    in_source = f"--> {source.name}:" in done.stderr or ROOT in done.stderr
    other = OTHER_HINT if in_source else DAMAGED
    hint = next((hint for words, hint in hints.items() if words in done.stderr), other)
    raise BuildError(
        f"cargo refused it:\n{done.stderr.rstrip()}\nhint: {hint.replace('{sdk}', str(SDK))}",
        file=str(source),
        line=int(first[1]) if first else line,
    )
