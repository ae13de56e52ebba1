"""Where pipelines run.

interface.py      what the controller asks of a scheduler: the seam for more machines
embedded.py       in threads of the controller's process; those that may be the reason why it dies, in workers
process.py        in processes of their own; spawning.py: a spare one for the next job
dispatching.py    which of these a job has
flink/            as jobs of an Apache Flink cluster
kubernetes/       as resources of the Flink Kubernetes Operator
protocol.py       what workers and controller say to each other; messages.py: as types
worker_files.py   how workers are found again, and killed; worker_output.py: what they write, and what they died in
"""
