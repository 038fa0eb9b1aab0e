"""Capacity at AWS: spot placement scores by zone, and capacity blocks that can be booked.

EC2 scores a set of types, and gives one or two types a low score whatever there is. A machine is therefore scored with
the two most alike types, always the same ones, so that a repeated question is no new configuration (EC2 limits new ones
in 24 hours). The score is the chance of getting any of the three: for the machine alone it is an upper bound.
"""

import math
import weakref
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from threading import Lock
from typing import Any

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.capacity_answers import CapacityAnswer, NotLearned, probability_of
from gpuplan.catalog.model.offer import Implausible, InstanceType
from gpuplan.catalog.model.regions import regions as known_regions
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.catalog.runtime.extras import needed_module
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_instance_types
from gpuplan.providers.aws import DEFAULT_REGION
from gpuplan.providers.aws.api_calls import CallFailed, CallLimits, Calls
from gpuplan.providers.aws.capacity_blocks import DURATION_HOURS, KIND, NOT_SOLD, block_offerings
from gpuplan.providers.aws.regions_and_zones import Zone, read_zones
from gpuplan.providers.capacity.capacity_queries import LIMIT_SECONDS
from gpuplan.providers.capacity.contract import CapacityCall, CapacityResult, parts, split_places
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.error_redaction import redacted_text

SCORES = "EC2 GetSpotPlacementScores"
BLOCKS = "EC2 DescribeCapacityBlockOfferings"
#: Limits of one query: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_GetSpotPlacementScores.html
MOST_REGIONS = 10
#: With fewer types, EC2 documents that the score is always low.
LEAST_TYPES = 3
SCORES_PER_PAGE = 1000
#: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeCapacityBlockOfferings.html
MOST_BLOCK_NODES = 64
#: One attempt: a throttled question is not repeated, so that the rate stays below EC2's.
LIMITS = CallLimits(connect_seconds=LIMIT_SECONDS, read_seconds=LIMIT_SECONDS, attempts=1)


def capacity_source(sources: Sources) -> "AwsCapacity":
    """AWS through boto3 with the credentials of its own chain. Raises `ProviderFailure` if there are none."""
    calls, seed = signed_in(sources, LIMITS)
    return AwsCapacity(calls, seed=seed)


def signed_in(sources: Sources, limits: CallLimits) -> tuple[Calls, str]:
    """Calls with the credentials of boto3's chain, and its region. Raises `ProviderFailure` if there are none."""
    try:
        import boto3  # type: ignore[import-untyped]
        from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise ProviderFailure(f"needs {needed_module(error)}") from error
    try:
        session: Any = boto3.Session()
        has_credentials = session.get_credentials() is not None
    except BotoCoreError as error:
        raise ProviderFailure(f"the AWS credentials cannot be read: {redacted_text(error)}") from error
    if not has_credentials:
        raise ProviderFailure("no AWS credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile")
    return Calls(session, paced=sources.paced, limits=limits), session.region_name or DEFAULT_REGION


class AwsCapacity:
    """Questions to one AWS account."""

    name = "aws"
    parallel = 8

    def __init__(self, calls: Calls, *, seed: str) -> None:
        """`seed` is the region whose endpoint scores all regions."""
        self._calls, self._seed = calls, seed
        weakref.finalize(self, calls.close)
        self._lock = Lock()
        self._zones: dict[str, Mapping[str, Zone]] = {}

    def capacity(
        self, machines: Sequence[str], nodes: int, kind: str, places: Sequence[str]
    ) -> list[CapacityCall | NotLearned]:
        """A query per machine and ten regions for spot, one per machine and region for capacity blocks."""
        if kind not in ("spot", KIND):
            reason = f"AWS publishes nothing about getting {kind} machines; accepted: spot, {KIND}"
            return [NotLearned(provider=self.name, what="price_kind", reason=reason)]
        if kind == KIND and nodes > MOST_BLOCK_NODES:
            return [NotLearned(provider=self.name, reason=f"a capacity block has at most {MOST_BLOCK_NODES} machines")]
        asked, refused = split_places(self.name, places, _reason_not)
        if kind == KIND:
            calls = [
                CapacityCall(machines=(name,), regions=(region,), ask=partial(self._blocks, name, region, nodes))
                for name in machines
                for region in asked
            ]
        else:
            calls = [
                CapacityCall(machines=(name,), regions=group, ask=partial(self._scores, name, group, nodes))
                for name in machines
                for group in parts(asked, MOST_REGIONS)
            ]
        return [*refused, *calls]

    def _scores(
        self, name: str, regions: tuple[str, ...], nodes: int, asked_at: datetime, _: float
    ) -> list[CapacityResult]:
        scored = (name, *similar_types(name))
        rows = self._every(
            self._seed,
            "get_spot_placement_scores",
            "SpotPlacementScores",
            InstanceTypes=list(scored),
            TargetCapacity=nodes,
            TargetCapacityUnitType="units",
            SingleAvailabilityZone=True,
            RegionNames=list(regions),
            MaxResults=SCORES_PER_PAGE,
        )
        results = [_score(row, name, scored, nodes, asked_at) for row in rows if row.get("Region") in regions]
        named = {result.region for result in results}
        missing = "EC2 scores only its ten best zones, and none of this region is among them"
        return results + [
            NotLearned(provider=self.name, region=region, instance_type=name, reason=missing)
            for region in regions
            if region not in named
        ]

    def _blocks(self, name: str, region: str, nodes: int, asked_at: datetime, _: float) -> list[CapacityResult]:
        try:
            rows = block_offerings(self._calls, region, name, asked_at, nodes=nodes)
        except CallFailed as failure:
            if failure.code in NOT_SOLD:
                reason = f"not sold in capacity blocks there ({failure.code})"
                return [NotLearned(provider=self.name, region=region, instance_type=name, reason=reason)]
            raise ProviderFailure(str(failure)) from failure
        alike = [row for row in rows if row.get("InstanceType", name) == name and row.get("InstanceCount") == nodes]
        if rows and not alike:
            reason = f"EC2 answered for other machines than {nodes} x {name}"
            return [NotLearned(provider=self.name, region=region, instance_type=name, reason=reason)]
        block = partial(_block, name=name, region=region, nodes=nodes, asked_at=asked_at)
        if not alike:
            return [block(zone="", published="none offered", starts_at=None)]
        first: dict[str, datetime] = {}
        for row in alike:
            start, zone = _utc(row.get("StartDate")), self._zone_id(region, str(row.get("AvailabilityZone") or ""))
            if start is not None and zone and (zone not in first or start < first[zone]):
                first[zone] = start
        if not first:
            reason = "EC2's offers name neither a start nor a known zone"
            return [NotLearned(provider=self.name, region=region, instance_type=name, reason=reason)]
        return [block(zone=zone, published="offered", starts_at=start) for zone, start in sorted(first.items())]

    def _zone_id(self, region: str, name: str) -> str:
        """The id that every account knows, "" for an unknown zone; zones are read once per region."""
        with self._lock:
            known = self._zones.get(region)
        if known is None:
            try:
                known = read_zones(self._calls, region)
            except CallFailed as failure:
                raise ProviderFailure(str(failure)) from failure
            with self._lock:
                self._zones[region] = known
        return next((zone.id for zone in known.values() if name in (zone.name, zone.id)), "")

    def _every(self, region: str, operation: str, key: str, **parameters: Any) -> list[Any]:
        try:
            return self._calls.every("ec2", region, operation, key, **parameters)
        except CallFailed as failure:
            raise ProviderFailure(str(failure)) from failure


