"""A run on interruptible machines in two places, as its file or its body over HTTP says it."""

from typing import Any

RUN: dict[str, Any] = {
    "name": "fine-tune",
    "work": "4h",
    "deadline": "6h",
    "changeover": "15min",
    "step": "15min",
    "on_demand_usd_per_hour": 10,
    "places": [
        {"name": "a", "usd_per_hour": 3, "region": "east"},
        {"name": "b", "usd_per_hour": 2.5, "region": "west", "mean_up": "3h", "mean_down": "1h"},
    ],
    "moving": {"usd": 1, "takes": "5min"},
}
