"""Builds a C plugin: the source is compiled once and linked twice, alone, to ask the library for its functions, and
with the entry points of engines. If it includes arroyo_udf_async.h, the SDK's runtime is linked to it.

The compiler is `$CC` (words are split as a shell does), else `cc`. The author's file brings its own table, through the
macros of arroyo_udf_plugin.h or written by hand; a file that exports no `arroyo_udf_plugin` is refused by the linker.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from ..errors import BuildError
from . import engines, tools
from .cache import BY_DEFAULT, Exports, PluginIdentity, Resolution

INCLUDE = Path(__file__).resolve().parent.parent / "include"
HEADER = INCLUDE / "arroyo_udf_plugin.h"
# No contraction, so that a * b + c has the same last bit on every machine and in every language.
COMPILE_FLAGS = ["-std=gnu11", "-O3", "-ffp-contract=off", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra"]
# Newer compilers refuse these by default: each leads to a wrong value or a crash.
MISTAKES = ["implicit-function-declaration", "int-conversion", "return-type"]
COMPILE_FLAGS += [f"-Werror={mistake}" for mistake in MISTAKES]
# Only gcc has this flag: errors name the author's line, without fifty lines of macro expansion.
GCC_FLAGS = ["-ftrack-macro-expansion=0"]
LINK_FLAGS = ["-shared", f"-Wl,{engines.OWN_SYMBOLS}", "-Wl,-z,nodelete", "-Wl,-z,defs"]
LINK_FLAGS += ["-Wl,--require-defined=arroyo_udf_plugin"]
LIBRARIES = ["-lm", "-lpthread"]
ASYNC_HEADER = "arroyo_udf_async.h"
# For the runtime below async functions: link only what is used, export nothing; the system libraries that it needs.
ASYNC_FLAGS = ["-Wl,--gc-sections", "-Wl,--strip-all"]
ASYNC_LIBRARIES = ["-lgcc_s", "-lpthread", "-ldl"]
EXPORTED = f"{{ global: arroyo_udf_plugin; {engines.EXPORTED} local: *; }};"
# Prints the names of those functions that have a value for each row.
_NAMES = """
import json, sys
from arroyo_udf_plugin import abi
table = abi.ffi.dlopen(sys.argv[1]).arroyo_udf_plugin
described = table.describe()
functions = [described.functions[number] for number in range(described.n_functions)]
print(json.dumps([abi.text(one.name) for one in functions if one.kind in (abi.SYNC, abi.ASYNC)]))
"""
_NO_TABLE = "the file has no table: end it with ARROYO_UDF_PLUGIN(function, ...);"
# How to mend what the compiler or the linker refuses, by words of its message; the first that fits.
HINTS = {
    "conflicting types": "the types in ARROYO_UDF_FUNCTION must be those of the function: int64 is int64_t, "
    "utf8 is arroyo_udf_utf8, and the result comes last, through a pointer; "
    "an async function has `const arroyo_udf_call*` first, and no result; "
    "NAME_update has a state first, NAME_merge two, NAME_finish one and the result; "
    "a table function has NAME_rows* last",
    "no member named": "arroyo_udf_utf8 has data and length; arroyo_udf_nullable_T value and is_null; "
    "arroyo_udf_async init, cancel, close and options, as in .options.timeout_ns",
    "required symbol": _NO_TABLE,
    "arroyo_udf_c_this_plugin": _NO_TABLE,
    "undefined reference": "a plugin is one .c file, linked with the C library and libm only; "
    "an aggregate NAME has the functions NAME_update, NAME_merge and NAME_finish",
    "_state'": "an aggregate NAME has a struct NAME_state, which is defined before its functions",
    "_rows'": "ARROYO_UDF_TABLE_FUNCTION comes before the function, because it makes NAME_rows and NAME_emit",
    "arroyo_udf_c_": "is each type one of bool, int8 ... int64, uint8 ... uint64, float32, float64, utf8, "
    "or nullable_ and one of these?",
}
OTHER_HINT = "how a function looks in C is written at the top of {header}"


def inputs(source: Path, how: Resolution) -> list[str]:
    """What else the library depends on: the compiler, its flags, and every header outside the system's folders.

    Raises BuildError: no compiler, a header that the source includes is missing, or, for async functions, no cargo.
    """
    version = _version(source)
    headers = _headers(source)
    return [
        version.partition("\n")[0],
        shlex.join([*_compiler(), *COMPILE_FLAGS, *LINK_FLAGS, *LIBRARIES, *ASYNC_FLAGS, *ASYNC_LIBRARIES, EXPORTED]),
        engines.sources_hash(),
        *(f"{header.name} {hashlib.sha256(header.read_bytes()).hexdigest()}" for header in headers),
        *(_runtime_inputs(source) if _is_async(headers) else []),
    ]


def compile(
    source: Path, output: Path, identity: PluginIdentity, how: Resolution, exports: Exports = BY_DEFAULT
) -> None:
    """Writes the shared library to `output`. The compiler's warnings go to stderr unchanged.

    Raises BuildError with the compiler's own output and a hint.
    """
    if exports.arroyo is not None:
        raise BuildError(f"--arroyo {exports.arroyo}: for Arroyo, write it in Python or Rust", str(source))
    names = {
        "ARROYO_UDF_PLUGIN_NAME": identity.name,
        "ARROYO_UDF_PLUGIN_HASH": identity.hash,
        "ARROYO_UDF_TOOLKIT_VERSION": identity.toolkit_version,
    }
    defines = [f"-D{macro}={_c_string(text)}" for macro, text in names.items()]
    flags = COMPILE_FLAGS + (GCC_FLAGS if "Free Software Foundation" in _version(source) else [])
    compiled, rule = output.with_name("source.o"), output.with_name("headers")
    arguments = [*flags, f"-I{INCLUDE}", *defines, "-MMD", "-MT", "plugin", "-MF", str(rule)]
    tools.warn(_call(source, [*arguments, "-c", str(source), "-o", str(compiled)]).stderr)
    command = [str(compiled), *LINK_FLAGS, "-o", str(output)]
    if _is_async(_headers_of(rule.read_text(errors="replace"))):
        runtime, exported = output.with_name("runtime.a"), output.with_name("exported.map")
        from . import rust

        rust.runtime_for_c(source, runtime, how)
        exported.write_text(EXPORTED)
        command += [str(runtime), *ASYNC_FLAGS, f"-Wl,--version-script={exported}", *ASYNC_LIBRARIES]
    tools.warn(_call(source, [*command, *LIBRARIES]).stderr)
    entry_points = output.with_name("entry_points.c")
    entry_points.write_text(engines.c_entry_points(identity.name, _functions_of(output), exports.on_error))
    linked = [*flags, f"-I{engines.FOLDER}", str(entry_points), str(engines.object_file(source, exports.flags))]
    _call(source, [f"-I{INCLUDE}", *linked, *command, *LIBRARIES])


def _functions_of(library: Path) -> list[str]:
    """Their names. A process of its own loads the library, whose author may run code then."""
    done = tools.call([sys.executable, "-c", _NAMES, str(library)])
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or [f"it ended with status {done.returncode}"]
        tools.warn(f"warning: Polars will not find its functions: the library cannot be loaded here: {why[0]}\n")
        return []
    return list(json.loads(done.stdout))


def _headers(source: Path) -> list[Path]:
    """The headers that the source includes, without the system's."""
    return _headers_of(_call(source, [*COMPILE_FLAGS, f"-I{INCLUDE}", "-MM", "-MT", "plugin", str(source)]).stdout)


