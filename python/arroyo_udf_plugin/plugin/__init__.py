"""What runs inside a Python plugin.

entry.py        called by the plugin's C side: load the source, register its functions with the native core
loading.py      loads a source into an interpreter; subinterpreter.py: into one that is not the main one
module.py       a source as a Python module, with the modules that its plugin carries
origin.py       the line of a library that names its source
executor.py     async functions: one event loop for all that an interpreter has started
blocking.py     blocking functions: what surrounds their calls on pool threads
conversion.py   values and arrays that go through pyarrow
vectorized.py   calls of vectorised functions
registered.py   the functions that plugins have registered in this interpreter
casting.py      arrays of other types than wanted: of arguments, and of results
forked.py       the end of a process that a function has forked
spawning.py     programs that functions start get the host's mask of signals
stacks.py       stacks and tracebacks as text, in the user's frames

The native core (native/python) looks executor, blocking, conversion and stacks up by name when it first needs them.
Guarantees: only conversion.py, vectorized.py and casting.py import pyarrow, only entry.py cffi. Uses author/, abi.py,
errors.py.
"""
