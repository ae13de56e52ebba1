"""The inner library of Python plugins, which starts Python and needs libpython: see templates/plugin_inner.h.

It has nothing of a plugin in it, so it is compiled once, by the first build, and kept in the cache. cffi writes the
glue between C and the interpreter, and `templates/plugin_inner.c` is the rest. What comes out is an object file with
the bytes of the library, for the linker of a plugin.
"""

import hashlib
import json
import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

import cffi

from .. import abi
from ..errors import BuildError
from . import cache, engines, tools

TEMPLATES = Path(__file__).parent / "templates"
FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-unused-function",
         "-Wno-unused-parameter", "-Wno-missing-field-initializers", "-Wno-cast-function-type",
         "-D_GNU_SOURCE")  # fmt: skip
LINK = ("-shared", f"-Wl,{engines.OWN_SYMBOLS}", "-Wl,-z,nodelete", "-Wl,-z,defs", "-lpthread", "-ldl")
_TEMPLATE = TEMPLATES / "plugin_inner.c"
_BYTES = TEMPLATES / "plugin_inner.s"
_NAME = "arroyo_udf_inner"
# The functions that C offers to Python, and Python to C; their bodies are in plugin_inner.c and plugin/entry.py.
_CDEF = """
void plugin_failed(int32_t status, const char *text);
void plugin_defined(void);
uint32_t plugin_format(void);
uintptr_t plugin_descriptor(void);
const char *plugin_parcel(void);
const char *plugin_library(void);
const char *plugin_python(void);
uintptr_t plugin_guard(void);
void plugin_set_guard(uintptr_t guard);
extern "Python" int64_t plugin_load(void);
extern "Python" void plugin_leave(void);
"""
_INIT = f"""
from {_NAME} import ffi, lib
try:
    from arroyo_udf_plugin.plugin import entry
    entry.define(lib.plugin_format(), ffi, lib)
    lib.plugin_defined()
except BaseException:
    import sys, traceback
    text = traceback.format_exc() + "with Python %s, prefix %s" % (sys.version.split()[0], sys.prefix)
    text += "; built with " + ffi.string(lib.plugin_python()).decode()
    text += "; ARROYO_UDF_PYTHON can name the python of another environment"
    lib.plugin_failed({abi.ENVIRONMENT}, ("arroyo_udf_plugin cannot be imported\\n" + text).encode())
"""
_EXPORTS = f"{{ global: {_NAME}; local: *; }};\n"


def inputs() -> list[str]:
    """What the library depends on: Python, cffi, compiler with flags, and its files. Raises BuildError."""
    own = hashlib.sha256()
    headers = (TEMPLATES / "plugin_inner.h", TEMPLATES / "room.h", *sorted(include().glob("*.h")))
    for file in (_TEMPLATE, _BYTES, Path(__file__), *headers):
        own.update(file.read_bytes())
    return [sys.version, cffi.__version__, *_compiler_version(), *FLAGS, *_libpython(), *LINK, own.hexdigest()]


def object_file(source: Path) -> Path:
    """The bytes of the library, for a linker: from the cache, if it was compiled before.

    source: of the plugin, for error texts. Raises BuildError.
    """

    def make(output: Path) -> None:
        import cffi.recompiler  # here, because only the first build needs it

        folder = output.parent
        ffi = cffi.FFI()
        ffi.embedding_api("")
        ffi.cdef(_CDEF)
        ffi.set_source(_NAME, _TEMPLATE.read_text())
        ffi.embedding_init_code(_INIT)
        # What ffi.emit_c_code does, without its print; ffi.compile() needs setuptools from Python 3.12 on.
        cffi.recompiler.make_c_source(ffi, _NAME, _TEMPLATE.read_text(), str(folder / "inner.c"))
        (folder / "exports.map").write_text(_EXPORTS)
        folders = (TEMPLATES, include(), sysconfig.get_path("include"))
        library = [*FLAGS, *(f"-I{path}" for path in folders), "inner.c", "-o", "inner.so"]
        library += ["-Wl,--version-script=exports.map", "-Wl,--strip-all", *_libpython(), *LINK]
        for arguments in (library, ["-c", str(_BYTES), "-o", str(output)]):
            done = tools.call([*compiler(), *arguments], folder)
            if done.returncode:
                raise BuildError(f"the C compiler refused what starts Python:\n{done.stderr}", str(source))

    key = hashlib.sha256(json.dumps(["inner", *inputs()]).encode()).hexdigest()
    return cache.kept(key, "inner.o", make)


def include() -> Path:
    """The folder of the package's headers."""
    folder = Path(__file__).parent.parent / "include"
    if not (folder / "arroyo_udf.h").exists():
        raise BuildError("the package lacks include/arroyo_udf.h: install it with pip, or run `python setup.py stage`")
    return folder


def compiler() -> list[str]:
    """The command of the C compiler. Raises BuildError."""
    command = shlex.split(os.environ.get("CC", "cc"))
    if not command or shutil.which(command[0]) is None:
        raise BuildError("building needs a C compiler, and there is no `cc`; install gcc or clang, or name one in $CC")
    return command


def _compiler_version() -> list[str]:
    command = compiler()
    return [*command, tools.version_of(command).stdout]


def _libpython() -> list[str]:
    """The linker's flags for the shared libpython, for hosts that are not Python."""
    values = sysconfig.get_config_vars()
    if not values.get("Py_ENABLE_SHARED"):
        raise BuildError(f"building needs a Python with a shared library, and {sys.executable} has none")
    folder = values["LIBDIR"]
    return [f"-L{folder}", f"-Wl,-rpath,{folder}", f"-lpython{values['LDVERSION']}"]
