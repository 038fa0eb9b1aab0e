"""Comments of exported files: plan, phase, times, limits, and settings that the tool cannot express."""

from gpuplan.api.exports.node_script import GRACE_SECONDS, PLACEHOLDER, place
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.run_limit import cost_at_limit, limit_seconds
from gpuplan.api.presentation.text_formatting import done_below, duration, number, percent, plain, usd
from gpuplan.catalog.model.money import usd_text
from gpuplan.planner.serialization.rounded_figures import moment

#: Amazon's zone ids are the same in all accounts, zone names are not.
ZONE_ID = (
    "The price applies to the zone id {zone}. Zone names differ between accounts; find yours with: "
    "aws ec2 describe-availability-zones --region {region} --all-availability-zones "
    "--filters Name=zone-id,Values={zone} --query 'AvailabilityZones[0].ZoneName' --output text"
)


def heading(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    """The first comment lines of every file, without comment marks."""
    return [
        f"gpuplan {handover.version}: {handover.plan_id}, phase {phase.number} of {len(handover.phases)}",
        f"Job: {plain(handover.job)}",
        f"Prices: snapshot {handover.snapshot_id}; {phase.usd_per_node_hour} USD per node-hour, {phase.kind.name}",
        f"Where: {phase.machines}, each {_devices(phase)}, in {phase.place}",
        *_when(handover, phase),
        *_limit(handover, phase, wishes),
        *_checkpoints(handover, phase, wishes),
        *_kind(phase),
        *_cores(phase),
    ]


def _devices(phase: Phase) -> str:
    return f"{phase.accelerators_per_node:g} x {phase.accelerator.name}"


def _when(handover: Handover, phase: Phase) -> list[str]:
    if phase.stands_by:
        chance = "" if phase.probability is None else f", which {percent(phase.probability, 1)} of runs need"
        return [
            f"STANDBY: do not start this now. Start it {_behind(phase)}{chance}:",
            "stop the previous phase after a last checkpoint, and continue from that checkpoint here.",
        ]
    comments = [
        f"When: from {moment(phase.starts_at)} for about {duration(_hours_at_place(phase))}",
        f"19 of 20 runs need at most {handover.p95_hours_of(phase)} h",
    ]
    if phase.switch_by is not None:
        comments.append(f"The next phase is a standby: it takes over only {_behind(phase)}")
    if len(handover.phases) > 1:
        comments.append(f"Share of the work: {percent(phase.share, 3)}, after {percent(phase.share_before, 3)}")
    if phase.moved_from:
        comments.append(f"Takes over from {phase.moved_from}: copy the last checkpoint here before it starts")
    if phase.hands_over_at is not None:
        comments.append(f"Then hands over to the next phase with a checkpoint, at about {moment(phase.hands_over_at)}")
    return comments


def _hours_at_place(phase: Phase) -> float:
    """Hours from the start of its machines to its expected end."""
    return (phase.ends_at - phase.starts_at).total_seconds() / 3600


def _behind(phase: Phase) -> str:
    """The condition that starts a standby."""
    if phase.switch_by is None:
        return "if the previous phase falls behind"
    return f"if {done_below(phase.switch_share, 1)} of the work is saved at {moment(phase.switch_by)}"


def _limit(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    """The run limit, and the highest cost of the phase."""
    hours = limit_seconds(handover, phase, wishes) / 3600
    cost = usd(usd_text(cost_at_limit(handover, phase, wishes)))
    comments = [
        f"Run limit: {number(hours)} h from the start of the machines, which costs at most {cost} at these prices",
        f"{GRACE_SECONDS // 60} minutes earlier the run must write a last checkpoint; change the limit: gpuplan export --run-limit",
    ]
    if hours < handover.p95_hours_of(phase):
        comments.append("MORE THAN 5 % OF RUNS NEED LONGER THAN THIS LIMIT: they are stopped and must be resumed")
    return comments


def _checkpoints(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    where = place(handover, wishes)
    if where is None:
        comments = [
            f"Checkpoints: NO LOCATION IS SET ({PLACEHOLDER}), so this refuses to run. Give the job data.checkpoints,",
            "or export again with --checkpoints s3://bucket/path",
        ]
    else:
        comments = [f"Checkpoints: {where.text}; the run resumes from the newest complete one there"]
    if phase.checkpoint_interval_hours is not None:
        interval = duration(phase.checkpoint_interval_hours)
        comments.append(f"Write a checkpoint every {interval} (GPUPLAN_CHECKPOINT_SECONDS)")
    return comments


def _kind(phase: Phase) -> list[str]:
    """Notes on price kinds that come from a contract rather than from the way machines are started."""
    if not phase.kind.term_hours:
        return []
    return [
        f"The price needs a commitment ({phase.kind.name}, {number(phase.kind.term_hours)} h): buy it first",
        "Machines start as on demand; the cloud applies the commitment to the bill",
    ]


def _cores(phase: Phase) -> list[str]:
    """https://awsdocs-neuron.readthedocs-hosted.com : a chip of Trainium is several NeuronCores, a layout counts chips."""
    if phase.accelerator.stack != "neuron":
        return []
    return [f"One process per chip of {phase.accelerator.name}: let each use all NeuronCores of its chip"]


def again(phase: Phase) -> list[str]:
    """Advice on preemptions, for tools that do not restart machines."""
    if not phase.kind.interruptible:
        return []
    return [
        f"About {number(phase.expected_preemptions)} preemptions are expected in this phase, and this does not restart",
        "machines: it terminates the rest; start it again to resume from the newest checkpoint",
    ]


def zone_id(phase: Phase) -> list[str]:
    """How to find the zone name of an AWS zone id, for tools that need names."""
    if phase.provider != "aws" or not phase.zone:
        return []
    return [ZONE_ID.format(zone=phase.zone, region=phase.region)]


def commented(lines: list[str]) -> str:
    """The lines as comments of YAML, shell and Slurm."""
    return "".join(f"# {line}\n" for line in lines)
