"""gpuplan: the provably cheapest way to run a training job on hardware you own or rent.

    import gpuplan

    plan = gpuplan.plan("job.yaml")
    plan.cost_usd.expected

In a checkout the subpackages are links to the folders `catalog`, `providers`, `planner` and `api` at the repository's root.
In a wheel they are folders. They are imported as `gpuplan.catalog`, ... and under no other name.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuplan.api.python.answers import Infeasible, Plan
    from gpuplan.api.python.estimates import Estimate
    from gpuplan.api.python.explanations import Explanation
    from gpuplan.api.python.functions import estimate, offers, plan, why
    from gpuplan.api.python.jobs import Job
    from gpuplan.api.python.offers import Offers
    from gpuplan.catalog.runtime.errors import Fault, StoreFailure, UnusableInput

__all__ = [
    "Estimate",
    "Explanation",
    "Fault",
    "Infeasible",
    "Job",
    "Offers",
    "Plan",
    "StoreFailure",
    "UnusableInput",
    "estimate",
    "offers",
    "plan",
    "why",
]

_MODULES = {
    "Estimate": "gpuplan.api.python.estimates",
    "Explanation": "gpuplan.api.python.explanations",
    "Fault": "gpuplan.catalog.runtime.errors",
    "Infeasible": "gpuplan.api.python.answers",
    "Job": "gpuplan.api.python.jobs",
    "Offers": "gpuplan.api.python.offers",
    "Plan": "gpuplan.api.python.answers",
    "StoreFailure": "gpuplan.catalog.runtime.errors",
    "UnusableInput": "gpuplan.catalog.runtime.errors",
    "estimate": "gpuplan.api.python.functions",
    "offers": "gpuplan.api.python.functions",
    "plan": "gpuplan.api.python.functions",
    "why": "gpuplan.api.python.functions",
}


def __getattr__(name: str) -> object:
    """The public names are imported on first use, so that `import gpuplan` loads no library."""
    if name not in _MODULES:
        raise AttributeError(f"module 'gpuplan' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
