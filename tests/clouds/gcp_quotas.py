"""A local Compute Engine that states quotas: those of its regions, and those of the project."""

import json
from typing import Any

from tests.clouds.server import CloudServer, Reply, Request

PROJECT = "project"
PATH = f"/compute/v1/projects/{PROJECT}"
#: A few of the many metrics of a region that are not about accelerators.
OTHERS = {"CPUS": 24.0, "DISKS_TOTAL_GB": 4096.0, "NVIDIA_K80_GPUS": 1.0}


class GcpQuotaCloud(CloudServer):
    """`regions` holds limits by region and metric, `project` those of all regions; more metrics stand beside them."""

    def __init__(self, regions: dict[str, dict[str, float]], project: dict[str, float]) -> None:
        super().__init__(self._answer)
        self.regions, self.project = regions, project

    def _answer(self, request: Request) -> Reply:
        if request.path == PATH:
            return self._reply({"kind": "compute#project", "name": PROJECT, "quotas": _rows(self.project)})
        if request.path != f"{PATH}/regions":
            return Reply(status=404, body=b'{"error": {"code": 404, "message": "not found"}}')
        wanted = request.parameter("filter").removeprefix("name = ")
        items = [
            {"kind": "compute#region", "name": name, "quotas": _rows(OTHERS | limits)}
            for name, limits in self.regions.items()
            if wanted in ("", name)
        ]
        return self._reply({"kind": "compute#regionList", "items": items})

    def _reply(self, document: dict[str, Any]) -> Reply:
        return Reply(body=json.dumps(document).encode())


def _rows(limits: dict[str, float]) -> list[dict[str, Any]]:
    return [{"metric": metric, "limit": limit, "usage": 0.0} for metric, limit in limits.items()]
