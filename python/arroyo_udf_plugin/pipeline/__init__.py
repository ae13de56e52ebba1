"""A pipeline: one source, operators in a row, one or more sinks. As it is written, checked and planned.

    TOML, JSON ──read──► Pipeline ──plan──► Planned ──► engine
    Python     ──────────►  │
                            └──► JSON, schema

description.py   the models: `Pipeline` and its parts; those of connectors are beside their connectors
document.py      a TOML or JSON text as a `Pipeline`; errors with paths and lines
lines.py         where keys are in a TOML text
problems.py      all that is wrong, in one error
variables.py     `${NAME}`: environment variables in texts
calls.py         calls as a person writes them
checks.py        calls against plugins, columns and types
plan.py          opens source and plugins, and checks all: what the engine needs
hidden.py        a source whose partitions' names have no values of variables
explain.py       the chain with its schemas, for people

Guarantees: an error names the path of its key and says what to write instead; several are told together; nothing
outside has changed by then. The value of a variable is in no description, error, log line or checkpoint.
Imports nothing heavy here: the command line starts fast.
"""
