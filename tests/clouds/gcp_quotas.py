"""A local Compute Engine and Cloud Quotas that state quotas: those of regions, of the project, and of newer GPUs."""

import json
from typing import Any

from tests.clouds.server import CloudServer, Reply, Request

PROJECT = "project"
PATH = f"/compute/v1/projects/{PROJECT}"
INFOS = f"/v1/projects/{PROJECT}/locations/global/services/compute.googleapis.com/quotaInfos"
FAMILIES = "GPUS-PER-GPU-FAMILY-per-project-region"
#: A few of the many metrics of a region that are not about accelerators.
OTHERS = {"CPUS": 24.0, "DISKS_TOTAL_GB": 4096.0, "NVIDIA_K80_GPUS": 1.0}


class GcpQuotaCloud(CloudServer):
    """`regions` holds limits by region and metric, `project` those of all regions; more metrics stand beside them.

    `infos` holds, by quota id, the values of Cloud Quotas: dimensions, value, and the locations that it applies to.
    """

    def __init__(self, regions: dict[str, dict[str, float]], project: dict[str, float]) -> None:
        super().__init__(self._answer)
        self.regions, self.project = regions, project
        self.infos: dict[str, list[tuple[dict[str, str], Any, list[str]]]] = {FAMILIES: [({}, "0", list(regions))]}

    def _answer(self, request: Request) -> Reply:
        if request.path == PATH:
            return self._reply({"kind": "compute#project", "name": PROJECT, "quotas": _rows(self.project)})
        quota_id = request.path.removeprefix(f"{INFOS}/")
        if quota_id in self.infos:
            return self._reply(_info(quota_id, self.infos[quota_id]))
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


def _info(quota_id: str, values: list[tuple[dict[str, str], Any, list[str]]]) -> dict[str, Any]:
    rows = [
        {"dimensions": dimensions, "details": {"value": value}, "applicableLocations": places}
        for dimensions, value, places in values
    ]
    return {
        "name": f"projects/{PROJECT}/locations/global/services/compute.googleapis.com/quotaInfos/{quota_id}",
        "quotaId": quota_id,
        "service": "compute.googleapis.com",
        "containerType": "PROJECT",
        "dimensions": ["gpu_family", "region"] if quota_id == FAMILIES else ["region"],
        "dimensionsInfos": rows,
    }
