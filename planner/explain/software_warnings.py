"""Warnings of what a plan's assumed software and its hosts decide: whether the job fits, and whether photos come in time."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.model.outcome import PhaseChoice
from gpuplan.planner.performance.estimate_doubts import Asked
from gpuplan.planner.performance.estimator_request import Machines, one_configuration


def software_warnings(
    question: Question, phases: tuple[PhaseChoice, ...], asked_of_phases: tuple[Asked | None, ...]
) -> tuple[str, ...]:
    """The warnings of all phases, without duplicates."""
    eager = _eager_does_not_fit(question, phases, asked_of_phases)
    return tuple(dict.fromkeys((*eager, *_too_few_processors(question, phases))))


def _eager_does_not_fit(
    question: Question, phases: tuple[PhaseChoice, ...], asked_of_phases: tuple[Asked | None, ...]
) -> Iterator[str]:
    """Machines that the job fits with fused software, which is assumed, but not as Hugging Face's stack runs it."""
    job = question.job
    if question.work.shape is None or job.training.software != "auto":
        return
    training = replace(job.training, software="eager")
    for phase, asked in zip(phases, asked_of_phases, strict=True):
        if asked is not None and asked.does_not_fit(training):
            yield (
                f"{phase.choice.instance_type.name} holds the job with training.software: fused, the default, but not "
                "with eager software (as Hugging Face's own): state yours"
            )


def machines_of(question: Question, phase: PhaseChoice) -> Machines | None:
    """The machines of a phase as the estimator's input; None for parts of cards."""
    choice, type_ = phase.choice, phase.choice.instance_type
    if choice.accelerators_per_node < 1:
        return None
    # The constants of this table are known already, those of a table of one accelerator would be computed anew.
    table = question.markets[phase.market].snapshot.shapes.accelerators
    at = next(i for i, accelerator in enumerate(table) if accelerator.name == choice.accelerator)
    fabric = np.nan if type_.network_gbps is None else type_.network_gbps
    machines = one_configuration(table[at], devices=type_.devices, nodes=choice.nodes, internode_gbps=fabric)
    machines = replace(
        machines,
        accelerators=table,
        accelerator=np.array([at]),
        intranode_gbs=np.array([np.nan if type_.intranode_gbs is None else type_.intranode_gbs]),
        scaleup_domain=np.array([type_.scaleup_domain]),
    )
    if type_.accelerator_memory_mib is None:
        return machines
    return replace(machines, device_memory_mib=np.array([float(type_.accelerator_memory_mib)]))


def _too_few_processors(question: Question, phases: tuple[PhaseChoice, ...]) -> Iterator[str]:
    """Hosts that cannot decode photos as fast as the phase is planned to train on them."""
    seconds = question.work.decode_seconds_per_sample
    for phase in phases:
        type_, nodes = phase.choice.instance_type, phase.choice.nodes
        if not seconds or not type_.vcpus:
            continue
        needed = phase.throughput * seconds / nodes
        if needed > type_.vcpus:
            yield (
                f"decoding the photos takes {needed:.0f} vCPUs a node at the planned speed, and {type_.name} has "
                f"{type_.vcpus:g}: up to {needed / type_.vcpus:.1f} times the hours, unless they are decoded beforehand or "
                "on the accelerators"
            )
