"""By what right no plan of several phases is cheaper: what straight lines rule out, what was priced, and a second opinion."""

from dataclasses import replace
from math import ceil

from catalog.money import usd_display
from planner.nets.offers import NetSearch
from planner.optimise.phases import relaxed
from planner.optimise.single import Certificate, NotProvenError
from planner.phases.search import Searched
from planner.phases.straight import STEPS

#: What the arithmetic of two solvers may differ by, relatively.
_AGREEMENT = 1e-6


def over_phases(
    certificate: Certificate, searched: Searched, nets: NetSearch, configurations: int, phases: int
) -> Certificate:
    """The certificate with what it says of plans in up to so many phases, and of plans with a standby.

    Raises `NotProvenError` if the linear model of all columns left open allows nothing as cheap as the plan found on
    them, which is a defect.
    """
    if phases < 2:
        return certificate
    said = []
    if searched.open_ is None:
        said.append(
            f"no plan of up to {phases} phases on the {configurations:,} configurations is cheaper: straight lines under "
            "their costs and hours leave none open"
        )
    else:
        model = relaxed(searched.open_)
        best = searched.best
        if best is not None and model.usd > best.found.micros / 1e6 * (1 + _AGREEMENT):
            raise NotProvenError(f"HiGHS allows no less than {model.usd} USD where {best.found} was found")
        said.append(
            f"of plans of up to {phases} phases on the {configurations:,} configurations, straight lines under their costs "
            f"and hours leave {model.columns} open; their {searched.sequences:,} sequences were compared at every share in "
            f"steps of {100 / STEPS:g} % of the work"
        )
        said.append(
            f"finer shares might save up to {usd_display(ceil(searched.finer_usd * 100) * 10_000)}, what a step of the work costs "
            "on one of those machines, and a billing step"
        )
        if model.usd < float("inf"):
            said.append(
                f"a linear model of those {model.columns}, without moves, minimum bills and rounding, allows no less than "
                f"{usd_display(round(model.usd * 1e6))} ({model.solver}){_beside_a_standby(nets, model.usd, certificate)}"
            )
        certificate = replace(certificate, milliseconds=certificate.milliseconds + model.milliseconds)
    if searched.left_usd < certificate.objective_usd:
        said.append(
            "too many sets of configurations were left to compare all of them at every share and with every offer; proven is "
            f"that none of those not compared costs less than {usd_display(round(searched.left_usd * 1e6))}"
        )
    if nets.left_open_usd < certificate.objective_usd:
        said.append(
            f"too many pairs of spot and standby were left to price all of them exactly; proven is that none of the "
            f"{nets.left_open:,} not priced costs less than {usd_display(round(nets.left_open_usd * 1e6))}"
        )
    return replace(_less(certificate, searched, nets), over=tuple(said))


def _beside_a_standby(nets: NetSearch, usd: float, certificate: Certificate) -> str:
    """Why a plan may cost less than the linear model allows."""
    if nets.best is None or usd <= certificate.objective_usd:
        return ""
    return "; this plan is cheaper since its second machines run only where the first fall behind"


def _less(certificate: Certificate, searched: Searched, nets: NetSearch) -> Certificate:
    """The bound lowered by what ties within the rounding of bills may leave unsaved, and to that of what was left open."""
    unsaved = 0.0 if searched.best is None else searched.best.found.unsaved / 1e6
    bound = min(certificate.bound_usd - unsaved, nets.left_open_usd, searched.left_usd)
    if not bound < certificate.bound_usd:
        return certificate
    return replace(certificate, bound_usd=bound, gap=(certificate.objective_usd - bound) / certificate.objective_usd)
