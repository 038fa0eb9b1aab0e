"""What depends on the training software and the class of work: shares of a machine's rates that a step reaches."""

from dataclasses import dataclass

from catalog.errors import UnusableInput
from planner.job import Training
from planner.workload.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A class of training software, relative to fused kernels (flash attention, fused norms and optimizers)."""

    matmul: float
    attention: float
    vector: float
    kernels_per_layer: float


#: Plain is eager kernels; most of its cost is the traffic that `vector_bytes_per_unit` then counts (scores in memory,
#: twice the passes). What is left here is fitted on BERT-large on one V100, DeepSpeed against its PyTorch baseline.
#: Kernels launched per block and micro-batch, forward and backward: profiles of GPT blocks.
STACKS: dict[str, Stack] = {
    "fused": Stack(matmul=1.0, attention=1.0, vector=1.0, kernels_per_layer=36.0),
    "plain": Stack(matmul=0.9, attention=0.7, vector=0.8, kernels_per_layer=80.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Shares by class of work: of the matmul ceiling and of memory bandwidth."""

    matmul: float
    bandwidth: float


#: Relative to dense language models (1.0), whose matmul share is in `ceilings`. Fitted with benchmarks/accuracy.py:
#: mixtures (149 runs; grouped matmuls of uneven sizes), encoders (48, BERT-large), convolutional (25, ResNet and
#: VGG), image transformers (3, one chip). The others are set by their nearest relative: no runs with known work.
SHARES: dict[str, Share] = {
    "language": Share(matmul=1.0, bandwidth=0.8),
    "mixture-of-experts": Share(matmul=0.75, bandwidth=0.64),
    "encoder": Share(matmul=1.0, bandwidth=0.64),
    "encoder-decoder": Share(matmul=0.9, bandwidth=0.64),
    "vision-transformer": Share(matmul=1.05, bandwidth=0.9),
    "convolutional": Share(matmul=1.0, bandwidth=0.64),
    "recurrent": Share(matmul=0.6, bandwidth=0.7),
    "diffusion": Share(matmul=0.9, bandwidth=0.64),
    "gan": Share(matmul=0.8, bandwidth=0.6),
    "recommender": Share(matmul=0.5, bandwidth=0.5),
    "explicit": Share(matmul=0.9, bandwidth=0.8),
}
SHARE_UNKNOWN = Share(matmul=0.7, bandwidth=0.7)

#: Exponent p of (compute^p + memory^p)^(1/p) for models of which only totals are known: 1 adds the two, infinity
#: takes the larger. Fitted on ResNet-50 and its relatives on V100, A100 and RTX 3090.
ROOFLINE_NORM = 1.4

#: Share of the 16-bit matmul rate that attention (score and value products) reaches per counted FLOP: about a third
#: of dense peak on A100 and H100. Fitted on runs with sequences of 512 to 64k tokens.
ATTENTION_SHARE = 0.48
#: Matmuls of hidden size h reach 1 / (1 + HALF_SIZE / h) of the share at large sizes; tensor parallelism
#: thins one side of them.
HALF_SIZE = 240.0
TENSOR_THINNING = 0.5
#: Tokens of a micro-batch at which a matmul loses half: rows of one tile wave.
HALF_TOKENS = 160.0

#: Seconds from one small kernel to the next when the host cannot keep ahead (CUDA launch 4-6 us).
KERNEL_SECONDS = 4.5e-6
#: Kernels of a micro-batch in models whose layers are not known: ResNet-50 has about 500.
KERNELS_UNKNOWN = 500.0
#: Passes over a recurrence (forward once, backward twice) and the latency of one of its steps.
RECURRENCE_PASSES = 3.0
RECURRENCE_SECONDS = 12e-6

#: Share of the compute time behind which data-parallel communication can hide, and what it costs while
#: hidden (it takes memory bandwidth and multiprocessors).
OVERLAP = 0.37
HIDDEN_TAX = 0.08
#: Shares of tensor-parallel, expert and pipeline traffic that are not overlapped.
TENSOR_EXPOSED = 0.48
EXPERT_EXPOSED = 1.0
PIPELINE_EXPOSED = 0.3
#: Compute lost to stragglers per doubling of nodes: well-connected runs lose 1-3 % per doubling in all.
STRAGGLER = 0.0085
#: Latency of one collective over n ranks: this times log2(n) (trees), NCCL 15-25 us per hop.
HOP_SECONDS = 2e-5
#: Host memory bandwidth per device for an optimizer that runs on the host, bytes/s (DDR4/5 server, shared by 8).
HOST_MEMORY_RATE = 25e9


def stack_of(training: Training) -> Stack:
    """The software class of `training`. Raises `UnusableInput` at training.software for an unknown one."""
    stack = STACKS.get(training.software)
    if stack is None:
        accepted = ", ".join(STACKS)
        raise UnusableInput.at("training", "software", message=f"{training.software!r} is not one of {accepted}")
    return stack


def share_of(work: Work) -> Share:
    """The shares of the class of `work`."""
    return SHARES.get(work.task, SHARE_UNKNOWN)
