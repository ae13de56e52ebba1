"""What the author of a Python function imports, by way of the package: `from arroyo_udf_plugin import udf`.

udf.py         the decorator
udaf.py        the decorators of aggregates and of table functions
steps.py       the steps of an aggregate, and the rows of a table function, as the core calls them
options.py     the options of async functions: the one table of their names, values and defaults
constant.py    parameters of vectorised functions that are one value
types.py       annotations -> Arrow types; for builds, and for plugins with dataclasses
hints.py       annotations, taken apart
adapting.py    functions as the core calls them: it knows structs as dicts, and enums and UUIDs as texts
call_info.py   what a call can ask about itself

Guarantees: runs in a subinterpreter. Only types.py imports pyarrow, and nothing imports cffi. Uses errors.py and the
native core, and nothing else of this package.
"""
