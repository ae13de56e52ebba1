"""A plugin exports its table and the entry points of engines, and nothing else; those of cffi are hidden, too."""

import subprocess

from symbols import exported

ALLOWED = {"c": {"arroyo_udf_plugin"}, "rust": {"arroyo_udf_plugin"}, "python": {"arroyo_udf_plugin"}}


def test_exported_symbols_are_the_allowed_ones(flights):
    language, library = flights
    assert exported(library) == ALLOWED[language]


def test_by_hand_exports_only_the_table(c_plugin, examples):
    assert exported(c_plugin(examples / "by_hand" / "udf.c")) == {"arroyo_udf_plugin"}


def test_plugins_are_never_unloaded(flights):
    _, library = flights
    done = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True, check=True)
    assert "NODELETE" in done.stdout