@cache
def similar_types(name: str) -> tuple[str, ...]:
    """The two most alike types of AWS: nearest in number of accelerators, then in their speed and memory, then by name.

    Empty for a type that gpuplan does not know.
    """
    types = [row for row in embedded_instance_types() if row.provider == "aws" and not row.retired]
    origin = next((row for row in types if row.name == name), None)
    if origin is None:
        return ()
    others = [row for row in types if row.name != name and row.accelerator in accelerators()]
    return tuple(row.name for row in sorted(others, key=partial(_distance, origin))[: LEAST_TYPES - 1])


def _distance(origin: InstanceType, other: InstanceType) -> tuple[float, float, float, str]:
    devices = accelerators()[origin.accelerator], accelerators()[other.accelerator]
    speeds = [device.bf16_tflops or device.fp16_tflops or device.fp32_tflops or 1.0 for device in devices]
    return (
        abs(math.log(other.accelerator_count / origin.accelerator_count)),
        abs(math.log(speeds[0] / speeds[1])),
        abs(math.log(devices[0].memory_gb / devices[1].memory_gb)),
        other.name,
    )


def _reason_not(region: str) -> str:
    """Why EC2 cannot score a region, empty if it can."""
    known = known_regions().get(("aws", region))
    if known is not None and known.parent_region:
        return f"a Local Zone of {known.parent_region}, which EC2 does not score by itself"
    if known is not None and known.partition != "commercial":
        return f"another partition of AWS ({known.partition}), which these credentials cannot ask"
    return ""


def _score(
    row: Mapping[str, Any], name: str, scored: tuple[str, ...], nodes: int, asked_at: datetime
) -> CapacityResult:
    region, zone = str(row.get("Region") or ""), str(row.get("AvailabilityZoneId") or "")
    try:
        if not zone:
            raise Implausible("the score names no zone")
        published = str(row.get("Score"))
        return CapacityAnswer(
            provider="aws",
            region=region,
            zone=zone,
            instance_type=name,
            nodes=nodes,
            price_kind="spot",
            probability=probability_of("aws", "spot", published),
            published=published,
            asked_at=asked_at,
            source=SCORES,
            scored_types=scored,
            modelled=("probability",),
        )
    except Implausible as problem:
        return NotLearned(provider="aws", region=region, instance_type=name, reason=str(problem))


def _block(
    *,
    name: str,
    region: str,
    nodes: int,
    asked_at: datetime,
    zone: str,
    published: str,
    starts_at: datetime | None,
) -> CapacityAnswer:
    return CapacityAnswer(
        provider="aws",
        region=region,
        zone=zone,
        instance_type=name,
        nodes=nodes,
        price_kind=KIND,
        probability=probability_of("aws", KIND, published),
        published=f"{published}, {DURATION_HOURS} h" if starts_at else published,
        asked_at=asked_at,
        source=BLOCKS,
        scored_types=(name,),
        starts_at=starts_at,
        modelled=("probability",),
    )


def _utc(value: object) -> datetime | None:
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)
