"""The data shared by all checks of one submitted plan."""

from dataclasses import dataclass
from datetime import datetime

from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.model.job import Training
from gpuplan.planner.verify.configuration_enumeration import Enumeration
from gpuplan.planner.verify.cost_recomputation import Rates
from gpuplan.planner.verify.estimator_port import Estimator, Work, work_of
from gpuplan.planner.verify.expected_prices import at_expected_prices
from gpuplan.planner.verify.field_coverage import FieldCoverage
from gpuplan.planner.verify.named_offers import Counter
from gpuplan.planner.verify.offer_groups import OfferGroup, OpenOffers, open_offers
from gpuplan.planner.verify.phase_figures import offloaded_gib
from gpuplan.planner.verify.submitted_plan import SubmittedPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A submitted plan with its field coverage, work, offer groups, estimator and rates; `columns` are as observed."""

    submitted_plan: SubmittedPlan
    field_coverage: FieldCoverage
    columns: Columns
    work: Work
    open_offers: OpenOffers
    counter: Counter
    estimator: Estimator
    rates: Rates
    enumeration: Enumeration

    @property
    def open_offer_groups(self) -> list[OfferGroup]:
        """The eligible offer groups that break no requirement at any number of nodes."""
        return [
            offer_group
            for offer_group in self.open_offers.offer_groups
            if not offer_group.reason and not offer_group.broken
        ]

    @property
    def relative(self) -> float:
        """Relative tolerance of sums of money: learned corrections are read back from nine digits."""
        return 3e-8 if self.submitted_plan.learned else 1e-11


def context_of(submitted_plan: SubmittedPlan, columns: Columns, owned: tuple[OwnedMachine, ...]) -> Context:
    """The context of a submitted plan over its snapshot. Raises `UnusableInput` for a job without work."""
    job, settings = submitted_plan.job, submitted_plan.settings
    work = work_of(job.workload, job.training)
    start: datetime = submitted_plan.start
    estimator = estimator_of(submitted_plan, work, job.training)
    rates = Rates(job, start, work, settings)
    priced = at_expected_prices(columns, start) if settings.prices == "expected" else columns
    every = open_offers(priced, owned, settings, job)
    return Context(
        submitted_plan=submitted_plan,
        field_coverage=FieldCoverage(submitted_plan.body, submitted_plan.part),
        columns=columns,
        work=work,
        open_offers=every,
        counter=Counter(priced, every, settings, job.constraints),
        estimator=estimator,
        rates=rates,
        enumeration=Enumeration(job=job, rates=rates, estimator=estimator, hosts_gib=offloaded_gib(work, job.training)),
    )


def estimator_of(submitted_plan: SubmittedPlan, work: Work, training: Training) -> Estimator:
    """The estimator for the plan's work under this training configuration."""
    return Estimator(work, training, submitted_plan.settings.goodput, submitted_plan.learned)
