"""Functions and queries of users, looked at in child processes: nothing of them runs where the API runs.

workshop.py   what the API asks for: functions built, queries planned
artifacts.py  their libraries: stored, copied to this machine, checked
children.py   child processes with limits, one job each
turns.py      whose turn it is
child.py      the program of a child
building.py   a definition as a plugin                     (in the child)
planning.py   a query as a pipeline with its graph         (in the child)
roots.py      the folders in which files may be        (in the child)
graph.py      the boxes and arrows of a pipeline
asked.py      what parent and child tell each other

Guarantees: a child has a clean environment, a private folder as its working directory, limits of memory, processor time
and file size, and a time limit, after which it ends with all that it has started; two work at once. What it answers is
checked. A built function is complete or absent, is known by the hash of its library, and is not built twice.
Does not guarantee: a wall against hostile code. A child is a process of the same user.
"""
