"""The engine around pipelines: a program that runs them as jobs, whatever happens to its parts.

    API ──writes wishes──► database ◄──wishes, facts──► controller ──► scheduler ──► workers

database/         pipelines, jobs with wish and fact, checkpoints, functions, connections, job log
states.py         the life of a job: one table, state x event -> state, action
configuration.py  what can be set, and where each value came from

The API writes what a user wants into the database, and nothing else. The controller compares it with what is, and acts.
What runs is the engine of `engine/`; it alone decides what is committed.

Guarantees: importing the package does not import this room, and nothing below it knows it.
Assumes: `pip install 'arroyo_udf_plugin[engine]'`.
"""
