"""What our web page needs, and Arroyo's API lacks: below /api/v1/arroyo_udf, so that no endpoint of Arroyo's is hidden.

overview.py    the list of pipelines with rates, who uses a function, and who the caller is
live.py        the counts of a running pipeline, and what its functions complain about
findings.py    what holds it back
shapes.py      what requests and answers of these look like
trying.py      a function with a few rows, and the first rows of a table; shapes_trying.py: their shapes
letters.py     dead letters, and their replay; shapes_letters.py: their shapes

Guarantees: like all of the API: it writes wishes and reads facts. What runs code of users does so in child processes.
"""

from __future__ import annotations

import fastapi

from . import letters, live, overview, trying

router = fastapi.APIRouter(prefix="/arroyo_udf")
for _part in (overview, live, trying, letters):
    router.include_router(_part.router)
