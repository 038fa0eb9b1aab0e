"""By what right no plan of several phases is cheaper: what straight lines rule out, what was priced, and a second opinion."""

from dataclasses import replace

import numpy as np

from catalog.money import usd_display
from planner.nets.offers import NetSearch
from planner.optimise.phases import Lines, relaxed
from planner.optimise.single import Certificate, NotProvenError
from planner.phases.search import Searched

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
        model, columns = relaxed(undominated(searched.open_)), len(searched.open_)
        best = searched.best
        if best is not None and model.usd > best.found.micros / 1e6 * (1 + _AGREEMENT):
            raise NotProvenError(f"HiGHS allows no less than {model.usd} USD where {best.found} was found")
        said.append(
            f"of plans of up to {phases} phases on the {configurations:,} configurations, straight lines under their costs "
            f"and hours leave {columns} open; their {searched.sequences:,} sequences were compared at every share"
        )
        if model.usd < float("inf"):
            said.append(
                f"a linear model of those {columns}, without moves, minimum bills and rounding, allows no less than "
                f"{usd_display(round(model.usd * 1e6))} ({model.solver}){_beside_a_standby(nets, model.usd, certificate)}"
            )
        certificate = replace(certificate, milliseconds=certificate.milliseconds + model.milliseconds)
    if searched.not_again:
        said.append(
            f"{searched.not_again:,} sequences were compared on each machine's best offers alone: another place of the same "
            "machine, dearer but with a cheaper move, was not tried for them"
        )
    if nets.left_open_usd < certificate.objective_usd:
        said.append(
            f"only by estimates, from a mean and a variance of their losses, are {nets.left_open:,} more pairs of spot and "
            f"standby dearer; proven is that none of them costs less than {usd_display(round(nets.left_open_usd * 1e6))}"
        )
    return replace(_less(certificate, searched, nets), over=tuple(said))


def undominated(lines: Lines) -> Lines:
    """The lines without those that are never needed for the optimum of the model: another of the kin is below in everything.

    Work goes from the one to the other where that has room for all of it, and less is paid and waited for, provided that
    leaving out a column never costs: its start is worth nothing less than nothing, in money or in time.
    """
    figures = np.stack((lines.slope_usd, lines.slope_hours, lines.fixed_usd, lines.fixed_hours, lines.data_usd), axis=1)
    harmless, roomy = (lines.fixed_usd >= 0) & (lines.fixed_hours >= 0), lines.caps >= 1.0
    left, kept = np.lexsort((*figures.T[::-1], lines.kin)), []
    while len(left):
        first, left = left[0], left[1:]
        kept.append(first)
        if roomy[first]:
            below = (figures[first] <= figures[left]).all(axis=1) & (lines.kin[left] == lines.kin[first])
            left = left[~(below & harmless[left])]
    few = np.sort(np.array(kept, np.int64))
    names = ("fixed_usd", "slope_usd", "fixed_hours", "slope_hours", "data_usd", "caps", "kin")
    return replace(lines, **{name: getattr(lines, name)[few] for name in names})


def _beside_a_standby(nets: NetSearch, usd: float, certificate: Certificate) -> str:
    """Why a plan may cost less than the linear model allows."""
    if nets.best is None or usd <= certificate.objective_usd:
        return ""
    return "; this plan is cheaper since its second machines run only where the first fall behind"


def _less(certificate: Certificate, searched: Searched, nets: NetSearch) -> Certificate:
    """The bound lowered by what ties within the rounding of bills may leave unsaved, and to that of pairs left open."""
    unsaved = 0.0 if searched.best is None else searched.best.found.unsaved / 1e6
    bound = min(certificate.bound_usd - unsaved, nets.left_open_usd)
    if not bound < certificate.bound_usd:
        return certificate
    return replace(certificate, bound_usd=bound, gap=(certificate.objective_usd - bound) / certificate.objective_usd)
