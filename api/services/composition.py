"""All services of gpuplan, composed in one place.

Every interface parses its input, calls a service, and renders the answer. What depends on the clock (creation time,
duration, age of the prices) stands under `meta`, apart from the part of an answer that is the same for the same job, start,
snapshot, settings and version.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.actuals import ActualsService
from gpuplan.api.services.afford import AffordService
from gpuplan.api.services.api_keys import KeyService
from gpuplan.api.services.audit_log import AuditLogService
from gpuplan.api.services.audited import Audited
from gpuplan.api.services.background_runs import RunService
from gpuplan.api.services.capacity import CapacityService
from gpuplan.api.services.catalogue import CatalogueService
from gpuplan.api.services.costs import CostsService
from gpuplan.api.services.estimates import EstimateService
from gpuplan.api.services.explanations import ExplanationService
from gpuplan.api.services.imports import ImportService
from gpuplan.api.services.live_queries import LiveQueries
from gpuplan.api.services.plan_notes import NoteService
from gpuplan.api.services.planner_calls import PlannerCalls
from gpuplan.api.services.plans import PlanService
from gpuplan.api.services.portfolios import PortfolioService
from gpuplan.api.services.price_history import PriceHistoryService
from gpuplan.api.services.procurement import ProcurementService
from gpuplan.api.services.quotas import QuotaService
from gpuplan.api.services.refreshes import RefreshService
from gpuplan.api.services.replanning import ReplanService
from gpuplan.api.services.retention import RetentionService
from gpuplan.api.services.service_context import ServiceContext
from gpuplan.api.services.share_links import ShareService
from gpuplan.api.services.snapshot_status import StatusService
from gpuplan.api.services.spot_policies import SpotPolicyService
from gpuplan.api.services.verification import VerificationService
from gpuplan.api.services.watched_jobs import WatchService
from gpuplan.catalog.store.store import Store

if TYPE_CHECKING:
    from gpuplan.providers.cloud_registry import MakeCloud


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services over one store. Safe to share between threads.

    Methods of services take JSON objects and return typed answers. They raise `UnusableInput` for errors that the user can correct, and
    `StoreFailure` where the database cannot be read or written.
    """

    context: ServiceContext
    planner: PlannerCalls
    audited: Audited
    live_queries: LiveQueries
    plans: PlanService
    explanations: ExplanationService
    replanning: ReplanService
    verification: VerificationService
    estimates: EstimateService
    imports: ImportService
    afford: AffordService
    actuals: ActualsService
    portfolios: PortfolioService
    procurement: ProcurementService
    spot_policies: SpotPolicyService
    catalogue: CatalogueService
    capacity: CapacityService
    quotas: QuotaService
    costs: CostsService
    price_history: PriceHistoryService
    watches: WatchService
    retention: RetentionService
    refreshes: RefreshService
    status: StatusService
    runs: RunService
    api_keys: KeyService
    audit_log: AuditLogService
    shares: ShareService
    notes: NoteService

    @property
    def store(self) -> Store:
        """The store, opened on first use."""
        return self.context.store

    def warm_up(self) -> None:
        """Read settings, inventory and store now, load the planner, and prepare the current prices.

        A service then refuses to start on a broken configuration, and no request waits for libraries or for the prices
        of a refresh.
        """
        for module in (
            "gpuplan.api.schemas.estimate_request",
            "gpuplan.planner.serialization.plan_document",
            "gpuplan.planner.performance.single_configuration",
            "gpuplan.planner.planning",
        ):
            import_module(module)
        _ = self.context.owned
        self.context.prepare_current()
        self.refreshes.end_dead()


def open_services(environment: Environment, *, clouds: "Mapping[str, MakeCloud] | None" = None) -> Services:
    """Compose the services that `environment` describes. Reads nothing yet; `clouds` replaces the installed clouds."""
    context = ServiceContext(environment, clouds=clouds)
    planner, audited, live_queries = PlannerCalls(context), Audited(context), LiveQueries(context)
    plans, retention = PlanService(context, planner, audited, live_queries), RetentionService(context)
    watches = WatchService(context, plans, live_queries)
    return Services(
        context=context,
        planner=planner,
        audited=audited,
        live_queries=live_queries,
        plans=plans,
        explanations=ExplanationService(planner, audited),
        replanning=ReplanService(planner, audited),
        verification=VerificationService(planner, audited),
        estimates=EstimateService(planner, audited),
        imports=ImportService(planner, audited),
        afford=AffordService(planner, audited),
        actuals=ActualsService(context),
        portfolios=PortfolioService(context, audited),
        procurement=ProcurementService(context, planner, audited),
        spot_policies=SpotPolicyService(context, planner, audited),
        catalogue=CatalogueService(context),
        capacity=CapacityService(context, plans, audited, live_queries),
        quotas=QuotaService(context),
        costs=CostsService(context),
        price_history=PriceHistoryService(context),
        watches=watches,
        retention=retention,
        refreshes=RefreshService(context, watches, retention),
        status=StatusService(context),
        runs=RunService(context),
        api_keys=KeyService(context),
        audit_log=AuditLogService(context),
        shares=ShareService(context),
        notes=NoteService(context),
    )
