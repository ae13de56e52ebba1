"""The old place of `engine/pipeline/`, which says where it is."""

raise ModuleNotFoundError("arroyo_udf_plugin.pipeline is arroyo_udf_plugin.engine.pipeline", name=__name__)
