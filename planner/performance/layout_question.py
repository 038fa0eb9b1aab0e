"""The estimator's input for one job: its work, the clusters it may run on, and the fixed parts of the layout."""

from dataclasses import dataclass, replace

import numpy as np

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import ADAPTERS, OFFLOADED, Training
from gpuplan.planner.performance.cluster_rates import Clusters, clusters_of
from gpuplan.planner.performance.estimator_request import LayoutRequest, Machines
from gpuplan.planner.performance.fitted_constants import places, value
from gpuplan.planner.workload.step_work import CONVOLUTIONAL_TASKS, Work
from gpuplan.planner.workload.training_methods import settled


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A job on clusters; `request` includes what the job's training section fixes."""

    work: Work
    training: Training
    clusters: Clusters
    request: LayoutRequest

    @property
    def layers(self) -> int:
        """Number of blocks that a pipeline can be split between; 1 if unknown."""
        return self.work.shape.layers if self.work.shape else 1


def question_of(work: Work, training: Training, machines: Machines, request: LayoutRequest) -> Question:
    """The input with rates of the machines and a completed layout request.

    Raises `UnusableInput` for an unknown precision, and for a stated overlap or memory format of what there is not.
    """
    if training.tensor_overlap != "auto" and (
        work.shape is None or (request.tensor or 2) == 1 or splits_data_only(training)
    ):
        if work.shape is None:
            why = "this model has no layers that tensor parallelism splits;"
        else:
            why = "layout has tensor 1;" if request.tensor == 1 else "training.parallelism is data;"
        raise no_tensor_parallelism(why)
    if training.memory_format != "auto" and work.task not in CONVOLUTIONAL_TASKS:
        message = f"belongs to convolutional networks, and this model is of class {work.task}; leave it out"
        raise UnusableInput.at("training", "memory_format", message=message)
    training = settled(training, work.task, work.unit)
    return Question(
        work=work, training=training, clusters=rates_of(work, training, machines), request=_completed(request, training)
    )


def no_tensor_parallelism(why: str) -> UnusableInput:
    """The refusal of a stated overlap of communication that there is not."""
    return UnusableInput.at("training", "tensor_overlap", message=f"belongs to tensor parallelism: {why} leave it out")


def rates_of(work: Work, training: Training, machines: Machines) -> Clusters:
    """The rates that `work` reaches on `machines`. Where only FLOPs are known, `explicit_share` holds all other causes."""
    clusters = clusters_of(machines, training)
    if work.task != "explicit":
        return clusters
    share = np.array([value("explicit_share", *places(chip)) for chip in machines.accelerators])
    return replace(clusters, linear_rate=clusters.linear_rate * share[machines.accelerator])


def splits_data_only(training: Training) -> bool:
    """Whether the code splits batches and states alone, as libraries for adapters do unless they say otherwise.

    Neuron's own library for adapters splits tensors.
    """
    if training.parallelism != "auto":
        return training.parallelism == "data"
    return training.method in ADAPTERS and training.tensor_overlap == "auto" and training.framework != "neuron"


def _completed(request: LayoutRequest, training: Training) -> LayoutRequest:
    """The request completed from the training section; offloaded parameters need ZeRO-3."""
    if splits_data_only(training):
        request = replace(
            request,
            tensor=request.tensor or 1,
            pipeline=request.pipeline or 1,
            context=request.context or 1,
            expert=request.expert or 1,
        )
    checkpointing = "full" if training.activation_checkpointing == OFFLOADED else training.activation_checkpointing
    return replace(
        request,
        checkpointing=request.checkpointing or (None if checkpointing == "auto" else checkpointing),
        zero_stage=3 if request.zero_stage is None and training.offload == "parameters" else request.zero_stage,
        micro_batch=request.micro_batch or training.micro_batch,
    )
