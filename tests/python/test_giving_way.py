"""A busy event loop gives way to threads that wait for the GIL (native/python/src/asyncio/giving_way.rs).

How a thread fares without it depends on the machine; bench/test_runtime.py measures that. Here the loop's thread
releases the GIL in no other way, and CPython does not make it switch: the switch interval is endless.
"""

import subprocess
import sys

PROGRAM = """
import sys, threading
from arroyo_udf_plugin._native import answer, watch

counted, gate = 0, threading.Lock()
gate.acquire()

def count():
    global counted
    for _ in range(20):
        gate.acquire()
        counted += 1

watch()
waiting = threading.Thread(target=count)
waiting.start()
sys.setswitchinterval(1000)
for _ in range(20):
    before = counted
    gate.release()
    while counted == before:
        sum(range(10_000))
        answer()
waiting.join()
print(counted)
"""


def test_a_busy_loop_that_is_asked_gives_way() -> None:
    output = subprocess.check_output([sys.executable, "-c", PROGRAM], text=True)
    assert output == "20\n"
