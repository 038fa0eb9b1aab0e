"""What one optimizer step of a job asks of the machines, whatever kind of model it is."""

from dataclasses import dataclass

#: Classes of work that differ in how well they use a machine: decoder-only language models, those with
#: experts, encoders (BERT), encoder-decoders (T5, Whisper), image transformers, convolutional, detection
#: (with heads and proposals beside the convolutions), recurrent, diffusion, adversarial and recommender models, and work of which only totals are known.
TASKS = (
    "language",
    "mixture-of-experts",
    "encoder",
    "encoder-decoder",
    "vision-transformer",
    "convolutional",
    "detection",
    "recurrent",
    "diffusion",
    "gan",
    "recommender",
    "explicit",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerShape:
    """The dimensions that matmuls, attention, communication and memory depend on.

    `layers` counts encoder and decoder blocks together; `cross_attention_layers` those decoder
    blocks that also attend to the encoder. `ffn_size` is that of a dense block (0 where all blocks
    are mixtures). `moe_layers` of the `layers` hold experts.
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
    cross_attention_layers: int = 0
    moe_layers: int = 0
    experts: int = 0
    active_experts: int = 0
    shared_experts: int = 0
    expert_ffn_size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One job's work: FLOPs, bytes and states, before any machine is chosen.

    `unit` is what throughput counts: tokens, samples or steps (explicit FLOPs). `units_per_sample` is the
    sequence length for token work, else 1: the micro-batch counts samples. FLOPs are forward plus
    backward of the method in use, without recomputation; `linear` are matmuls and convolutions,
    `attention` the score and value products that grow with the sequence, `head` the logits.
    `vector_bytes_per_unit` are the bytes that element-wise and normalisation layers (and, in
    convolutional and recurrent models, all layers) move through device memory at 16 bit.
    `activation_bytes_per_sample` is what must be kept for the backward pass at 16 bit with
    (none, selective, full) checkpointing: selective recomputes what costs no matmul (norms, activation
    functions, attention scores), full keeps the input of every block and the working set of one;
    `logits_bytes_per_sample` is kept apart since only one pipeline stage holds them. `parameters` includes frozen ones; `embedding_parameters` of them do no matmul.
    `frozen_parameter_bytes` is what all parameters that are not trained take together as stored (0 where
    all are trained); `trainable_parameters` counts adapters under LoRA, which `parameters` includes;
    `expert_adapter_parameters` of them sit on routed experts and are divided as those are.
    `sequential_steps` is the length of a recurrence that cannot run in parallel (1 otherwise).
    `fixed_state_gib` is set for explicit work only: its memory, in place of states and activations, and a step
    of it may be shared by any number of accelerators since its batch is not known.
    `table_parameters` of the `parameters` are rows of embedding tables that are spread over all devices, each row on one
    of them, with sparse gradients that are never reduced; every unit exchanges `exchanged_bytes_per_unit` of looked-up
    rows and their gradients between devices.
    `kernels` launched forward and backward per micro-batch, where they were counted (0: not known), and
    `bytes_per_pass` moved per micro-batch however small it is (weights), which most kinds of work leave out.
    `task` is one of `TASKS`.
    `assumptions` are sentences for the user.
    """

    task: str
    name: str
    unit: str
    units_total: float
    units_per_step: float
    units_per_sample: float
    parameters: float
    active_parameters: float
    trainable_parameters: float
    embedding_parameters: float
    linear_flops_per_unit: float
    attention_flops_per_unit: float
    head_flops_per_unit: float
    vector_bytes_per_unit: float
    activation_bytes_per_sample: tuple[float, float, float]
    logits_bytes_per_sample: float
    sequential_steps: int = 1
    frozen_parameter_bytes: float = 0.0
    expert_adapter_parameters: float = 0.0
    fixed_state_gib: float | None = None
    min_memory_gib_per_accelerator: float = 0.0
    table_parameters: float = 0.0
    exchanged_bytes_per_unit: float = 0.0
    kernels: float = 0.0
    bytes_per_pass: float = 0.0
    shape: TransformerShape | None = None
    assumptions: tuple[str, ...] = ()

    @property
    def flops_per_unit(self) -> float:
        """Forward plus backward, no recomputation."""
        return self.linear_flops_per_unit + self.attention_flops_per_unit + self.head_flops_per_unit

    @property
    def total_flops(self) -> float:
        """Of the whole job."""
        return self.flops_per_unit * self.units_total

    @property
    def steps(self) -> float:
        """Optimizer steps of the whole job (at least one)."""
        return max(1.0, self.units_total / self.units_per_step)

    @property
    def samples_per_step(self) -> float:
        """Sequences, images, ... per optimizer step: what data parallelism divides."""
        return max(1.0, self.units_per_step / self.units_per_sample)