def _headers_of(rule: str) -> list[Path]:
    """rule: for make, "plugin: source header ..."."""
    return [Path(header) for header in shlex.split(rule.replace("\\\n", " "))[2:]]


def _is_async(headers: list[Path]) -> bool:
    return any(header.name == ASYNC_HEADER for header in headers)


def _runtime_inputs(source: Path) -> list[str]:
    if shutil.which("cargo") is None:
        raise BuildError(
            "async functions in C are linked to a runtime that cargo compiles, and there is no cargo: "
            "install Rust from https://rustup.rs",
            str(source),
        )
    from . import rust  # here, because most sources need none of it

    return rust.toolchain_inputs(source)


def _compiler() -> list[str]:
    return shlex.split(os.environ.get("CC", "")) or ["cc"]


def _version(source: Path) -> str:
    return _checked(source, lambda: tools.version_of(_compiler())).stdout


def _c_string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _call(source: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    # HINTS expect English messages.
    return _checked(source, lambda: tools.call([*_compiler(), *arguments], environment={"LC_ALL": "C"}))


def _checked(source: Path, run: Callable[[], subprocess.CompletedProcess[str]]) -> subprocess.CompletedProcess[str]:
    compiler = _compiler()
    try:
        done = run()
    except OSError as error:
        raise BuildError(
            f"the C compiler {compiler[0]} cannot be run ({error.strerror}): install gcc or clang, or set CC",
            file=str(source),
        ) from None
    if done.returncode != 0:
        first = re.search(rf"^{re.escape(str(source))}:(\d+):(?:\d+:)? (?:fatal )?error:", done.stderr, re.MULTILINE)
        hint = next((hint for words, hint in HINTS.items() if words in done.stderr), OTHER_HINT.format(header=HEADER))
        raise BuildError(
            f"{shlex.join(compiler)} refused it:\n{done.stderr.rstrip()}\nhint: {hint}",
            file=str(source),
            line=int(first[1]) if first else None,
        )
    return done
