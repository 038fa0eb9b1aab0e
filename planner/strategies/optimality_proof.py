"""Why no plan of two phases is cheaper: what the bounds exclude, what was priced, and a second solver's bound."""

from dataclasses import replace
from math import ceil

from gpuplan.catalog.model.money import usd_display
from gpuplan.planner.model.certificate import SolverCertificate
from gpuplan.planner.strategies.phased.linear_underestimators import STEPS, LinearUnderestimator
from gpuplan.planner.strategies.phased.phase_model import MOST_MODELLED, relaxed
from gpuplan.planner.strategies.phased.phase_search import Phased, Searched
from gpuplan.planner.strategies.single.choice_model import NotProvenError
from gpuplan.planner.strategies.standby.standby_pairs import StandbySearch

#: The relative difference that the arithmetic of two solvers may have.
_AGREEMENT = 1e-6


def over_phases(
    certificate: SolverCertificate,
    searched: Searched,
    standby_search: StandbySearch,
    configurations: int,
    *,
    least_saving_percent: float,
) -> SolverCertificate:
    """The certificate with its sentences on plans of two phases and on plans with a standby.

    Raises `NotProvenError`, a defect, if the linear model of the open columns has a higher bound than the cost of the plan
    found on them.
    """
    sentences = []
    if least_saving_percent:
        sentences.append(
            f"a plan that changes machines counts as its cost / {1 - least_saving_percent / 100:g}, since a move has to save "
            f"{least_saving_percent:g} % (least_saving_of_a_move_percent)"
        )
    if searched.open_ is None:
        sentences.append(
            f"no plan of two phases on the {configurations:,} configurations is cheaper: linear lower bounds "
            "on their costs and hours exclude all of them"
        )
    else:
        sentences.append(
            f"of plans of two phases on the {configurations:,} configurations, linear lower bounds on their "
            f"costs and hours leave {len(searched.open_)} open; their {searched.sequences:,} sequences were compared at every share in "
            f"steps of {100 / STEPS:g} % of the work"
        )
        sentences.append(
            f"finer shares might save up to {usd_display(ceil(searched.finer_usd * 100) * 10_000)}, the cost of one step of the work "
            "on one of those machines, plus a billing step"
        )
        certificate, opinion = _second_opinion(certificate, searched.open_, searched.best, standby_search)
        sentences += opinion
    if searched.left_usd < certificate.objective_usd:
        sentences.append(
            "too many pairs of configurations were left to compare all of them at every share and with every offer; it is "
            f"proven that none of the others costs less than {usd_display(round(searched.left_usd * 1e6))}"
        )
    if standby_search.left_open_usd < certificate.objective_usd:
        sentences.append(
            f"too many pairs of spot and standby were left to price all of them exactly; it is proven that none of the "
            f"{standby_search.left_open:,} not priced costs less than {usd_display(round(standby_search.left_open_usd * 1e6))}"
        )
    return replace(_less(certificate, searched, standby_search), over=tuple(sentences))


def _second_opinion(
    certificate: SolverCertificate, open_: LinearUnderestimator, best: Phased | None, standby_search: StandbySearch
) -> tuple[SolverCertificate, list[str]]:
    """The certificate with the time of the linear model of the open columns, and the model's sentence on them."""
    if len(open_) > MOST_MODELLED:
        return certificate, [
            f"those {len(open_):,} are too many for a linear model: the bounds alone prove that none of them is cheaper"
        ]
    model = relaxed(open_)
    if best is not None and model.usd > best.plan.micros / 1e6 * (1 + _AGREEMENT):
        raise NotProvenError(f"HiGHS proves a bound of {model.usd} USD, above the plan that was found: {best.plan}")
    certificate = replace(certificate, milliseconds=certificate.milliseconds + model.milliseconds)
    if not model.usd < float("inf"):
        return certificate, []
    mixed = "" if model.whole else ", of any mix of them"
    sentence = (
        f"a linear model of those {model.columns}{mixed}, without moves, minimum bills and rounding, has the lower bound "
        f"{usd_display(round(model.usd * 1e6))} ({model.solver}){_beside_a_standby(standby_search, model.usd, certificate)}"
    )
    return certificate, [sentence]


def _beside_a_standby(standby_search: StandbySearch, usd: float, certificate: SolverCertificate) -> str:
    """Why a plan may cost less than the bound of the linear model."""
    if standby_search.best is None or usd <= certificate.objective_usd:
        return ""
    return "; this plan is cheaper since its standby runs only if the spot machines fall behind"


def _less(certificate: SolverCertificate, searched: Searched, standby_search: StandbySearch) -> SolverCertificate:
    """The bound lowered by unresolved ties within the rounding of bills, and to that of pairs that were not compared."""
    unsaved = 0.0 if searched.best is None else searched.best.plan.unsaved / 1e6
    bound = min(certificate.bound_usd - unsaved, standby_search.left_open_usd, searched.left_usd)
    if not bound < certificate.bound_usd:
        return certificate
    return replace(certificate, bound_usd=bound, gap=(certificate.objective_usd - bound) / certificate.objective_usd)
