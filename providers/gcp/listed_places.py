"""Lists of Compute Engine and the TPU API: regions, zones, accelerated machines, attachable GPUs, TPU slices."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.gcp.api_calls import NoAccess, NotOffered, Patience, listed
from gpuplan.providers.gcp.clients import Account, compute_client, tpu_client
from gpuplan.providers.gcp.known_machines import GIB_PER_SSD_PARTITION, known_types
from gpuplan.providers.rate_limit import RateLimit

MACHINES_PER_PAGE = 500
#: States in which a machine type can no longer be started; DEPRECATED ones still can.
GONE = frozenset(("OBSOLETE", "DELETED"))
#: Warnings of an aggregated list that are not errors.
HARMLESS = frozenset(("", "NO_RESULTS_ON_PAGE"))
#: Consecutive failing zones of the TPU API after which the rest is not requested.
DEAD_ZONES = 3
#: Failing lists of Compute Engine (other than for missing access) after which the service counts as dead.
DEAD_LISTS = 2
TPU_ZONES_AT_ONCE = 4
#: There are more than a hundred zones: one that does not answer must not delay the others.
TPU_SECONDS_PER_ZONE = 20.0
TPU_CALLS_PER_SECOND = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine type in one zone, as Compute Engine states it; empty and 0 if not stated."""

    zone: str
    name: str
    vcpus: int
    ram_gib: Fraction
    accelerator_type: str
    accelerators: int
    ssd_gib: int
    retired: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachable:
    """A GPU that can be attached to N1 machines of a zone."""

    zone: str
    accelerator_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A scope of an aggregated list that did not answer, or an unusable type."""

    what: str
    reason: str


@dataclass(slots=True)
class TpuTypes:
    """The TPU API's answers: accelerator types by zone, and by zone the failure or refusal."""

    by_zone: dict[str, frozenset[str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    in_a_row: int = 0


def region_of(zone: str) -> str:
    """`us-central1` of `us-central1-a`, or of a URL that ends so."""
    return zone.rsplit("/", 1)[-1].rpartition("-")[0]


def _by_region(zones: Iterable[str]) -> dict[str, tuple[str, ...]]:
    zones_by_region: dict[str, list[str]] = defaultdict(list)
    for zone in sorted(zones):
        zones_by_region[region_of(zone)].append(zone)
    return {region: tuple(names) for region, names in zones_by_region.items() if region}


class Places:
    """The lists of one project; every call raises `ProviderFailure` if it does not answer."""

    def __init__(self, account: Account, sources: Sources, patience: Patience) -> None:
        """Sends nothing yet."""
        self._who = account
        self._sources = sources
        self._patience = patience

    def zones_by_region(self) -> tuple[dict[str, tuple[str, ...]], list[str]]:
        """Zones by region, and earlier failures: from the regions, else the zones, else the GPUs by zone.

        Raises the first `ProviderFailure` if none of the lists answers; stops after two dead ones.
        """
        failures: list[ProviderFailure] = []
        brief = replace(self._patience, seconds=self._patience.seconds / 5)
        others = Places(self._who, self._sources, brief)
        for what, ask in (
            ("Regions.list", self._regions),
            ("Zones.list", others._regions_of_zones),
            ("AcceleratorTypes.aggregated_list", others._regions_of_scopes),
        ):
            try:
                zones = ask()
                if not zones:
                    raise ProviderFailure(f"gcp Compute Engine, {what}: the list is empty; check GPUPLAN_GCP_PROJECT")
            except ProviderFailure as error:
                failures.append(error)
                if sum(not isinstance(failure, (NoAccess, NotOffered)) for failure in failures) == DEAD_LISTS:
                    break
            else:
                return zones, [f"{failure}; regions are taken from other lists" for failure in failures]
        raise failures[0]

    def _regions(self) -> dict[str, tuple[str, ...]]:
        from google.cloud import compute_v1

        request = compute_v1.ListRegionsRequest(project=self._who.project, max_results=MACHINES_PER_PAGE)
        rows = self._compute("Regions", "list", request, lambda page: type(page).pb(page).items)
        return {row.name: tuple(sorted(url.rsplit("/", 1)[-1] for url in row.zones)) for row in rows if row.name}

    def _regions_of_zones(self) -> dict[str, tuple[str, ...]]:
        return _by_region(self.zones())

    def _regions_of_scopes(self) -> dict[str, tuple[str, ...]]:
        from google.cloud import compute_v1

        request = compute_v1.AggregatedListAcceleratorTypesRequest(
            project=self._who.project, max_results=MACHINES_PER_PAGE
        )
        scopes = self._compute("AcceleratorTypes", "aggregated_list", request, lambda page: type(page).pb(page).items)
        return _by_region(scope.removeprefix("zones/") for scope in set(scopes) if scope.startswith("zones/"))

    def zones(self) -> list[str]:
        """Every zone by name."""
        from google.cloud import compute_v1

        request = compute_v1.ListZonesRequest(project=self._who.project, max_results=MACHINES_PER_PAGE)
        rows = self._compute("Zones", "list", request, lambda page: type(page).pb(page).items)
        return sorted(row.name for row in rows if row.name)

    def machines(self) -> tuple[list[Machine], list[Unread]]:
        """Every startable machine type with accelerators, and the zones that did not answer."""
        from google.cloud import compute_v1

        request = compute_v1.AggregatedListMachineTypesRequest(project=self._who.project, max_results=MACHINES_PER_PAGE)
        rows = self._scoped("MachineTypes", request, _machines_of)
        return [row for row in rows if isinstance(row, Machine)], [row for row in rows if isinstance(row, Unread)]

    def attachables(self) -> tuple[list[Attachable], list[Unread]]:
        """Every accelerator type by zone, and the zones that did not answer."""
        from google.cloud import compute_v1

        request = compute_v1.AggregatedListAcceleratorTypesRequest(
            project=self._who.project, max_results=MACHINES_PER_PAGE
        )
        rows = self._scoped("AcceleratorTypes", request, _attachables_of)
        return [row for row in rows if isinstance(row, Attachable)], [row for row in rows if isinstance(row, Unread)]

    def tpu_types(self, zones: Sequence[str]) -> TpuTypes:
        """The accelerator types (v5p-8) of each zone, and the reason for zones that did not answer.

        A zone without TPUs has none. After `DEAD_ZONES` consecutive failures the rest is not requested.
        """
        made = TpuTypes()
        rate_limit = RateLimit(TPU_CALLS_PER_SECOND if self._sources.paced else None, burst=2 * TPU_CALLS_PER_SECOND)
        with tpu_client(self._who, self._sources) as client, ThreadPoolExecutor(TPU_ZONES_AT_ONCE) as pool:

            def ask(zone: str) -> None:
                if made.in_a_row >= DEAD_ZONES:
                    made.failed[zone] = f"gcp TPU API: not asked on after {DEAD_ZONES} zones that did not answer"
                    return
                rate_limit.wait()
                self._ask_zone(client, zone, made)

            list(pool.map(ask, zones))
        return made

    def _ask_zone(self, client: Any, zone: str, made: TpuTypes) -> None:
        try:
            made.by_zone[zone] = self._tpu_types_of(client, zone)
            made.in_a_row = 0
        except NotOffered:
            made.by_zone[zone] = frozenset()
        except NoAccess as error:
            made.refused[zone] = str(error)
        except ProviderFailure as error:
            made.in_a_row += 1
            made.failed[zone] = str(error)

    def _tpu_types_of(self, client: Any, zone: str) -> frozenset[str]:
        from google.cloud import tpu_v2

        parent = f"projects/{self._who.project}/locations/{zone}"
        request = tpu_v2.ListAcceleratorTypesRequest(parent=parent, page_size=MACHINES_PER_PAGE)
        brief = replace(self._patience, seconds=min(self._patience.seconds, TPU_SECONDS_PER_ZONE))
        return frozenset(
            listed(
                f"gcp TPU API, accelerator types of {zone}",
                client.list_accelerator_types,
                request,
                lambda page: [
                    row.type_ or row.name.rsplit("/", 1)[-1] for row in type(page).pb(page).accelerator_types
                ],
                patience=brief,
            )
        )

    def _scoped[Row](self, kind: str, request: Any, rows_of: Callable[[Any], Iterable[Row]]) -> list[Row]:
        """The scopes of an aggregated list, which names every zone; raises for a list that names none."""
        scopes: set[str] = set()

        def rows_and_scopes(page: Any) -> Iterable[Row]:
            scopes.update(type(page).pb(page).items)
            return rows_of(page)

        rows = self._compute(kind, "aggregated_list", request, rows_and_scopes)
        if not scopes:
            raise ProviderFailure(f"gcp Compute Engine, {kind}.aggregated_list: the list names no zone")
        return rows

    def _compute[Row](self, kind: str, call: str, request: Any, rows_of: Callable[[Any], Iterable[Row]]) -> list[Row]:
        with compute_client(kind, self._who, self._sources) as client:
            what = f"gcp Compute Engine, {kind}.{call}"
            return listed(what, getattr(client, call), request, rows_of, patience=self._patience)


def _machines_of(page: Any) -> list[Machine | Unread]:
    rows: list[Machine | Unread] = []
    message = type(page).pb(page)
    for scope, scoped_list in sorted(message.items.items()):
        zone = scope.rsplit("/", 1)[-1]
        rows += _unread(zone, scoped_list)
        rows += [_machine(zone, row) for row in scoped_list.machine_types if _is_accelerated(row) and not _is_gone(row)]
    return rows + _unreachable(message)


def _attachables_of(page: Any) -> list[Attachable | Unread]:
    rows: list[Attachable | Unread] = []
    message = type(page).pb(page)
    for scope, scoped_list in sorted(message.items.items()):
        zone = scope.rsplit("/", 1)[-1]
        rows += _unread(zone, scoped_list)
        rows += [
            Attachable(zone=zone, accelerator_type=row.name)
            for row in scoped_list.accelerator_types
            if not _is_gone(row)
        ]
    return rows + _unreachable(message)


def _is_accelerated(row: Any) -> bool:
    return bool(row.accelerators) or row.name in known_types()


def _is_gone(row: Any) -> bool:
    return row.deprecated.state in GONE


def _unread(zone: str, scoped: Any) -> list[Unread]:
    code = scoped.warning.code
    return [] if code in HARMLESS else [Unread(what=zone, reason=f"{code} {scoped.warning.message}".strip())]


def _unreachable(page: Any) -> list[Unread]:
    return [Unread(what=unreachable.rsplit("/", 1)[-1], reason="unreachable") for unreachable in page.unreachables]


def _machine(zone: str, row: Any) -> Machine:
    accelerator = row.accelerators[0] if row.accelerators else None
    return Machine(
        zone=zone,
        name=row.name,
        vcpus=row.guest_cpus,
        ram_gib=Fraction(row.memory_mb, 1024),
        accelerator_type=accelerator.guest_accelerator_type.rsplit("/", 1)[-1] if accelerator else "",
        accelerators=accelerator.guest_accelerator_count if accelerator else 0,
        ssd_gib=row.bundled_local_ssds.partition_count * GIB_PER_SSD_PARTITION,
        retired=row.deprecated.state == "DEPRECATED",
    )
