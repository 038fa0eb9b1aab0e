"""Cost of a decision in each scenario of the forecast, compared with buying and committing to nothing.

Machines and terms are chosen before the scenario is known, so their cost is the same in all scenarios; running and
renting costs differ. With probabilities p_s and present values C_s (answer) and N_s (nothing bought):

    saves_s = N_s - C_s,   sum_s p_s saves_s = the expected saving,   P(loss) = sum of p_s over saves_s < 0

Within a scenario random arrivals average out over the years and are ignored here.
"""

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.model.procurement import ProcurementRisk, ScenarioCost
from gpuplan.planner.procurement.capacity_expansion import Expanded
from gpuplan.planner.procurement.forecast import Forecast
from gpuplan.planner.procurement.procurement_model import Model
from gpuplan.planner.procurement.rounded_figures import money, signed_money, six_digits

Floats = NDArray[np.float64]

#: A smaller loss is the solver's tolerance.
_TOLERANCE_USD = 0.005


def risk(forecast: Forecast, model: Model, best: Expanded, stay: Expanded) -> ProcurementRisk:
    """Costs and savings by scenario; scenarios of probability 0 are left out."""
    chances = np.array([probability for _, probability in forecast.scenarios])
    cost, nothing = (_by_scenario(model, answer, chances) for answer in (best, stay))
    saves = nothing - cost
    scenarios = tuple(
        ScenarioCost(name=name, probability=p, cost_usd=money(float(cost[s])), saves_usd=signed_money(float(saves[s])))
        for s, (name, p) in enumerate(forecast.scenarios)
        if p > 0
    )
    loses = float(chances[saves < -_TOLERANCE_USD].sum())
    return ProcurementRisk(loses_probability=six_digits(loses), scenarios=scenarios)


def _by_scenario(model: Model, answer: Expanded, chances: Floats) -> Floats:
    """[scenarios]: present value of the answer's cost in each scenario."""
    data = model.expansion
    running = np.where(np.isfinite(data.running_usd), data.running_usd, 0.0)
    rent = np.where(np.isfinite(data.rent_usd), data.rent_usd, 0.0)
    done = answer.share * data.runs_per_hour[:, None, :]
    rented = np.maximum(0.0, data.runs_per_hour - done.sum(axis=1))
    usd = ((done * running).sum(axis=(1, 2)) + rented @ rent) * data.hours
    varying = np.bincount(model.scenario_of, weights=usd, minlength=len(chances))
    fixed = float(data.fixed_usd @ answer.units)
    return fixed + np.divide(varying, chances, out=np.zeros(len(chances)), where=chances > 0)
