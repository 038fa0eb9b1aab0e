"""The sentences under a plan: its assumptions, and warnings to read before spending money."""

from datetime import datetime

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.interruption_rates import TRACE_WAIT_HOURS
from gpuplan.catalog.model.offer import PLAIN_NETWORK, Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.model.provider_names import MARKETPLACE, provider_kind, provider_names
from gpuplan.catalog.model.regions import is_place_unknown, is_unheard_of, location_to_opt_into
from gpuplan.catalog.model.unavailable_machines import sale_notice
from gpuplan.planner.candidates.job_requirements import region_matches
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.explain.terms_notes import (
    bid_notice,
    known_quota,
    payments_to_make,
    quota_assumption,
    setup_assumption,
)
from gpuplan.planner.model.frameworks import framework_of_stack, runs_on
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import Choice, PhaseChoice
from gpuplan.planner.model.quota import Quota
from gpuplan.planner.model.settings import PlannerSettings

#: A sentence lists at most so many names.
MOST_NAMES = 5
#: Check a list price older than this before spending money: AWS cut P5 by 44 % within one quarter of 2025.
STALE_AFTER_DAYS = 90


def assumptions(
    question: Question, phase: PhaseChoice, notes: tuple[str, ...], *, alone: bool, of_several: bool = False
) -> tuple[str, ...]:
    """The assumptions of a phase, most consequential first; `notes` are those of its place.

    `alone` means a phase without a standby, which may need more frequent checkpoints.
    `of_several` says that other phases may be preempted too, so that the sentence names the machine.
    """
    job, work, settings = question.job, question.work, question.settings
    sentences = [
        *job.assumptions,
        *work.assumptions,
        *_framework(job),
        *question.learned.sentences(phase.choice.accelerator),
        f"{phase.training_hours / phase.hours_with_goodput:.0%} of wall time trains (goodput: failures, evaluation, checkpoints); set goodput to change it",
        (f"on {phase.choice.nodes} x {phase.choice.instance_type.name}, " if of_several else "")
        + setup_assumption(phase, settings.setup_hours),
        quota_assumption(question.markets[0].quotas, question.start),
        _input_pipeline(phase.choice),
        f"{settings.checkpoints_kept} checkpoints are stored while the job runs",
        *notes,
    ]
    if not job.data.provider and job.data.dataset_gb:
        sentences.append("data.location is not given: no egress is counted")
    if phase.checkpoint_interval_hours is not None:
        saves = phase.checkpoint_interval_hours < phase.hours_with_goodput
        often = f"a checkpoint every {phase.checkpoint_interval_hours:.2g} h" + (" (Young/Daly)" if alone else "")
        where = f"on {phase.choice.nodes} x {phase.choice.instance_type.name}, " if of_several else ""
        sentences.append(
            f"{where}{_preempted(phase, settings)}; "
            f"{often if saves else 'no checkpoint pays off before the end'} and {settings.restart_hours:g} h per restart"
        )
        sentences.append(where + _waiting(phase, settings))
    if price_kinds()[phase.choice.offer.price_kind].owned:
        basis = "amortisation and power" if settings.cost_basis == "full" else "power only"
        sentences.append(f"own machines at {settings.cost_basis} cost: {basis}")
    return tuple(dict.fromkeys(sentences))


def _framework(job: TrainingJob) -> tuple[str, ...]:
    """A sentence on the code that a job is assumed to have, where it excludes machines."""
    framework = job.training.framework
    if framework == "any":
        return ()
    return (
        f"the code is written for {framework} (training.framework), so only machines that run it were compared, and own machines",
    )


def _preempted(phase: PhaseChoice, settings: PlannerSettings) -> str:
    """How often the machines of a phase are taken away, one and all of them."""
    alone, nodes = f"{phase.interruptions_per_hour:.3g} preemptions per node-hour", phase.choice.nodes
    if nodes == 1:
        return alone
    hit = nodes**settings.node_loss_exponent
    return f"{alone}, {hit:.3g} times that for all {nodes} nodes, often lost together (node_loss_exponent)"


def _waiting(phase: PhaseChoice, settings: PlannerSettings) -> str:
    """The assumed wait for preempted machines, and its source."""
    hours = phase.wait_hours or 0.0
    if settings.spot_wait_hours is None:
        return (
            f"after each preemption the machines are away for {hours:.2g} h, unpaid: modelled from public traces of V100 "
            "and K80 for the zones of the region that sell them, the nodes and the chip's age (spot_wait_hours)"
        )
    if hours == 0:
        return (
            "a preempted machine is available again at once, in its zone or another (spot_wait_hours 0); "
            f"public traces of single zones waited {TRACE_WAIT_HOURS:g} h per loss"
        )
    return f"after each preemption the machines are away for {hours:g} h, unpaid, as spot_wait_hours states"


def _input_pipeline(choice: Choice) -> str:
    vcpus = choice.instance_type.vcpus
    hosts = f" ({vcpus / choice.instance_type.devices:g} vCPUs per accelerator)" if vcpus else ""
    return f"reading and decoding the data keeps up with the accelerators: host processors{hosts} are not modelled"


