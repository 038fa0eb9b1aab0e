"""A task for SkyPilot: https://docs.skypilot.co/en/latest/reference/yaml-spec.html

The machine type is fixed; SkyPilot tries the places of the plan's capacity ladder that have the same machines in `ordered`. A TPU slice is an accelerator on one node whose hosts all
run the command. Other devices than NVIDIA's are passed by Docker options, the fabric by the best network tier. Spot
runs are managed jobs (`sky jobs launch`), which recover from preemptions. Only Google Cloud gets a zone: Amazon's zone
ids are not names, and Azure's prices have no zone.
"""

from gpuplan.api.exports.container_stacks import image, machine_and_cards, stack
from gpuplan.api.exports.file_comments import heading, zone_id
from gpuplan.api.exports.gcloud import fabric
from gpuplan.api.exports.launch_command import launch
from gpuplan.api.exports.neocloud_names import SKYPILOT, SKYPILOT_JOBS_ONLY, skypilot_name
from gpuplan.api.exports.node_script import SCRIPT, directory, is_mounted, place, variables
from gpuplan.api.exports.places_in_order import phases_to_try
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.run_limit import limit_seconds
from gpuplan.api.exports.shell_script import Expanded, here_document, words
from gpuplan.api.exports.tool_names import label, labels, run_name
from gpuplan.api.exports.tpu_names import RUNTIMES
from gpuplan.api.exports.unsupported_features import booked, need_cloud, need_kind, refuse
from gpuplan.api.exports.yaml_text import yaml_text
from gpuplan.catalog.model.regions import is_place_unknown
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.serialization.rounded_figures import moment

TOOL = "SkyPilot"
#: https://docs.skypilot.co/en/latest/reference/yaml-spec.html: `network_tier` on Google Cloud is GPUDirect-TCPX.
TCPX = "a3-highgpu-8g"
UNSUPPORTED = {
    "capacity_block": "cannot start machines of one capacity block by name",
    "calendar": "cannot be given the reservation of one task",
}
#: Seconds that SkyPilot waits for flex-start machines: one day.
PROVISION_TIMEOUT = 24 * 3600
#: Idle time of a cluster after its job.
IDLE_MINUTES = 5


