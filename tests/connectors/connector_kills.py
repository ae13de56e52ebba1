"""How often pipelines of this folder are killed, and when.

KILLS, in the environment, is how often those over Kafka are killed; for each other connector it is a quarter of that.
"""

from __future__ import annotations

import os

KILLS = max(2, int(os.environ.get("KILLS", "20")) // 4)
MOMENTS = ("committed", "any", "staged", "applied", "any", "sealed", "any", "cleaned")
"""Names of failpoints; "any" is none of them."""
