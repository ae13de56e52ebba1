"""Where pipelines run.

interface.py   what the controller asks of a scheduler
embedded.py    in threads of the controller's process
process.py     in processes of their own
protocol.py    what workers and controller say to each other
worker_files.py  how workers are found again

The seam for more machines is `interface.Scheduler`.
"""
