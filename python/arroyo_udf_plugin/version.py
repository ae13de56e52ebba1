"""The versions of the toolkit. Imports nothing, so that every room may use it."""

__version__ = "0.1.0"
"""The same as in pyproject.toml."""

PLUGIN_FORMAT = 2
"""The format of Python plugins. A plugin carries the number that it was built with; the toolkit loads only its own.

It covers everything that a built library uses of the installed toolkit, apart from the ABI: the name of
plugin/entry.py, its `define` and the arguments, the C functions that it gets (`_CDEF` in build/inner.py), and the
capsules of `_native`. Raise it if a change breaks plugins that exist, and only then. The public names that a source
imports are not part of it.
"""
