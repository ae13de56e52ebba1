"""A simulation of engines, for tests of sources and sinks: crashes at every step, lost power, damaged files.

    check_sink(folder, sink, shown)       all that a sink must keep
    check_source(folder, source)          and a source
    Simulation(scenario)                  a pipeline of your own

No test framework is needed. What is broken is an AssertionError with the schedule that led there.
"""

from .conformance import Numbers, check_sink, check_source, sink_scenario
from .disk import SimulatedDisk, Step
from .report import Report
from .scenario import Phase, Scenario, described, straight
from .simulation import Simulation
from .world import Broken, World

__all__ = [
    "Broken",
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
