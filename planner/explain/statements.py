"""The sentences under a plan: what it assumes, and what its user should know before spending money."""

from datetime import datetime

from catalog.accelerators import accelerators
from catalog.interruptions import TRACE_WAIT_HOURS
from catalog.offer import Offer
from catalog.opt_in_zones import location_to_opt_into
from catalog.price_kinds import price_kinds
from catalog.regions import is_unheard_of
from catalog.restricted_sales import sale_notice
from planner.answer import Choice, Phase
from planner.candidates.requirements import region_matches
from planner.job import TrainingJob
from planner.question import Question

#: More names than these make no sentence.
MOST_NAMES = 5
#: A list price older than this is worth a look before money is spent: AWS cut P5 by 44 % within one quarter of 2025.
STALE_AFTER_DAYS = 90


def assumptions(
    question: Question, phase: Phase, notes: tuple[str, ...], *, alone: bool, of_several: bool = False
) -> tuple[str, ...]:
    """What a phase takes for granted, most consequential first; `notes` are those of its place.

    `alone` says that no standby is there, for whose sake checkpoints may be written more often than is best without one;
    `of_several`, that other phases may be preempted too, so that this one is named.
    """
    job, work, settings = question.job, question.work, question.settings
    said = [
        *job.assumptions,
        *work.assumptions,
        *question.learned.sentences(phase.choice.accelerator),
        f"{settings.goodput:.0%} of wall time trains (goodput: restarts, evaluation, checkpoints); set goodput to change it",
        f"{settings.setup_hours:g} h of paid set-up before the first step (boot, image, data)",
        "machines are there when asked for: neither quota nor waiting for capacity is modelled",
        _input_pipeline(phase.choice),
        f"{settings.checkpoints_kept} checkpoints are stored while the job runs",
        *notes,
    ]
    if not job.data.provider and job.data.dataset_gb:
        said.append("data.location is not given: no egress is counted")
    if phase.checkpoint_interval_hours is not None:
        saves = phase.checkpoint_interval_hours < phase.hours_with_goodput
        often = f"a checkpoint every {phase.checkpoint_interval_hours:.2g} h" + (" (Young/Daly)" if alone else "")
        where = f"on {phase.choice.nodes} x {phase.choice.instance_type.name}, " if of_several else ""
        said.append(
            f"{where}preemptions are independent, {phase.interruptions_per_hour:.3g} per node-hour; "
            f"{often if saves else 'no checkpoint pays off before the end'} and {settings.restart_hours:g} h per restart"
        )
        said.append(_waiting(settings.spot_wait_hours))
    if price_kinds()[phase.choice.offer.price_kind].owned:
        basis = "amortisation and power" if settings.cost_basis == "full" else "power only"
        said.append(f"own machines at {settings.cost_basis} cost: {basis}")
    return tuple(dict.fromkeys(said))


def _waiting(hours: float) -> str:
    """How long a machine that was taken away is waited for, and what is known of it."""
    seen = f"public traces of single zones waited {TRACE_WAIT_HOURS:g} h per loss (spot_wait_hours)"
    if hours == 0:
        return f"a machine that is taken away can be had again at once, there or in another zone; {seen}"
    return f"after each preemption {hours:g} h pass on average, unpaid, until all machines are back; {seen}"


def _input_pipeline(choice: Choice) -> str:
    vcpus = choice.instance_type.vcpus
    hosts = f" ({vcpus / choice.instance_type.devices:g} vCPUs per accelerator)" if vcpus else ""
    return f"reading and decoding the data keeps up with the accelerators: host processors{hosts} are not modelled"


def warnings(phases: tuple[Phase, ...], start: datetime) -> tuple[str, ...]:
    """What may make the plan wrong or hard to carry out, each sentence once."""
    return tuple(dict.fromkeys(each for phase in phases for each in _warnings(phase, phases, start)))


