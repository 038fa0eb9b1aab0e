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


#: Fused: BERT-large reaches half of peak; plain eager kernels about a quarter (DeepSpeed against the
#: baseline on one V100: 61 against 38 samples/s; NVIDIA's against plain BERT: .5 against .24 of peak).
#: Kernels launched per block and micro-batch, forward and backward: profiles of GPT blocks.
STACKS: dict[str, Stack] = {
    "fused": Stack(matmul=1.0, attention=1.0, vector=1.0, kernels_per_layer=36.0),
    "plain": Stack(matmul=0.85, attention=0.4, vector=0.4, kernels_per_layer=80.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Shares by class of work: of the matmul ceiling, of memory bandwidth; and the spread seen."""

    matmul: float
    bandwidth: float


#: Relative to dense language models (1.0), whose matmul share is in `ceilings`. Mixtures: grouped matmuls of
#: uneven sizes. Convolutions: the smaller kernels' tiles. Recurrence: products of one time step.
SHARES: dict[str, Share] = {
    "language": Share(matmul=1.0, bandwidth=0.8),
    "mixture-of-experts": Share(matmul=0.75, bandwidth=0.8),
    "encoder": Share(matmul=1.0, bandwidth=0.8),
    "encoder-decoder": Share(matmul=0.9, bandwidth=0.8),
    "vision-transformer": Share(matmul=0.9, bandwidth=0.8),
    "convolutional": Share(matmul=0.8, bandwidth=0.8),
    "recurrent": Share(matmul=0.6, bandwidth=0.7),
    "diffusion": Share(matmul=0.8, bandwidth=0.75),
    "gan": Share(matmul=0.7, bandwidth=0.7),
    "recommender": Share(matmul=0.5, bandwidth=0.5),
    "explicit": Share(matmul=0.9, bandwidth=0.8),
}
SHARE_UNKNOWN = Share(matmul=0.7, bandwidth=0.7)

#: Attention (score and value products) reaches about a third of the rate of the 16-bit peak per causal FLOP
#: (fit on llm-foundry and Megatron tables over sequence lengths of 512 to 64k).
ATTENTION_SHARE = 0.60
#: Matmuls of hidden size h reach 1 / (1 + HALF_SIZE / h) of the share at large sizes; tensor parallelism
#: thins one side of them.
HALF_SIZE = 260.0
TENSOR_THINNING = 0.5
#: Tokens of a micro-batch at which a matmul loses half: rows of one tile wave.
HALF_TOKENS = 150.0

#: Seconds from one small kernel to the next when the host cannot keep ahead (CUDA launch 4-6 us).
KERNEL_SECONDS = 4.5e-6
#: Kernels of a micro-batch in models whose layers are not known: ResNet-50 has about 500.
KERNELS_UNKNOWN = 500.0
#: Passes over a recurrence (forward once, backward twice) and the latency of one of its steps.
RECURRENCE_PASSES = 3.0
RECURRENCE_SECONDS = 12e-6

#: Share of the compute time behind which data-parallel communication can hide, and what it costs while
#: hidden (it takes memory bandwidth and multiprocessors).
OVERLAP = 0.46
HIDDEN_TAX = 0.08
#: Shares of tensor-parallel, expert and pipeline traffic that are not overlapped.
TENSOR_EXPOSED = 0.6
EXPERT_EXPOSED = 0.8
PIPELINE_EXPOSED = 0.3
#: Compute lost to stragglers per doubling of nodes: well-connected runs lose 1-3 % per doubling in all.
STRAGGLER = 0.008
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
