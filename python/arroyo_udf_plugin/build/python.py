"""Builds Python plugins: executes the source once to find its functions, then compiles a C file that contains it.

`templates/plugin.c` is that C file, and `plugin_data.h`, generated here, holds the data of one plugin. One call of the
C compiler makes the library; the inner library, which starts Python, is linked into it (inner.py).

Assumes that the Python that builds also runs the plugin: its path is in the library, for hosts that are not Python.
"""

import contextlib
import hashlib
import json
import sys
import threading
import traceback
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from .. import abi, version
from ..author.options import abi_fields
from ..author.udaf import Udaf
from ..author.udf import Udf, made
from ..errors import BuildError
from ..plugin.module import Parcel, aggregates_of, execute, forget, functions_of, user_traceback
from . import cache, declared, engines, inner, metadata, native, requirements, siblings, tools
from .cache import BY_DEFAULT, Exports, PluginIdentity, Resolution
from .declared import Declared

_PACKAGE = Path(__file__).parent.parent
_TEMPLATE = inner.TEMPLATES / "plugin.c"
_ALONE = inner.TEMPLATES / "plugin_alone.c"
# No contraction, and the C library's functions rather than the compiler's own: results are Python's to the last bit.
_LIBM = ("exp", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
         "log", "log2", "log10", "log1p", "pow", "fmod", "atan2")  # fmt: skip
_NATIVE_FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-O3", "-ffp-contract=off", "-fPIC", "-fvisibility=hidden", "-Wall",
                 "-Wextra", "-Wno-unused-parameter", "-Wno-unused-function", "-Wno-unused-but-set-variable",
                 "-Werror=implicit-function-declaration", *(f"-fno-builtin-{name}" for name in _LIBM))  # fmt: skip
_EXPORTS = "{{ global: arroyo_udf_plugin; {engines} {arroyo} local: *; }};\n"
_ARROYO = {False: ("__run",), True: ("__start", "__send", "__drain_results", "__stop_runtime")}  # sync, async


def inputs(source: Path, how: Resolution) -> list[str]:
    """Interpreter, pyarrow, the inner library, the files of this toolkit that end up in the library or judge the
    source, the plugin format, the modules that the plugin carries, and the versions of the packages that the source
    lists."""
    own = hashlib.sha256()
    folders = (inner.TEMPLATES, Path(native.__file__).parent, _PACKAGE / "author", inner.include())
    files = [file for folder in folders for file in sorted(folder.glob("*.[hcp]*")) if file.is_file()]
    for file in (Path(__file__), *files):
        own.update(file.read_bytes())
    return [
        sys.executable,
        pa.__version__,
        *inner.inputs(),
        *_NATIVE_FLAGS,
        own.hexdigest(),
        engines.sources_hash(),
        f"format {version.PLUGIN_FORMAT}",
        json.dumps(_parcel(source, how).modules),
        requirements.locked(source, _read(source), how),
    ]


