"""The engine around pipelines: runs them as jobs, which survive the failure of any of its parts.

    API ──writes wishes──► database ◄──wishes, facts──► controller ──► scheduler ──► workers

database/         pipelines, jobs with wish and fact, checkpoints, functions, connections, job log
states.py         the life of a job: one table, state x event -> state, action
configuration.py  what can be set, and where each value came from
api/              the REST API
security.py       who may use it; tokens.py: names, roles, sessions; audit.py: what they have changed
client.py         of the REST API, for the command line; doctor.py: what is wrong with an installation
functions/        functions built and queries planned, in child processes
controller.py     acts on wishes and on what happens to jobs; wishes.py: which event a wish is
schedulers/       where jobs run: in threads, or in worker processes (worker.py); task.py: one start of a job
noting.py         what running jobs report, written down; records.py: bounded files of rows and numbers; shown.py: rows
                  of previews
removal.py        what deleted pipelines have stored is removed
program.py        the programs api, controller and cluster

The API writes what a user wants into the database, and nothing else. The controller compares it with what is, and acts.
What runs is the engine of `engine/`; it alone decides what is committed.

Guarantees: importing the package does not import this room, and nothing below it knows it.
Assumes: `pip install 'arroyo_udf_plugin[engine]'`.
"""
