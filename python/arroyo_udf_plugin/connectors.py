"""The old place of `engine/connectors/`, which says where it is."""

raise ModuleNotFoundError("arroyo_udf_plugin.connectors is arroyo_udf_plugin.engine.connectors", name=__name__)
