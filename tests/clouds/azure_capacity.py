"""Azure's spot placement scores and Resource Graph locally.

with AzureCapacityCloud().running() as server:
    Sources(azure_arm_endpoint=server.url, azure_subscription_id=SUBSCRIPTION, anonymous=True)
"""

import json
import re
from typing import Any

from tests.clouds.azure import SUBSCRIPTION
from tests.clouds.server import CloudServer, Reply, Request

_SCORES = re.compile(
    rf"/subscriptions/{SUBSCRIPTION}/providers/Microsoft\.Compute/locations/\w+/placementScores/spot/generate"
)
GRAPH = "/providers/Microsoft.ResourceGraph/resources"
DENIED = (
    b'{"error": {"code": "AuthorizationFailed", "message": "The client does not have authorization to perform action"}}'
)
MOST_REGIONS, MOST_SIZES = 8, 5


class AzureCapacityCloud(CloudServer):
    """Scores by (size, region), `score` for all others; a band for every size and region, `page_size` rows a page."""

    def __init__(
        self,
        *,
        score: str = "High",
        scores: dict[tuple[str, str], str] | None = None,
        band: str = "5-10",
        quota: bool = True,
        page_size: int = 100,
        latency_seconds: float = 0.0,
    ) -> None:
        super().__init__(self._answer, latency_seconds=latency_seconds)
        self.score, self.scores, self.band, self.quota = score, scores or {}, band, quota
        self.page_size = page_size

    def _answer(self, request: Request) -> Reply:
        body: dict[str, Any] = json.loads(request.body or b"{}")
        if _SCORES.fullmatch(request.path):
            return self._placement(body)
        if request.path == GRAPH:
            return self._graph(body)
        return Reply(status=404, body=b'{"error": {"code": "InvalidResourceType", "message": "no such path"}}')

    def _placement(self, asked: dict[str, Any]) -> Reply:
        sizes = [item["sku"] for item in asked["desiredSizes"]]
        if len(sizes) > MOST_SIZES or len(asked["desiredLocations"]) > MOST_REGIONS:
            return Reply(
                status=400, body=b'{"error": {"code": "BadRequest", "message": "too many sizes or locations"}}'
            )
        rows = [
            {
                "sku": size,
                "region": region,
                "score": self.scores.get((size, region), self.score),
                "isQuotaAvailable": self.quota,
            }
            for region in asked["desiredLocations"]
            for size in sizes
        ]
        return Reply(body=json.dumps({**asked, "placementScores": rows}).encode())

    def _graph(self, asked: dict[str, Any]) -> Reply:
        sizes, regions = (re.findall(r"'(\w+)'", part) for part in re.findall(r"in~ \(([^)]*)\)", asked["query"]))
        rows = [{"size": size.lower(), "location": region, "band": self.band} for region in regions for size in sizes]
        start = int(asked["options"].get("$skipToken", "0"))
        page: dict[str, Any] = {"data": rows[start : start + self.page_size], "totalRecords": len(rows)}
        if start + self.page_size < len(rows):
            page["$skipToken"] = str(start + self.page_size)
        return Reply(body=json.dumps(page).encode())