def skypilot(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a SkyPilot task. Raises `UnusableInput` for features that SkyPilot lacks."""
    need_cloud(phase, TOOL, "aws", "gcp", "azure", *SKYPILOT)
    need_kind(phase, TOOL, UNSUPPORTED)
    booked(phase, wishes)
    name = run_name(handover, phase)
    start, end = _verbs(phase, name)
    task: JsonObject = {
        "name": name,
        "num_nodes": 1 if phase.is_slice else phase.nodes,
        "resources": _placed(_resources(handover, phase, wishes), _ordered(handover, phase)),
        "envs": _environment(handover, phase, wishes, resume=start),
        "run": "\n".join(_run(phase, wishes)) + "\n",
    }
    config = _config(handover, phase, wishes)
    if config:
        task["config"] = config
    notes = [*heading(handover, phase, wishes), *zone_id(phase), *_fabric(phase), f"Start: {start}", f"Stop: {end}"]
    notes += _last_choice(handover, phase)
    if place(handover, wishes) is None:
        notes.append("SkyPilot refuses it without a checkpoint location: --env GPUPLAN_CHECKPOINTS=s3://bucket/path")
    return yaml_text([task], notes)


def _last_choice(handover: Handover, phase: Phase) -> list[str]:
    """What SkyPilot cannot do by itself: ask for spot again while there is time, and only then on demand."""
    last, places = handover.last_choice, phases_to_try(handover, phase)
    if last is None or len(places) < 2 or places[-1].kind.interruptible:
        return []
    return [
        f"SkyPilot takes the last of `ordered` as soon as the others are refused. It is due at {moment(last.by)}, later by the",
        "work that is done: start without it before, and cancel and start with it then; the run resumes from its checkpoint",
    ]


def _is_managed(phase: Phase) -> bool:
    """Whether the task is a managed job, which recovers from preemptions and ends its machines itself."""
    return phase.kind.interruptible or phase.provider in SKYPILOT_JOBS_ONLY


def _verbs(phase: Phase, name: str) -> tuple[str, str]:
    """The commands that start and stop the task; a cluster is torn down after its job."""
    if _is_managed(phase):
        return f"sky jobs launch --name {name} FILE", f"sky jobs cancel --name {name}"
    return f"sky launch --down --cluster {name} FILE", f"sky down {name}"


def _environment(handover: Handover, phase: Phase, wishes: Wishes, *, resume: str) -> dict[str, str | None]:
    """The environment. SkyPilot requires a value for a null variable at start."""
    values: dict[str, str | None] = {**variables(handover, phase, wishes, resume=resume)}
    return values if place(handover, wishes) else values | {"GPUPLAN_CHECKPOINTS": None}


def _config(handover: Handover, phase: Phase, wishes: Wishes) -> JsonObject:
    """SkyPilot settings that this task overrides."""
    config: JsonObject = {}
    options = [] if phase.accelerator.stack in ("cuda", "xla") else list(stack(phase).docker)
    if is_mounted(handover, wishes) and not phase.is_slice:
        folder = directory(handover, phase, wishes)
        options += ["--volume", f"{folder}:{folder}"]
    if options:
        config["docker"] = {"run_options": options}
    if phase.kind.max_run_hours is not None:
        if phase.is_slice:
            raise refuse(phase, f"{TOOL} does not support {phase.kind.name} for a TPU slice")
        group = {"run_duration": limit_seconds(handover, phase, wishes), "provision_timeout": PROVISION_TIMEOUT}
        config["gcp"] = {"managed_instance_group": group}
    return config


def _tier(phase: Phase) -> dict[str, str]:
    """The network tier of several nodes: EFA, and TCPX on the Google types that have it."""
    # On Nebius the tier `best` joins machines of 8 by InfiniBand.
    has = phase.provider in {"aws", "nebius"} or phase.instance_type == TCPX
    return {"network_tier": "best"} if phase.nodes > 1 and has and phase.accelerator.stack == "cuda" else {}


def _fabric(phase: Phase) -> list[str]:
    """A note on fabric settings that the user of SkyPilot must make."""
    if phase.is_slice:
        return []
    if phase.provider == "aws" and _tier(phase):
        return ["A machine with several EFA cards gets one unless SkyPilot's own settings say aws.use_internal_ips"]
    return [] if _tier(phase) or phase.provider != "gcp" else fabric(phase)


def _resources(handover: Handover, phase: Phase, wishes: Wishes) -> JsonObject:
    if phase.is_slice:
        return _slice(handover, phase, wishes)
    machine, cards = (skypilot_name(phase), None) if phase.provider in SKYPILOT else machine_and_cards(phase)
    resources: JsonObject = {
        "infra": _infra(phase),
        "instance_type": machine,
        "image_id": f"docker:{image(phase, wishes)}",
        "use_spot": phase.kind.interruptible,
        **_autodown(phase),
        **_tier(phase),
        "labels": labels(handover, phase)
        | ({"gpuplan-zone-id": label(phase.zone)} if phase.provider == "aws" and phase.zone else {}),
    }
    if cards:
        # Google's N1 machines request cards separately: `n1-standard-16+2xV100`.
        resources["accelerators"] = {cards.name: cards.count}
    return resources


def _placed(resources: JsonObject, ordered: JsonObject) -> JsonObject:
    """The resources with several places in place of one, and without the label of one zone."""
    if not ordered:
        return resources
    unplaced = {name: value for name, value in resources.items() if name not in ("infra", "use_spot")}
    labels_ = {name: value for name, value in unplaced["labels"].items() if name != "gpuplan-zone-id"}
    return unplaced | {"labels": labels_} | ordered


def _ordered(handover: Handover, phase: Phase) -> JsonObject:
    """The places to try in order; empty where there is only one. Other fields of the resources hold for each.

    Spot comes after on-demand only in managed jobs, which recover from preemptions. Prices with a booking or an end of
    their own need other fields.
    """
    places = phases_to_try(handover, phase)
    tried = dict.fromkeys((_infra(place_), place_.kind.interruptible) for place_ in places)
    return {"ordered": [{"infra": infra, "use_spot": spot} for infra, spot in tried]} if len(tried) > 1 else {}


def _infra(phase: Phase) -> str:
    """Provider, region if it is stated, and, where zones are names, the zone."""
    zone = f"/{phase.zone}" if phase.zone and phase.provider == "gcp" else ""
    return phase.provider if is_place_unknown(phase.region) else f"{phase.provider}/{phase.region}{zone}"


def _slice(handover: Handover, phase: Phase, wishes: Wishes) -> JsonObject:
    """A slice, whose hosts run the command directly unless an image is named."""
    runtime = RUNTIMES.get(phase.accelerator.name)
    if runtime is None:
        raise refuse(phase, f"{TOOL} is not known to start {phase.accelerator.name}; export it to gcloud")
    zone = f"/{phase.zone}" if phase.zone else ""
    return {
        "infra": f"gcp/{phase.region}{zone}",
        "accelerators": {phase.instance_type: 1},
        "accelerator_args": {"tpu_vm": True, "runtime_version": runtime},
        **({"image_id": f"docker:{wishes.image}"} if wishes.image else {}),
        "use_spot": phase.kind.interruptible,
        **_autodown(phase),
        "labels": labels(handover, phase),
    }


def _autodown(phase: Phase) -> JsonObject:
    """https://docs.skypilot.co/en/latest/reference/auto-stop.html; managed jobs end their machines by themselves."""
    return {} if _is_managed(phase) else {"autostop": {"idle_minutes": IDLE_MINUTES, "down": True}}


def _run(phase: Phase, wishes: Wishes) -> list[str]:
    line = launch(phase, wishes, rank=Expanded('"$SKYPILOT_NODE_RANK"'), address=Expanded('"$HEAD"'))
    several = phase.nodes > 1 and not phase.is_slice
    return [
        *(["HEAD=\"${SKYPILOT_NODE_IPS%%$'\\n'*}\""] if several else []),
        # The same for all attempts of a managed job.
        'export GPUPLAN_RUN="$SKYPILOT_TASK_ID" GPUPLAN_NODE="$SKYPILOT_NODE_RANK"',
        *here_document('"$HOME/gpuplan-run-on-node.sh"', SCRIPT.splitlines()),
        'bash "$HOME/gpuplan-run-on-node.sh" ' + words(line),
    ]
