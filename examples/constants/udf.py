"""Arguments that are the same for all rows. Build them with `arroyo-udf build udf.py --out libconstants.so`."""

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_udf_plugin import Constant, udf


@udf(vectorized=True, volatility="immutable")
def matches(text: pa.StringArray, pattern: Constant[str]) -> pa.BooleanArray:
    """Whether a regular expression matches somewhere in the text."""
    return pc.match_substring_regex(text, pattern)