def warnings(phases: tuple[PhaseChoice, ...], start: datetime, framework: str) -> tuple[str, ...]:
    """Conditions that may make the plan wrong or hard to carry out, without duplicates."""
    return tuple(dict.fromkeys(warning for phase in phases for warning in _warnings(phase, phases, start, framework)))


def _warnings(phase: PhaseChoice, phases: tuple[PhaseChoice, ...], start: datetime, framework: str) -> tuple[str, ...]:
    choice = phase.choice
    sentences = _about_the_price(choice, start)
    device = accelerators()[choice.accelerator]
    if device.trains == "limited":
        sentences.append(f"{choice.accelerator} trains with limits: {device.trains_reason}")
    if price_kinds()[choice.offer.price_kind].owned and not runs_on(framework, device.stack):
        sentences.append(
            f"your own {choice.instance_type.name} needs code for {framework_of_stack(device.stack)}, and "
            f"training.framework is {framework}"
        )
    if phase.precision_substituted:
        sentences.append(
            f"precision auto: {phase.precision} is used since {choice.accelerator} has no bf16 tensor cores"
        )
    if not price_kinds()[choice.offer.price_kind].owned and choice.nodes == _most_concurrent(choice, phases):
        sentences.append(f"quota needed in {_quota(choice)}")
    if (zone := _zone_to_opt_into(choice.offer)) is not None:
        sentences.append(zone)
    if (notice := sale_notice(choice.offer.provider, choice.instance_type.name)) is not None:
        sentences.append(f"{notice}: check that yours can start {choice.instance_type.name}")
    if not choice.offer.available:
        sentences.append(f"the availability of {choice.instance_type.name} in {choice.offer.region} is not verified")
    sentences += _about_the_seller(choice) + bid_notice(choice)
    if is_unheard_of(choice.offer.provider, choice.offer.region):
        sentences.append(
            f"gpuplan does not know where {choice.offer.provider}:{choice.offer.region} lies: check its country, and "
            "what storage and transfer cost there"
        )
    if choice.hours.expected > 24 * 365:
        sentences.append(f"the run takes {choice.hours.expected / 8760:.1f} years; give a deadline to buy speed")
    return tuple(sentences)


def _about_the_seller(choice: Choice) -> list[str]:
    """What is unusual about who sells these machines, where they are, and how they are joined."""
    offer, machine = choice.offer, choice.instance_type
    sentences = []
    if provider_kind(offer.provider, machine.name) == MARKETPLACE:
        sentences.append(
            f"{machine.name} at {offer.provider} comes from a marketplace: its hosts belong to third parties, and a host "
            "may fail or leave at any time; leave marketplace out of constraints.provider_kinds to exclude them"
        )
    if is_place_unknown(offer.region):
        sentences.append(
            f"{offer.provider} does not state where {machine.name} is sold: egress is taken at the dearest rate, and its "
            "carbon is unknown; name constraints.regions or constraints.geography to leave such offers out"
        )
    if machine.fabric == PLAIN_NETWORK and choice.nodes > 1:
        sentences.append(
            f"no private fabric is documented between nodes of {machine.name}: they exchange over a plain network of "
            f"{machine.network_gbps:g} Gbit/s"
        )
    return sentences


def actions(phases: tuple[PhaseChoice, ...], start: datetime, quotas: tuple[Quota, ...] = ()) -> tuple[str, ...]:
    """Actions of the user before a plan can start, or before money is spent on it; each sentence once.

    A short form of some `warnings`: those that need no action are not among them.
    """
    ages = {phase.choice.offer.provider: 0 for phase in phases if _is_rented(phase)}
    for phase in phases:
        provider = phase.choice.offer.provider
        if provider in ages:
            ages[provider] = max(ages[provider], (start - phase.choice.offer.observed_at).days)
    days = max((age for provider, age in ages.items() if _is_refreshed(provider)), default=0)
    stale = any(phase.choice.offer.stale_since is not None for phase in phases)
    sentences = []
    if days > STALE_AFTER_DAYS:
        sentences.append(f"prices are up to {days} days old: run gpuplan refresh, then plan again")
    elif stale:
        sentences.append("the last refresh could not confirm every price: run gpuplan refresh, then plan again")
    sentences += [
        f"check the price at {provider}, which is {age} days old: gpuplan refresh does not read it"
        for provider, age in ages.items()
        if age > STALE_AFTER_DAYS and not _is_refreshed(provider)
    ]
    sentences += [
        f"train in {phase.precision}{_scaled(phase)}: {phase.choice.accelerator} has no bf16; training.precision: bf16 leaves it out"
        for phase in phases
        if phase.precision_substituted
    ]
    return tuple(
        dict.fromkeys(sentences + [action for phase in phases for action in _to_do(phase.choice, phases, quotas)])
    )


def _scaled(phase: PhaseChoice) -> str:
    return ", with its loss scaled" if phase.precision == "fp16" else ""


