"""Where pipelines run.

interface.py   what the controller asks of a scheduler
embedded.py    in threads of the controller's process
process.py     in processes of their own
protocol.py    what these say to the controller, and it to them
worker_files.py  by which they are found again

The seam for more machines is `interface.Scheduler`.
"""
