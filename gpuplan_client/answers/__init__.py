"""What a gpuplan service answers, as typed dictionaries: the one description of its answers, which the service's own
OpenAPI document is made from.

Money is a decimal string of US dollars, a time ISO 8601 with its zone, hours a number. Keys may be added in later
releases; what is here stays.
"""

from gpuplan_client.answers.access import Audit, AuditEntry, Key, Keys, NewKey, NewShare, OpenedShare, Share, Shares
from gpuplan_client.answers.actuals import Actual, Actuals, Forgotten
from gpuplan_client.answers.catalogue import Accelerators, Offer, Offers, Presets, Snapshots
from gpuplan_client.answers.estimate import Estimate
from gpuplan_client.answers.plan import Infeasible, Plan, PlanAnswer, Planned, Unplanned
from gpuplan_client.answers.portfolio import PortfolioAnswer
from gpuplan_client.answers.prices import Price, Prices, SnapshotDiff
from gpuplan_client.answers.problem import Problem
from gpuplan_client.answers.purchase import DecisionAnswer
from gpuplan_client.answers.refresh import Refresh, Refreshes
from gpuplan_client.answers.replan import ReplanAnswer
from gpuplan_client.answers.run import Run
from gpuplan_client.answers.spot import RunPolicy, Simulation
from gpuplan_client.answers.verification import VerificationAnswer
from gpuplan_client.answers.watch import Watch, Watches
from gpuplan_client.answers.why import WhyAnswer

__all__ = [
    "Accelerators",
    "Actual",
    "Actuals",
    "Audit",
    "AuditEntry",
    "DecisionAnswer",
    "Estimate",
    "Forgotten",
    "Infeasible",
    "Key",
    "Keys",
    "NewKey",
    "NewShare",
    "Offer",
    "Offers",
    "OpenedShare",
    "Plan",
    "PlanAnswer",
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
    "Shares",
    "Simulation",
    "SnapshotDiff",
    "Snapshots",
    "Unplanned",
    "VerificationAnswer",
    "Watch",
    "Watches",
    "WhyAnswer",
]