def _to_do(choice: Choice, phases: tuple[PhaseChoice, ...], quotas: tuple[Quota, ...]) -> list[str]:
    """The actions for the machines of one phase; a quota that is known is large enough."""
    offer, machine = choice.offer, choice.instance_type.name
    sentences = []
    rents_most = not price_kinds()[offer.price_kind].owned and choice.nodes == _most_concurrent(choice, phases)
    if rents_most and known_quota(quotas, choice) is None:
        sentences.append(f"ask for quota in {_quota(choice)}")
    sentences += payments_to_make(choice)
    if location_to_opt_into(offer.provider, offer.region, offer.zone) is not None:
        sentences.append(f"opt in to the local zone {offer.zone or offer.region}")
    if sale_notice(offer.provider, machine) is not None:
        sentences.append(f"check that your account can start {machine}: it is no longer sold to everyone")
    if not offer.available:
        sentences.append(f"check that {machine} is available in {offer.region}: this is not verified")
    if is_unheard_of(offer.provider, offer.region):
        sentences.append(f"check where {offer.provider}:{offer.region} lies, and what storage and transfer cost there")
    if choice.hours.expected > 24 * 365:
        sentences.append("give a deadline to buy speed: the run takes more than a year")
    return sentences


def _is_refreshed(provider: str) -> bool:
    """Whether a refresh reads this provider; one that the table lacks is taken to be read."""
    known = provider_names().get(provider)
    return known is None or known.is_refreshed


def _is_rented(phase: PhaseChoice) -> bool:
    return not price_kinds()[phase.choice.offer.price_kind].owned


def _about_the_price(choice: Choice, start: datetime) -> list[str]:
    offer = choice.offer
    sentences: list[str] = []
    age_days = (start - offer.observed_at).days
    if price_kinds()[offer.price_kind].owned:
        return sentences
    if age_days > STALE_AFTER_DAYS:
        about = "about " if offer.observed_approximately else ""
        sentences.append(
            f"the price was observed {about}{age_days} days before the start ({offer.observed_at.date()}); check it"
        )
    elif age_days < -1:
        sentences.append(
            f"the start lies before the price was observed ({offer.observed_at.date()}): it may have differed"
        )
    elif offer.observed_approximately:
        sentences.append(f"the source dates the price only roughly (from {offer.observed_at.date()})")
    if offer.stale_since is not None:
        sentences.append(f"the last refresh could not confirm the price (stale since {offer.stale_since.date()})")
    sentences += [f"{figure.replace('_', ' ')} is modelled, not published" for figure in offer.modelled]
    return sentences


def _zone_to_opt_into(offer: Offer) -> str | None:
    """The opt-in that machines of this offer need, if their zone is not open to every account."""
    location = location_to_opt_into(offer.provider, offer.region, offer.zone)
    if location is None:
        return None
    return (
        f"{offer.zone or offer.region} ({location}) is a local zone, apart from the region's own: "
        "opt in to its zone group before machines can be started there"
    )


def _most_concurrent(choice: Choice, phases: tuple[PhaseChoice, ...]) -> int:
    """The most nodes of this machine in any phase under one quota: a phase releases its nodes before the next one starts."""
    offer = choice.offer
    under = (offer.provider, offer.region, offer.instance_type, offer.price_kind)
    others = [(phase.choice.offer, phase.choice.nodes) for phase in phases]
    return max(
        nodes
        for other, nodes in others
        if (other.provider, other.region, other.instance_type, other.price_kind) == under
    )


def _quota(choice: Choice) -> str:
    """Place and size of the quota to request; machines that are only sold together count as one resource."""
    machine, offer = choice.instance_type, choice.offer
    place = offer.provider if is_place_unknown(offer.region) else f"{offer.provider} {offer.region}"
    sizes = [f"{choice.nodes} hosts"] if (machine.fixed_nodes or 1) > 1 else []
    sizes += [f"{choice.nodes * machine.vcpus:g} vCPUs"] if machine.vcpus else []
    machines = f"{1 if machine.fixed_nodes else choice.nodes} x {machine.name}" + (
        f" ({', '.join(sizes)})" if sizes else ""
    )
    devices = choice.nodes * choice.accelerators_per_node
    return f"{place}: {machines}, {devices:g} x {choice.accelerator}"


def region_notes(job: TrainingJob, regions: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Effects of the constraints on places that their author may not expect."""
    return _providers_without_a_region(job, regions) + _regions_without_a_geography(job, regions)


def _providers_without_a_region(job: TrainingJob, regions: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Sentences on listed providers that the region constraints leave without a region."""
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
    """Sentences on regions newer than this release: their geography is unknown."""
    if not job.constraints.geography:
        return ()
    names = _unheard_of(regions)
    if not names:
        return ()
    others = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    named = ", ".join(names[:MOST_NAMES])
    left_out = f"constraints.geography leaves out {named}{others}: gpuplan does not know where they lie"
    return (f"{left_out}; name regions instead to use them",)


def _unheard_of(regions: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """The regions of a snapshot that the table lacks."""
    return tuple(f"{provider}:{region}" for provider, region in regions if is_unheard_of(provider, region))
