"""Where pipelines run.

interface.py   what the controller asks of a scheduler
embedded.py    in threads of the controller's process
process.py     in processes of their own

The seam for more machines is `interface.Scheduler`.
"""
