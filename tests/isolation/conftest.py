"""Subinterpreters with a GIL of their own begin with Python 3.13; test_subinterpreter.py says what others answer."""

import sys

HAS_SUBINTERPRETERS = sys.version_info >= (3, 13)

collect_ignore_glob = [] if HAS_SUBINTERPRETERS else ["test_subinterpreter_*.py"]
