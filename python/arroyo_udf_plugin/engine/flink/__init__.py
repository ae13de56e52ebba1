"""Pipelines on Apache Flink: the same description, operators and formats, on TaskManagers."""
