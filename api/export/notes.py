"""What a file says of itself in comments: which plan and phase, from when to when, and what its tool cannot be told."""

from api.export.handover import Handover, Phase, Wishes
from api.export.on_node import GRACE_SECONDS, PLACEHOLDER, place
from api.export.run_limit import cost_at_limit, limit_seconds
from api.render.text import duration, number, percent, plain, usd
from catalog.money import usd_text
from planner.document_figures import moment

#: Amazon's zone ids name the same place in every account, zone names do not.
ZONE_ID = (
    "The price is that of the zone id {zone}. Zone names differ from account to account; find yours with: "
    "aws ec2 describe-availability-zones --region {region} --all-availability-zones "
    "--filters Name=zone-id,Values={zone} --query 'AvailabilityZones[0].ZoneName' --output text"
)


def heading(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    """What every file begins with, each a line without its comment mark."""
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
            "stop the phase before it after a last checkpoint, and go on from that checkpoint here.",
        ]
    found = [
        f"When: from {moment(phase.starts_at)} for about {duration(_hours_there(phase))}",
        f"19 of 20 runs need at most {handover.p95_hours_of(phase)} h",
    ]
    if phase.switch_by is not None:
        found.append(f"The next phase stands by: it takes over only {_behind(phase)}")
    if len(handover.phases) > 1:
        found.append(f"Does {percent(phase.share, 3)} of the work, after {percent(phase.share_before, 3)} of it")
    if phase.moved_from:
        found.append(f"Takes over from {phase.moved_from}: bring the last checkpoint here before it starts")
    if phase.hands_over_at is not None:
        found.append(f"Hands over to the next phase with a checkpoint then, about at {moment(phase.hands_over_at)}")
    return found


def _hours_there(phase: Phase) -> float:
    """Hours from when its machines start to when it is expected to end."""
    return (phase.ends_at - phase.starts_at).total_seconds() / 3600


def _behind(phase: Phase) -> str:
    """When a standby is called."""
    saved = "not enough" if phase.switch_share is None else f"less than {percent(phase.switch_share, 1)}"
    if phase.switch_by is None:
        return "if the phase before it falls behind"
    return f"if {saved} of the work is saved at {moment(phase.switch_by)}"


def _limit(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    """When the machines are ended whatever happens, and what the phase costs at most by then."""
    hours = limit_seconds(handover, phase, wishes) / 3600
    cost = usd(usd_text(cost_at_limit(handover, phase, wishes)))
    found = [
        f"Run limit: {number(hours)} h from the start of the machines, which costs at most {cost} at these prices",
        f"{GRACE_SECONDS // 60} minutes before it the run is asked for a last checkpoint; another one: gpuplan export --run-limit",
    ]
    if hours < handover.p95_hours_of(phase):
        found.append("MORE THAN 1 IN 20 RUNS NEED LONGER THAN THIS LIMIT: they are cut off, and have to be resumed")
    return found


def _checkpoints(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    where = place(handover, wishes)
    if where is None:
        found = [
            f"Checkpoints: NO PLACE IS NAMED ({PLACEHOLDER}), so this refuses to run. Give the job data.checkpoints,",
            "or export again with --checkpoints s3://bucket/path",
        ]
    else:
        found = [f"Checkpoints: {where.text}; the run resumes from the newest complete one there"]
    if phase.checkpoint_interval_hours is not None:
        interval = duration(phase.checkpoint_interval_hours)
        found.append(f"Write a checkpoint every {interval} (GPUPLAN_CHECKPOINT_SECONDS)")
    return found


def _kind(phase: Phase) -> list[str]:
    """Kinds that no tool can be asked for: what is owed for them comes from a contract, not from the way to start."""
    if not phase.kind.term_hours:
        return []
    return [
        f"The price is that of a commitment ({phase.kind.name}, {number(phase.kind.term_hours)} h): hold it first",
        "Machines start as on demand, and the bill applies the commitment",
    ]


def _cores(phase: Phase) -> list[str]:
    """https://awsdocs-neuron.readthedocs-hosted.com : a chip of Trainium is several NeuronCores, a layout counts chips."""
    if phase.accelerator.stack != "neuron":
        return []
    return [f"One process per chip of {phase.accelerator.name}: let each use all NeuronCores of its chip"]


def again(phase: Phase) -> list[str]:
    """What to do when machines are taken away, for tools that bring none back by themselves."""
    if not phase.kind.interruptible:
        return []
    return [
        f"Machines may be taken away, about {number(phase.expected_preemptions)} times in this phase, and nothing here",
        "brings them back: it ends what is left; start it again, and it goes on from the newest checkpoint",
    ]


def zone_id(phase: Phase) -> list[str]:
    """How a zone id of AWS becomes a name, for tools that want names."""
    if phase.provider != "aws" or not phase.zone:
        return []
    return [ZONE_ID.format(zone=phase.zone, region=phase.region)]


def commented(lines: list[str]) -> str:
    """The lines as comments of YAML, shell and Slurm."""
    return "".join(f"# {line}\n" for line in lines)
