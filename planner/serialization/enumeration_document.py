"""The enumeration behind a plan: the choices evaluated, and those left out with the proof."""

from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.performance.layout_splits import MAX_CONTEXT, MAX_PIPELINE, MAX_TENSOR

#: Sentences by name; each names a set of choices.
Enumeration = dict[str, str]


def enumeration_document(job: TrainingJob) -> Enumeration:
    """The sets that were enumerated, and what was left out with the proof."""
    most = job.constraints.max_nodes
    return {
        "node_counts": f"every whole number of nodes from 1 to {most:,}; machines that do not cluster on one node, slices in "
        "every size that is sold",
        "layouts": f"tensor parallelism 1, 2, 4 or up to {MAX_TENSOR} ways inside the fast link, every number of pipeline "
        f"stages up to {MAX_PIPELINE} that divides the cluster, context parallelism up to {MAX_CONTEXT} ways for long "
        "sequences, ZeRO stages 1 to 3; of each the largest micro-batch that helps and the least recomputation that fits",
        "left_out": "offers that another of the same machine, price kind and provider equals or betters in price, egress, "
        "storage and interruption rate",
    }
