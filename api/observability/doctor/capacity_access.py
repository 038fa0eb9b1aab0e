"""Whether a cloud answers how likely machines are obtained, and the permission that this needs."""

from datetime import UTC, datetime

from gpuplan.api.observability.doctor.finding import Finding, ok, warning
from gpuplan.providers.capacity.capacity_queries import CapacityQuery, ask_capacity
from gpuplan.providers.capacity.capacity_sources import CapacitySources
from gpuplan.providers.cloud_endpoints import Sources

#: One query per cloud, about a machine that it has for years.
_PROBES = {
    "aws": ("g4dn.xlarge", "us-east-1"),
    "azure": ("Standard_NC4as_T4_v3", "eastus"),
    "gcp": ("g2-standard-4", "us-central1"),
}
PERMISSIONS = {
    "aws": "allow ec2:GetSpotPlacementScores",
    "azure": "assign the role Compute Recommendations Role, and Reader for eviction bands, on the subscription",
    "gcp": "grant compute.advice.capacity and compute.advice.capacityHistory",
}
LIMIT_SECONDS = 10.0


def capacity_access(sources: Sources) -> list[Finding]:
    """A finding per cloud; asks each once, free of charge."""
    queries = [
        CapacityQuery(provider=cloud, machines=(machine,), nodes=1, kind="spot", places=(region,))
        for cloud, (machine, region) in _PROBES.items()
    ]
    learned = ask_capacity(CapacitySources(sources), queries, asked_at=datetime.now(UTC), limit_seconds=LIMIT_SECONDS)
    findings = []
    for cloud in _PROBES:
        name = f"capacity at {cloud}"
        reasons = [row.reason for row in learned.not_learned if row.provider == cloud]
        if any(answer.provider == cloud for answer in learned.answers) and not reasons:
            findings.append(ok(name, "tells how likely machines are obtained"))
        else:
            what = "in part not learned" if any(row.provider == cloud for row in learned.answers) else "not learned"
            reason = reasons[0] if reasons else "no answer"
            findings.append(warning(name, f"{what}: {reason}; gpuplan capacity then leaves it out", PERMISSIONS[cloud]))
    return findings
