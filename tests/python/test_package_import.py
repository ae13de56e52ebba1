"""Importing the package is cheap, and works in a subinterpreter: author/ and plugin/ need neither cffi nor pyarrow."""

import subprocess
import sys

PROGRAM = """
try:
    import _interpreters
except ImportError:  # before 3.13
    import _xxsubinterpreters as _interpreters

LIGHT = '''
import sys
import arroyo_udf_plugin
from arroyo_udf_plugin.author import call_info
from arroyo_udf_plugin.plugin import blocking, executor, module, stacks
heavy = {"pyarrow", "numpy", "cffi", "_cffi_backend", "click"} & set(sys.modules)
assert not heavy, heavy
'''
interpreter = _interpreters.create()
failed = _interpreters.run_string(interpreter, LIGHT)
assert failed is None, failed
_interpreters.destroy(interpreter)
"""


def test_import_in_a_subinterpreter() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
