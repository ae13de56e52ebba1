"""A simulation of engines, for tests of sources and sinks: crashes at every step, lost power, damaged files.

    check_sink(folder, sink, shown)       all that a sink must keep
    check_source(folder, source)          and a source
    Simulation(scenario)                  a pipeline of your own

simulation.py    schedules of an engine that fails at every step
scenario.py      what it runs: a pipeline, its input in phases, the rows that must come out
world.py         one schedule: a folder, and the engines that run in it one after another
elsewhere.py     what sinks write to that is no folder
disk.py          a disk that forgets what was not made durable
conformance.py   what every source and sink promises
turns.py         sources in step with epochs;   report.py: what was tried

No test framework is needed. What is broken is an AssertionError with the schedule that led there.
"""

from .conformance import Numbers, check_sink, check_source, sink_scenario
from .disk import SimulatedDisk, Step
from .elsewhere import Elsewhere
from .report import Report
from .scenario import Phase, Scenario, described, straight
from .simulation import Simulation
from .world import Broken, World

__all__ = [
    "Broken",
    "Elsewhere",
    "Numbers",
    "Phase",
    "Report",
    "Scenario",
    "SimulatedDisk",
    "Simulation",
    "Step",
    "World",
    "check_sink",
    "check_source",
    "described",
    "sink_scenario",
    "straight",
]
