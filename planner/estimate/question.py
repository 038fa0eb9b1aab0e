"""One question to the estimator: a job, the clusters it may run on, and the parts of the layout that are fixed."""

from dataclasses import dataclass, replace

from planner.estimate.clusters import Clusters, clusters_of
from planner.estimate.machines import LayoutRequest, Machines
from planner.job import Training
from planner.workload.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`request` holds what the job's own training section fixes as well."""

    work: Work
    training: Training
    clusters: Clusters
    request: LayoutRequest

    @property
    def layers(self) -> int:
        """Blocks that a pipeline can be cut between; 1 where they are not known."""
        return self.work.shape.layers if self.work.shape else 1


def question_of(work: Work, training: Training, machines: Machines, request: LayoutRequest) -> Question:
    """The question in full. Raises `UnusableInput` for an unknown precision."""
    return Question(
        work=work, training=training, clusters=clusters_of(machines, training), request=_completed(request, training)
    )


def _completed(request: LayoutRequest, training: Training) -> LayoutRequest:
    """What the request leaves open but the training section names; offloaded parameters need ZeRO-3."""
    checkpointing = training.activation_checkpointing
    return replace(
        request,
        checkpointing=request.checkpointing or (None if checkpointing == "auto" else checkpointing),
        zero_stage=3 if request.zero_stage is None and training.offload == "parameters" else request.zero_stage,
        micro_batch=request.micro_batch or training.micro_batch,
    )
