"""The host: load plugins and call their functions, from Python over pyarrow.

library.py      load(): dlopen, checks, the plugin and its functions
installed.py    plugins that are found by name
imported.py     libraries that were built for the Arroyo engine
function.py     one function: call it, or start it
aggregate.py    an aggregate: its steps, and a call of all rows
runtime.py      a started function, with the loop "send, drain, stop"
started.py      its base: send, drain and stop, call by call
calls.py        single calls of one started function, by many tasks; shared.py: the runtime that they share
isolation.py    where functions run: in the interpreter, in subinterpreters, in worker processes
to_thread.py    work that may wait, in a thread of its own
waiters.py      waiting for a runtime, in threads and event loops
arguments.py    the one door: what callers pass, as arrays that a function takes
answers.py      input rows beside their results
batches.py      results from a plugin, and the memory of calls
ordinals.py     0, 1, 2, ... as arrays; few.py: a few values
fields.py       a plugin's schemas -> pyarrow's types
statistics.py   a runtime's counters
native.py       which functions were compiled to C, and how many of their rows were; fused.py: calls of them in one pass
logs.py         what runtimes report, to logging
html.py         functions as notebooks show them
policy.py       what becomes of rows that failed
plain_structs.py    structs as engines in Rust read them rightly

Guarantees: what comes from a plugin is checked before it is believed, and what breaks the contract is an AbiError
(`load` says what cannot be checked); an argument that a plugin did not take is released here; every call may be made
from any thread. Uses author/options.py, abi.py, errors.py and the native core, which checks results (results.rs) and
row ids (ledger.rs).
"""
