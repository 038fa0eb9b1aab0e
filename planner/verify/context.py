"""Everything that the checks of one claim share."""

from dataclasses import dataclass
from datetime import datetime

from catalog.columns import Columns
from catalog.owned import OwnedMachine
from planner.job import Training
from planner.verify.bill import Rates
from planner.verify.claim import Claim
from planner.verify.enumeration import Enumeration
from planner.verify.estimates import Estimator, Work, work_of
from planner.verify.ledger import Ledger
from planner.verify.named import Counter
from planner.verify.shelves import Lot, Shelves, shelves


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A claim with its ledger, its work, all lots, and what prices and times them."""

    claim: Claim
    ledger: Ledger
    columns: Columns
    work: Work
    shelves: Shelves
    counter: Counter
    estimator: Estimator
    rates: Rates
    enumeration: Enumeration

    @property
    def open_lots(self) -> list[Lot]:
        """The lots that can be had and break no requirement, whatever the number of nodes."""
        return [lot for lot in self.shelves.lots if not lot.reason and not lot.broken]

    @property
    def relative(self) -> float:
        """How far sums of money may differ: what past runs taught is shown, and so read back, to nine digits."""
        return 3e-8 if self.claim.learned else 1e-11


def context_of(claim: Claim, columns: Columns, owned: tuple[OwnedMachine, ...]) -> Context:
    """The context of a claim over the columns of its snapshot. Raises `UnusableInput` for a job that has no work."""
    job, settings = claim.job, claim.settings
    work = work_of(job.workload, job.training)
    start: datetime = claim.start
    estimator = estimator_of(claim, work, job.training)
    rates = Rates(job, start, work, settings)
    every = shelves(columns, owned, settings, job.constraints)
    return Context(
        claim=claim,
        ledger=Ledger(claim.body, claim.part),
        columns=columns,
        work=work,
        shelves=every,
        counter=Counter(columns, every, settings, job.constraints),
        estimator=estimator,
        rates=rates,
        enumeration=Enumeration(job=job, rates=rates, estimator=estimator),
    )


def estimator_of(claim: Claim, work: Work, training: Training) -> Estimator:
    """The estimator for the claim's work, trained like this."""
    return Estimator(work, training, claim.settings.goodput, claim.learned)