def _warnings(phase: Phase, phases: tuple[Phase, ...], start: datetime) -> tuple[str, ...]:
    choice = phase.choice
    said = _about_the_price(choice, start)
    device = accelerators()[choice.accelerator]
    if device.trains == "limited":
        said.append(f"{choice.accelerator} trains with limits: {device.trains_reason}")
    if phase.precision_substituted:
        said.append(f"precision auto: {phase.precision} is used since {choice.accelerator} has no bf16 tensor cores")
    if not price_kinds()[choice.offer.price_kind].owned and choice.nodes == _most_at_once(choice, phases):
        said.append(_quota(choice))
    if (zone := _zone_to_opt_into(choice.offer)) is not None:
        said.append(zone)
    if (notice := sale_notice(choice.offer.provider, choice.instance_type.name)) is not None:
        said.append(f"{notice}: check that yours can start {choice.instance_type.name}")
    if not choice.offer.available:
        said.append(f"nobody has verified that {choice.instance_type.name} can be had in {choice.offer.region}")
    if is_unheard_of(choice.offer.provider, choice.offer.region):
        said.append(
            f"gpuplan does not know where {choice.offer.provider}:{choice.offer.region} lies: check its country, and "
            "what storage and transfer cost there"
        )
    if choice.hours.expected > 24 * 365:
        said.append(f"the run takes {choice.hours.expected / 8760:.1f} years; give a deadline to buy speed")
    return tuple(said)


def _about_the_price(choice: Choice, start: datetime) -> list[str]:
    offer = choice.offer
    said: list[str] = []
    age_days = (start - offer.observed_at).days
    if price_kinds()[offer.price_kind].owned:
        return said
    if age_days > STALE_AFTER_DAYS:
        about = "about " if offer.observed_approximately else ""
        said.append(
            f"the price was observed {about}{age_days} days before the start ({offer.observed_at.date()}); check it"
        )
    elif age_days < -1:
        said.append(f"the start lies before the price was observed ({offer.observed_at.date()}): it may have differed")
    elif offer.observed_approximately:
        said.append(f"the source dates the price only roughly (from {offer.observed_at.date()})")
    if offer.stale_since is not None:
        said.append(f"the last refresh could not confirm the price (stale since {offer.stale_since.date()})")
    said += [f"{figure.replace('_', ' ')} is modelled, not published" for figure in offer.modelled]
    return said


def _zone_to_opt_into(offer: Offer) -> str | None:
    """What to do before machines of this offer can be started, where the zone is not open from the start."""
    location = location_to_opt_into(offer.provider, offer.region, offer.zone)
    if location is None:
        return None
    return (
        f"{offer.zone or offer.region} ({location}) is a local zone, apart from the region's own: "
        "opt in to its zone group before machines can be started there"
    )


def _most_at_once(choice: Choice, phases: tuple[Phase, ...]) -> int:
    """The most nodes that a phase has of this machine under one quota: phases give theirs back before the next start."""
    offer = choice.offer
    under = (offer.provider, offer.region, offer.instance_type, offer.price_kind)
    others = [(each.choice.offer, each.choice.nodes) for each in phases]
    return max(
        nodes for each, nodes in others if (each.provider, each.region, each.instance_type, each.price_kind) == under
    )


def _quota(choice: Choice) -> str:
    """What must be granted; machines that can be had only together count as the one resource they are."""
    each, places = choice.instance_type, f"{choice.offer.provider} {choice.offer.region}"
    sizes = [f"{choice.nodes} hosts"] if (each.fixed_nodes or 1) > 1 else []
    sizes += [f"{choice.nodes * each.vcpus:g} vCPUs"] if each.vcpus else []
    machines = f"{1 if each.fixed_nodes else choice.nodes} x {each.name}" + (f" ({', '.join(sizes)})" if sizes else "")
    devices = choice.nodes * choice.accelerators_per_node
    return f"quota needed in {places}: {machines}, {devices:g} x {choice.accelerator}"


def region_notes(job: TrainingJob, regions: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """What the constraints on places leave out that their author may not expect."""
    return _providers_without_a_region(job, regions) + _regions_without_a_geography(job, regions)


def _providers_without_a_region(job: TrainingJob, regions: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Listed providers that the region constraints leave without a region."""
    if not job.constraints.regions:
        return ()
    left = {provider for provider, region in regions if region_matches(provider, region, job.constraints.regions)}
    named = [provider for provider in job.constraints.providers if any(provider == owner for owner, _ in regions)]
    return tuple(
        f"constraints.regions leaves {provider} without a region; name one of its own, or leave it out of providers"
        for provider in named
        if provider not in left
    )


def _regions_without_a_geography(job: TrainingJob, regions: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Regions that opened after this release: nobody can say that they lie in a geography the job allows."""
    if not job.constraints.geography:
        return ()
    names = [f"{provider}:{region}" for provider, region in regions if is_unheard_of(provider, region)]
    if not names:
        return ()
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    named = ", ".join(names[:MOST_NAMES])
    said = f"constraints.geography leaves out {named}{more}: gpuplan does not know where they lie"
    return (f"{said}; name regions instead to use them",)
