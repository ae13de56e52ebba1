"""Jobs on Kubernetes, as resources of the Flink Kubernetes Operator: one for each generation.

scheduler.py    what the controller asks of it; one thread, which looks and acts
deployed.py     one generation, from its create to its end
manifest.py     a generation as a FlinkDeployment or a FlinkSessionJob
observed.py     what the operator says of a resource, and which event that is
resources.py    the calls of the Kubernetes API
"""
