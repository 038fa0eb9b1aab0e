"""What a gpuplan service answers: the types that OpenAPI and the client are generated from.

Money is a decimal string of US dollars, a time ISO 8601 with its zone, hours a number. Keys may be added in later
releases; the present ones stay.
"""

from gpuplan.api.schemas.access import Audit, AuditEntry, Key, Keys, NewKey, NewShare, Share, SharedObject, Shares
from gpuplan.api.schemas.actual_reports import Actual, Actuals, Forgotten
from gpuplan.api.schemas.catalogue import Accelerators, Offers, Presets, Snapshots
from gpuplan.api.schemas.catalogue import OfferRow as Offer
from gpuplan.api.schemas.costs_answer import Costs, PlanInCosts, TeamBudget
from gpuplan.api.schemas.import_answer import ImportAnswer
from gpuplan.api.schemas.prices import PriceRow as Price
from gpuplan.api.schemas.prices import Prices, SnapshotDiff
from gpuplan.api.schemas.problem import Problem
from gpuplan.api.schemas.refresh_answers import Refresh, Refreshes
from gpuplan.api.schemas.run import Run
from gpuplan.api.schemas.watch_answers import Watch, Watches
from gpuplan.planner.model.afford import AffordAnswer
from gpuplan.planner.model.estimate import Estimate
from gpuplan.planner.model.explanation import WhyAnswer
from gpuplan.planner.model.ladder_replay import LadderSimulation
from gpuplan.planner.model.live_capacity import Capacity, CapacityAnswers, CapacityReport
from gpuplan.planner.model.plan import Infeasible, Plan, PlanAnswer
from gpuplan.planner.model.plan import InfeasibleAnswer as Unplanned
from gpuplan.planner.model.plan import PlannedAnswer as Planned
from gpuplan.planner.model.portfolio import PortfolioAnswer
from gpuplan.planner.model.procurement import DecisionAnswer
from gpuplan.planner.model.replan import ReplanAnswer
from gpuplan.planner.model.spot_policy import RunPolicy, Simulation
from gpuplan.planner.model.verification import VerificationAnswer

__all__ = [
    "Accelerators",
    "Actual",
    "Actuals",
    "AffordAnswer",
    "Audit",
    "AuditEntry",
    "Capacity",
    "CapacityAnswers",
    "CapacityReport",
    "Costs",
    "DecisionAnswer",
    "Estimate",
    "Forgotten",
    "ImportAnswer",
    "Infeasible",
    "Key",
    "Keys",
    "LadderSimulation",
    "NewKey",
    "NewShare",
    "Offer",
    "Offers",
    "Plan",
    "PlanAnswer",
    "PlanInCosts",
    "Planned",
    "PortfolioAnswer",
    "Presets",
    "Price",
    "Prices",
    "Problem",
    "Refresh",
    "Refreshes",
    "ReplanAnswer",
    "Run",
    "RunPolicy",
    "Share",
    "SharedObject",
    "Shares",
    "Simulation",
    "SnapshotDiff",
    "Snapshots",
    "TeamBudget",
    "Unplanned",
    "VerificationAnswer",
    "Watch",
    "Watches",
    "WhyAnswer",
]
