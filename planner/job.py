"""A training job and its parts, as every room of the planner sees them: parsed, checked, in fixed units."""

from dataclasses import dataclass, field
from datetime import datetime

#: Every requirement that can be relaxed, by the name of its field; an offer that breaks several counts under the first.
REQUIREMENTS = (
    "constraints.providers",
    "constraints.accelerators",
    "constraints.vendors",
    "constraints.instance_types",
    "constraints.regions",
    "constraints.geography",
    "constraints.price_kinds",
    "constraints.max_nodes",
    "constraints.max_accelerators",
    "constraints.carbon_budget_kg",
    "objective",
    "training.precision",
    "deadline",
    "budget_usd",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """A transformer by its dimensions; one head of `hidden_size / attention_heads` unless `head_size`.

    `parameters` is what the user states, checked against the dimensions. `experts` of 0 is a dense
    model; with experts, each of the `layers` has `experts` routed (of which `active_experts` per
    token) and `shared_experts` feed-forward blocks of `expert_ffn_size`. `decoder_layers` adds a
    decoder with cross-attention (T5); `tied_embeddings` shares input and output embedding.
    """

    layers: int
    hidden_size: int
    ffn_size: int
    attention_heads: int
    kv_heads: int
    head_size: int
    vocabulary_size: int
    sequence_length: int
    gated_mlp: bool
    causal: bool
    tokens: float
    global_batch_tokens: float
    experts: int = 0
    active_experts: int = 0
    shared_experts: int = 0
    expert_ffn_size: int = 0
    decoder_layers: int = 0
    dense_layers: int = 0
    tied_embeddings: bool = False
    parameters: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A known model by name, and how much of it: tokens or samples (one of the two)."""

    model: str
    tokens: float | None = None
    samples: float | None = None
    sequence_length: int | None = None
    image_size: int | None = None
    global_batch_tokens: float | None = None
    global_batch_samples: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explicit:
    """Work that the user has counted: FLOPs of the whole run, and memory.

    `memory_gib` is what the whole job holds and may be sharded over accelerators, of which at
    least `min_memory_gib_per_accelerator` stays on each. `bytes_moved` (all steps, through device
    memory), `parameters` and `steps` let bandwidth and communication count.
    """

    total_flops: float
    memory_gib: float
    min_memory_gib_per_accelerator: float = 0.0
    bytes_moved: float | None = None
    parameters: float | None = None
    steps: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A module whose training step was counted, forward and backward, and how many samples to train it on.

    FLOPs, bytes and activation memory are per sample, numbers at 16 bit. Of `flops_per_sample`, those of
    convolutions and of attention (score and value products) are told apart; `attention_scores_per_sample`
    pass through memory where attention is not fused. `bytes_*` move through device memory: `per_sample`, and
    `per_pass` whatever the batch; with `kernels`, as executed one operation after the other, and as a stack
    runs them that fuses element-wise operations. `activation_bytes_per_sample` are kept for the backward
    pass without checkpointing, less of them with `selective_` and `full_` checkpointing. `buffer_bytes` are held
    beside parameters whatever the batch; `optimizers` update one module each; `sequential_steps` is the length
    of a recurrence.
    """

    model: str
    samples: float
    global_batch_samples: float
    parameters: float
    trainable_parameters: float
    flops_per_sample: float
    bytes_per_sample: float
    fused_bytes_per_sample: float
    activation_bytes_per_sample: float
    selective_activation_bytes_per_sample: float
    full_activation_bytes_per_sample: float
    convolution_flops_per_sample: float = 0.0
    attention_flops_per_sample: float = 0.0
    attention_scores_per_sample: float = 0.0
    bytes_per_pass: float = 0.0
    fused_bytes_per_pass: float = 0.0
    kernels: float = 0.0
    fused_kernels: float = 0.0
    buffer_bytes: float = 0.0
    optimizers: int = 1
    sequential_steps: int = 1
    notes: tuple[str, ...] = ()


Workload = Transformer | Preset | Explicit | Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How the weights are trained.

    `method` is full, lora or qlora (with `rank` and `adapters_on`: all projections or query_value);
    `precision` a named one (strict) or auto;
    `activation_checkpointing` none, selective, full or auto; `states` mixed or pure_bf16; `offload`
    none, optimizer or parameters; `software` the class of training stack (fused or plain).
    """

    method: str = "full"
    rank: int = 16
    adapters_on: str = "all"
    precision: str = "auto"
    optimizer: str = "adamw"
    activation_checkpointing: str = "auto"
    states: str = "mixed"
    offload: str = "none"
    software: str = "fused"
    micro_batch: int | None = None


#: The most that `max_nodes` may be: the largest published training clusters have about 4,000 nodes of 8 accelerators.
MAX_NODES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """What may be chosen. Empty means: no restriction (for `price_kinds`: those in_default).

    `max_phases` is how many configurations, one after the other, a plan may run on. `carbon_budget_kg` of None means:
    any; with one, machines of unknown carbon are out.
    """

    providers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    geography: tuple[str, ...] = ()
    price_kinds: tuple[str, ...] = ()
    accelerators: tuple[str, ...] = ()
    vendors: tuple[str, ...] = ()
    instance_types: tuple[str, ...] = ()
    max_nodes: int = 32
    max_accelerators: int | None = None
    max_phases: int = 3
    carbon_budget_kg: float | None = None
    unverified_availability: bool = False
    partitions: tuple[str, ...] = ("commercial",)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """Where the training data lies (`provider`, `region`; both empty if it is everywhere) and its size.

    `checkpoints` is the place where checkpoints are kept, empty if none is named. Exports use it; prices do not.
    """

    provider: str = ""
    region: str = ""
    dataset_gb: float = 0.0
    checkpoints: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """One job, checked: times in hours from `start`, money in dollars.

    `deadline_hours` of None means any speed. `confidence` is the probability of finishing by the
    deadline that a plan must reach. `objective` is what is least among plans within the requirements: cost,
    carbon or time. `assumptions` are sentences on what was filled in for the user.
    """

    name: str
    workload: Workload
    training: Training = field(default_factory=Training)
    start: datetime | None = None
    deadline_hours: float | None = None
    budget_usd: float | None = None
    confidence: float = 0.9
    objective: str = "cost"
    constraints: Constraints = field(default_factory=Constraints)
    data: DataSource = field(default_factory=DataSource)
    assumptions: tuple[str, ...] = ()
