"""What our web page needs, and Arroyo's API lacks: below /api/v1/arroyo_udf, so that no endpoint of Arroyo's is hidden.

shapes.py      what its requests and answers look like
overview.py    the list of pipelines with rates, who uses a function, and who the caller is
live.py        the counts of a running pipeline, and what its functions complain about
findings.py    what holds it back

Guarantees: like all of the API: it writes wishes and reads facts. What runs code of users does so in child processes.
"""

from __future__ import annotations

import fastapi

from . import live, overview

router = fastapi.APIRouter(prefix="/arroyo_udf")
router.include_router(overview.router)
router.include_router(live.router)