def compile(
    source: Path, output: Path, identity: PluginIdentity, how: Resolution, exports: Exports = BY_DEFAULT
) -> None:
    """Writes the plugin of a Python source. Raises BuildError; executes the source's module level."""
    parcel = _parcel(source, how)
    block = metadata.options(parcel.source, str(source))
    with _module(source, parcel) as (module, decorated):
        udfs, aggregates = _functions(source, module, decorated)
        functions = declared.functions(udfs, aggregates, block)
        natives = native.compiled(parcel.source, identity.name, udfs, len(functions))
        if exports.no_python:
            _check_alone(source, udfs, aggregates, natives)
    folder = output.parent
    names = [function.name for function in functions if function.kind in ("SYNC", "ASYNC")]
    chosen = None if exports.no_python else exports.choose(names, names, source)
    data, symbols = _data(parcel, functions, identity), tuple[str, ...]()
    data += _reasons(natives, len(functions))
    if chosen is not None:
        number = next(i for i, function in enumerate(functions) if function.name == chosen)
        symbols = _ARROYO[functions[number].kind == "ASYNC"]
        data += f"#define ARROYO_FUNCTION {number}\n#define ARROYO_STARTS {int(len(symbols) > 1)}\n"
        data += f"#define ARROYO_ON_ERROR {int(exports.on_error == 'null')}\n"
    (folder / "plugin_data.h").write_text(data)
    (folder / "exports.map").write_text(
        _EXPORTS.format(engines=engines.EXPORTED, arroyo="".join(f"{symbol}; " for symbol in symbols))
    )

    entry_points = folder / "entry_points.c"
    entry_points.write_text(engines.c_entry_points(identity.name, names, exports.on_error))
    folders = (folder, engines.FOLDER, inner.TEMPLATES, inner.include())
    files = [entry_points, engines.object_file(source, exports.flags)]
    files += [_ALONE] if exports.no_python else [_TEMPLATE, inner.object_file(source)]
    compiler = [*inner.compiler(), *(f"-I{include}" for include in folders)]
    if natives.text is not None:
        alone = ["-DNATIVE_ALONE", f'-DARROYO_UDF_PLUGIN_NAME="{identity.name}"'] if exports.no_python else []
        files.append(_native_object(source, natives.text, folder, alone))
        if not exports.no_python:
            files += [_kept_object(source, name) for name in ("native_run", "native_fused")]
    # -O1: all of it only passes calls on, and more than that takes half as long again.
    command = [*compiler, *inner.FLAGS, "-O1", *map(str, files), "-o", str(output)]
    done = tools.call([*command, f"-Wl,--version-script={folder / 'exports.map'}", *inner.LINK, "-lm"])
    if done.returncode:
        raise BuildError(f"the C compiler refused the plugin:\n{done.stderr}", str(source))


def _check_alone(source: Path, udfs: list[Udf[..., Any]], aggregates: list[Udaf], natives: native.Natives) -> None:
    """Raises BuildError unless all functions can be in a library without Python."""
    for udf, reason in zip(udfs, natives.reasons, strict=True):
        if reason is not None:
            raise udf.mistake(f"needs Python, and --no-python was asked for: it is not native because of {reason}")
    for aggregate in aggregates:
        raise aggregate.mistake("needs Python, and --no-python was asked for: it aggregates rows")


def _native_object(source: Path, text: str, folder: Path, flags: list[str]) -> Path:
    """Compiles the functions that are native."""
    file, compiled = folder / "native.c", folder / "native.o"
    file.write_text(text)
    _compile_native(source, file, compiled, *flags)
    return compiled


def _kept_object(source: Path, name: str) -> Path:
    """A part of native code that is the same in all plugins: from the cache, if it was compiled before. source: for
    error texts."""
    own = hashlib.sha256()
    for file in sorted(inner.TEMPLATES.glob("native_*")):
        own.update(file.read_bytes())
    key = hashlib.sha256(json.dumps([name, *inner.inputs(), *_NATIVE_FLAGS, own.hexdigest()]).encode()).hexdigest()
    return cache.kept(key, f"{name}.o", lambda out: _compile_native(source, inner.TEMPLATES / f"{name}.c", out))


def _compile_native(source: Path, file: Path, compiled: Path, *flags: str) -> None:
    command = [*inner.compiler(), *_NATIVE_FLAGS, *(f"-I{path}" for path in (inner.TEMPLATES, inner.include()))]
    done = tools.call([*command, *flags, "-c", str(file), "-o", str(compiled)])
    if done.returncode:
        raise BuildError(f"the C compiler refused the native functions:\n{done.stderr}", str(source))


# ---- The source ------------------------------------------------------------------------------------------------------


def _read(source: Path) -> str:
    try:
        text = source.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BuildError(f"is not UTF-8: {error}", str(source)) from None
    if "\0" in text:
        raise BuildError("has a NUL character, which Python does not allow", str(source))
    return text


