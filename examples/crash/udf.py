"""A function with a bug: for one row in a thousand it reads through a NULL pointer.

In a thread the first such row ends the whole process. With isolation="process" each of them costs itself alone.
"""

import ctypes

from arroyo_udf_plugin import udf


@udf
def doubled(number: int) -> int:
    """Twice the number, which native code reads through a pointer."""
    entry = ctypes.c_int64(number)
    address = 0 if number % 1000 == 500 else ctypes.addressof(entry)
    return 2 * ctypes.c_int64.from_address(address).value
