"""What our web page needs, and Arroyo's API lacks: below /api/v1/arroyo_udf, so that no endpoint of Arroyo's is hidden.

shapes.py      what its requests and answers look like
letters.py     dead letters, and their replay
shapes_letters.py   of these

Guarantees: like all of the API: it writes wishes and reads facts. What runs code of users does so in child processes.
"""

from __future__ import annotations

import fastapi

from . import letters

router = fastapi.APIRouter(prefix="/arroyo_udf")
router.include_router(letters.router)
