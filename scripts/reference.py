"""Writes the reference of the Python package, from its docstrings, to a folder: reference.py FOLDER."""

import sys
from pathlib import Path

import pdoc

import arroyo_udf_plugin

for name in arroyo_udf_plugin.__all__:
    # pdoc reads the module's dictionary, in which most names appear at their first use.
    vars(arroyo_udf_plugin)[name] = getattr(arroyo_udf_plugin, name)
pdoc.pdoc("arroyo_udf_plugin", r"!arroyo_udf_plugin\..", output_directory=Path(sys.argv[1]))