def _parcel(source: Path, how: Resolution) -> Parcel:
    return siblings.parcel(source, _read(source), how.folder or source.parent)


@contextlib.contextmanager
def _module(source: Path, parcel: Parcel) -> Iterator[tuple[types.ModuleType, list[Udf[..., Any] | Udaf]]]:
    """The source's module, executed, and all functions that were decorated meanwhile. It is in sys.modules only while
    the annotations are read."""
    name = f"arroyo_udf_build_{source.stem}_{threading.get_ident()}"
    decorated: list[Udf[..., Any] | Udaf] = []
    noted = made.set(decorated)
    try:
        module = execute(name, parcel, str(source), str(source))
    except KeyboardInterrupt:
        raise
    except BuildError as error:
        if error.file is not None:
            raise
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(source)]
        raise BuildError(str(error), str(source), lines[-1]) from None
    except SyntaxError as error:
        raise BuildError(f"is not Python: {error.msg}", error.filename, error.lineno) from None
    except BaseException as error:
        failed = f"fails at import; a build imports it once:\n{user_traceback(error)}{_hint(error, source)}"
        raise BuildError(failed, str(source)) from None
    finally:
        made.reset(noted)
    try:
        yield module, decorated
    finally:
        forget(name)


def _hint(error: BaseException, source: Path) -> str:
    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if name and (source.parent / name).is_dir():
        return f"\na plugin carries packages of its folder: give {name} an __init__.py"
    return ""


def _functions(
    source: Path, module: types.ModuleType, decorated: list[Udf[..., Any] | Udaf]
) -> tuple[list[Udf[..., Any]], list[Udaf]]:
    """The decorated functions of a module, and its aggregates, in order of definition. decorated: also those that it
    has lost."""
    functions, aggregates = functions_of(module), aggregates_of(module)
    for one in decorated:
        if isinstance(one, Udf):
            if one.definition.__module__ == module.__name__:
                _check_kept(one, vars(module))
        elif one.cls.__module__ == module.__name__ and one not in aggregates:
            raise one.mistake("is not what its name means in the end: a later line replaces it; rename one")
    if not functions and not aggregates:
        raise BuildError("has no function with @udf; decorate one: `from arroyo_udf_plugin import udf`", str(source))
    names = set[str]()
    every: tuple[Udf[..., Any] | Udaf, ...] = (*functions, *aggregates)
    for one in every:
        if one.__name__ in names:
            raise one.mistake("has the name of another function of this file; rename one")
        names.add(one.__name__)
    return functions, aggregates


def _check_kept(udf: Udf[..., Any], names: Mapping[str, Any]) -> None:
    """Raises BuildError if the name of a decorated function means something else now."""
    now = names.get(udf.__name__)
    if now is None or any(value is udf for value in names.values()):
        return
    if isinstance(now, Udf):
        raise now.mistake(f"has the name of the function in line {udf.definition.__code__.co_firstlineno}; rename one")
    raise udf.mistake(
        f"is not what {udf.__name__!r} means in the end: a decorator above @udf, or a later line, replaces it by"
        f" {now!r}; write @udf as the first decorator, or rename one"
    )


# ---- The data: C initialisers ----------------------------------------------------------------------------------------


