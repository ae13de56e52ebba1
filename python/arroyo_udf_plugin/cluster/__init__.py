"""A cluster: runs pipelines as jobs, which survive the failure of any of its parts.

    API ──writes wishes──► database ◄──wishes, facts──► controller ──► scheduler ──► workers

database/         pipelines, jobs with wish and fact, checkpoints, functions, connections, job log
states.py         the life of a job: one table, state x event -> state, action; wishes.py: which event a wish is
configuration.py  what can be set, and where each value came from
api/              the REST API
security.py       who may use it, and what they have changed; tokens.py: names, roles, sessions
private_files.py  files that are their user's alone
client.py         of the REST API, for the command line; doctor.py: what is wrong with an installation
functions/        functions built and queries planned, in child processes
controller/       acts on wishes and on what happens to jobs
crossing.py       what a job takes with it when another engine runs it
job_program.py    what a job runs: its pipeline and libraries
schedulers/       where jobs run: in threads, or in worker processes (worker.py); task.py: what is to run, and what is
                  heard of it; generation.py: runs it
local_flink/      Apache Flink on this machine, for development
reports.py        what jobs report; records.py: bounded files of rows and numbers; preview_rows.py: rows of previews
monitoring/       metrics and spans; logs.py: log lines
program.py        the programs api, controller and cluster; serving.py: their servers

The API writes what a user wants into the database, and nothing else. The controller compares it with what is, and acts.
What runs is the engine of `engine/`; it alone decides what is committed.

Guarantees: importing the package does not import this room, and nothing below it knows it.
Assumes: `pip install 'arroyo_udf_plugin[cluster]'`.
"""
