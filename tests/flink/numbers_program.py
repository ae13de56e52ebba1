"""Counts up to a million million in Python workers: a PyFlink program that runs until it is cancelled."""

import time

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource

SLOWLY = 0.001  # seconds per number


def slowly(number: int) -> int:
    time.sleep(SLOWLY)  # the case itself: workers that run until they are cancelled, without a busy processor
    return number


env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_source(NumberSequenceSource(0, 10**12), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
numbers.map(slowly, Types.LONG()).uid("slowly").filter(lambda number: number < 0).uid("none").print()
env.execute("numbers")
