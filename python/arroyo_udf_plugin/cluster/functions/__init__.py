"""Functions and queries of users, looked at in child processes: nothing of them runs where the API runs.

builder.py        what the API asks for: functions built and tried, queries planned, dead letters replayed
trial.py          a try as the parent sees it
artifacts.py      their libraries: stored, copied to this machine, checked
children.py       child processes with limits, one job each
fair_queue.py     whose turn it is
messages.py       what parent and child tell each other
child.py          the program of a child; in it:
building.py         a definition as a plugin
trying.py           a function that is called for a few rows
planning.py         a query as a pipeline with its graph
replaying.py        dead letters of a job run again
allowed_paths.py    the folders in which files may be
graph.py          the boxes and arrows of a pipeline
opening.py        the program of a job as workers run it
sampling.py       the fields and the first rows of a table
readable.py       rows as JSON

Guarantees: a child has a clean environment, a private folder as its working directory, limits of memory, processor time
and file size, and a time limit, after which it ends with all that it has started; two work at once. A replay is to work
as in a worker, so it gets the environment and the folder of one. What a child answers is checked. A built function is
complete or absent, is known by the hash of its library, and is not built twice.
Does not guarantee: a wall against hostile code. A child is a process of the same user.
"""
