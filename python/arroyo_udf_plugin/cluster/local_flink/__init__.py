"""A session cluster of Apache Flink on this machine, for development: `arroyo-udf flink up`.

distribution.py   the Flink that a Python has, and Java
session_conf.py   its configuration: loopback only, little memory, short waits
python_jar.py     the jar that jobs are submitted with, which opens no ports to others
session_folder.py the folder of a cluster: configuration, logs, who runs it, flink.json
supervisor.py     its programs: starts them, starts them again, ends them

Guarantees: nothing listens on anything but 127.0.0.1. What a cluster has started is found by a variable of its
environment, so nothing of it is left, however its programs have ended.
Assumes: Linux. Needs no package that the Python of Flink's workers lacks.
"""
