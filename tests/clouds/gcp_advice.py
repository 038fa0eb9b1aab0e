"""Compute Engine's advice locally, read and written by the message types of Google's own library.

with GcpAdvice().running() as server:
    Sources(gcp_compute_endpoint=server.url, gcp_project="project", anonymous=True)
"""

import re
from typing import Any

from google.cloud import compute_v1

from tests.clouds.server import CloudServer, Reply, Request

_PATH = re.compile(r"/compute/beta/projects/project/regions/(?P<region>[\w-]+)/advice/(?P<method>\w+)")
DENIED = b'{"error": {"code": 403, "message": "Required compute.advice.capacity permission for projects/project"}}'
DISABLED = b'{"error": {"code": 404, "message": "Method not found."}}'


class GcpAdvice(CloudServer):
    """Answers for every region with the same obtainability, uptime and daily preemption rates."""

    def __init__(
        self,
        *,
        obtainability: float = 0.8,
        uptime: str | None = "3600s",
        rates: tuple[float, ...] = (0.2, 0.4),
        machine_type: str | None = None,
        latency_seconds: float = 0.0,
    ) -> None:
        """`machine_type` answers for another machine than the one that was asked about."""
        super().__init__(self._answer, latency_seconds=latency_seconds)
        self.obtainability, self.uptime, self.rates, self.machine_type = obtainability, uptime, rates, machine_type

    def _answer(self, request: Request) -> Reply:
        match = _PATH.fullmatch(request.path)
        if match is None or request.method != "POST":
            return Reply(status=404, body=DISABLED)
        if match["method"] == "capacity":
            return self._capacity(match["region"], request.body)
        return self._history(request.body)

    def _capacity(self, region: str, body: bytes) -> Reply:
        asked = compute_v1.CapacityAdviceRequest.from_json(body)
        assert asked.distribution_policy.target_shape == "ANY_SINGLE_ZONE"
        assert asked.instance_properties.scheduling.provisioning_model == "SPOT"
        [selection] = asked.instance_flexibility_policy.instance_selections.values()
        [machine_type] = selection.machine_types
        scores: dict[str, Any] = {"obtainability": self.obtainability}
        if self.uptime is not None:
            scores["estimated_uptime"] = self.uptime
        shard = {
            "instance_count": asked.size,
            "machine_type": self.machine_type or machine_type,
            "provisioning_model": "SPOT",
            "zone": f"https://www.googleapis.com/compute/beta/projects/project/zones/{region}-b",
        }
        answer = compute_v1.CapacityAdviceResponse(recommendations=[{"scores": scores, "shards": [shard]}])
        return Reply(
            body=compute_v1.CapacityAdviceResponse.to_json(answer, always_print_fields_with_no_presence=False).encode()
        )

    def _history(self, body: bytes) -> Reply:
        asked = compute_v1.CapacityHistoryRequest.from_json(body)
        assert asked.instance_properties.scheduling.provisioning_model == "SPOT"
        assert list(asked.types) == ["PREEMPTION"]
        answer = compute_v1.CapacityHistoryResponse(
            machine_type=asked.instance_properties.machine_type,
            preemption_history=[{"preemption_rate": rate} for rate in self.rates],
        )
        return Reply(
            body=compute_v1.CapacityHistoryResponse.to_json(answer, always_print_fields_with_no_presence=False).encode()
        )
