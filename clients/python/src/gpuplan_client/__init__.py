"""A client of a gpuplan service over HTTP, importable where neither planner nor service is installed.

```python
from gpuplan_client import Client

with Client("https://gpuplan.example.com", key="gpk_...") as gpuplan:
    answer = gpuplan.plan({"workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "15B"}, "deadline": "7d"})
    if answer["outcome"] == "planned":
        print(answer["plan"]["cost_usd"]["expected"])
```

`AsyncClient` has the same methods to be awaited. It needs httpx and tenacity alone.
"""

from gpuplan_client.answers import PlanAnswer
from gpuplan_client.async_client import AsyncClient
from gpuplan_client.client import Client
from gpuplan_client.errors import (
    Conflict,
    Forbidden,
    GpuplanError,
    NotDone,
    NotFound,
    Refused,
    RunFailed,
    TooMany,
    Unauthorized,
    Unavailable,
    Unreachable,
    Unusable,
)

__all__ = [
    "AsyncClient",
    "Client",
    "Conflict",
    "Forbidden",
    "GpuplanError",
    "NotDone",
    "NotFound",
    "PlanAnswer",
    "Refused",
    "RunFailed",
    "TooMany",
    "Unauthorized",
    "Unavailable",
    "Unreachable",
    "Unusable",
]