def _data(parcel: Parcel, functions: list[Declared], identity: PluginIdentity) -> str:
    lines = [
        "/* Generated: the data of this plugin. */",
        f"#define PLUGIN_NAME {c_string(identity.name)}",
        f"#define PLUGIN_PYTHON {c_string(sys.executable)}",
        f"#define PLUGIN_FORMAT {version.PLUGIN_FORMAT}",
        f"static const char PARCEL[] = {c_string(json.dumps(parcel._asdict(), ensure_ascii=False))};",
    ]
    for number, function in enumerate(functions):
        lines.append(f"static struct ArrowSchema ARGUMENTS_{number} = {_exported(function.arguments)};")
        lines.append(f"static struct ArrowSchema RETURNS_{number} = {_exported(function.returns)};")
        if function.options is not None:
            lines.append(f"static const arroyo_udf_options OPTIONS_{number} = {_options(function.options)};")
        documentation = c_string(function.documentation) if function.documentation else "NULL"
        volatility = "0" if function.volatility is None else f"ARROYO_UDF_{function.volatility.upper()}"
        lines.append(
            f"static const arroyo_udf_function FUNCTION_{number} = {{ .size = sizeof(arroyo_udf_function), "
            f".name = {c_string(function.name)}, .kind = ARROYO_UDF_{function.kind}, "
            f".vectorized = {int(function.vectorized)}, "
            f".arguments = &ARGUMENTS_{number}, .returns = &RETURNS_{number}, "
            f".options = {'NULL' if function.options is None else f'&OPTIONS_{number}'}, "
            f".documentation = {documentation}, .volatility = {volatility}, "
            f".timeout_ns = UINT64_C({function.timeout_ns}), .first_step = {function.first_step}, "
            f".constants = {function.constants} }};"
        )
    addresses = ", ".join(f"&FUNCTION_{number}" for number in range(len(functions)))
    lines += [
        f"static const arroyo_udf_function *const FUNCTIONS[] = {{ {addresses} }};",
        "static const arroyo_udf_descriptor DESCRIPTOR = { .size = sizeof(arroyo_udf_descriptor), .name = PLUGIN_NAME, "
        f'.language = "python", .toolkit_version = {c_string(identity.toolkit_version)}, '
        f".hash = {c_string(identity.hash)}, .n_functions = {len(functions)}, .functions = FUNCTIONS }};",
    ]
    return "\n".join(lines) + "\n"


def _reasons(natives: native.Natives, total: int) -> str:
    """Which functions are native, and why the others are not."""
    reasons = [None if reason is None else f"Python: {reason}" for reason in natives.reasons]
    reasons += ["Python: it aggregates rows"] * (total - len(reasons))
    texts = ", ".join("NULL" if reason is None else c_string(reason) for reason in reasons)
    lines = [f"static const char *const NOT_NATIVE[] = {{ {texts} }};"]
    if natives.text is not None:
        lines.append("#define PLUGIN_HAS_NATIVE 1")
    return "\n".join(lines) + "\n"


def c_string(text: str) -> str:
    """The C literal of a text's UTF-8 bytes, line by line."""
    lines = text.encode().splitlines(keepends=True) or [b""]
    return "\n  ".join('"' + "".join(map(_c_byte, line)) + '"' for line in lines)


def _c_byte(byte: int) -> str:
    plain = 32 <= byte < 127 and chr(byte) not in '"\\?'
    return chr(byte) if plain else f"\\{byte:03o}"


def _options(chosen: Mapping[str, Any]) -> str:
    fields = "".join(f", .{field} = UINT64_C({value})" for field, value in abi_fields(chosen).items())
    return f"{{ .size = sizeof(arroyo_udf_options){fields} }}"


def _exported(what: pa.Schema | pa.Field) -> str:
    """The C initialiser of a type, through pyarrow's export."""
    schema = abi.ffi.new("struct ArrowSchema *")
    what._export_to_c(abi.address(schema))
    try:
        return _initialiser(schema)
    finally:
        schema.release(schema)


def _initialiser(schema: Any) -> str:
    children = [f"&(struct ArrowSchema){_initialiser(schema.children[i])}" for i in range(schema.n_children)]
    pointers = f"(struct ArrowSchema *[]){{ {', '.join(children)} }}" if children else "NULL"
    name = "" if schema.name == abi.ffi.NULL else abi.text(schema.name)
    return (
        f"{{ .format = {c_string(abi.text(schema.format))}, .name = {c_string(name)}, .flags = {schema.flags}, "
        f".n_children = {len(children)}, .children = {pointers} }}"
    )
