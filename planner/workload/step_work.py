"""The work of a job per unit and optimizer step, for every kind of model."""

from dataclasses import dataclass

#: Classes of work that differ in how well they use a machine: decoder-only language models, those with experts, encoders
#: (BERT), encoder-decoders (T5, Whisper), image transformers, convolutional, detection (convolutions with heads and
#: proposals), recurrent, diffusion, adversarial, recommender and graph models, and explicit work with known totals only.
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
    "graph",
    "explicit",
)
#: Classes of networks that consist of convolutions.
CONVOLUTIONAL_TASKS = frozenset(("convolutional", "detection"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerShape:
    """The dimensions that matmuls, attention, communication and memory depend on.

    `layers` counts encoder and decoder blocks together, `cross_attention_layers` the decoder blocks that attend to the
    encoder, `moe_layers` the blocks with experts. `ffn_size` is that of a dense block (0 if all blocks have experts).
    `routed_size` is the width of the copies of a token that go to experts, `matmul_width` the mean input width of matmuls
    (harmonic, by FLOPs); both 0: `hidden_size`.
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
    routed_size: int = 0
    matmul_width: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One job's work: FLOPs, bytes and states, before any machine is chosen.

    * `task` is one of `TASKS`. `unit` is that of throughput: tokens, samples or steps (explicit work).
      `units_per_sample` is the sequence length for tokens, else 1; micro-batches count samples.
    * FLOPs are forward plus backward of the training method, without recomputation: `linear` of matmuls and
      convolutions, `attention` of the score and value products, which grow with the sequence, `head` of the logits.
    * `vector_bytes_per_unit` are the bytes at 16 bit that element-wise and normalisation layers (in convolutional and
      recurrent models all layers) move through device memory.
    * `activation_bytes_per_sample` are the bytes at 16 bit saved for the backward pass under (none, selective, full)
      checkpointing. Selective recomputes everything without a matmul (norms, activation functions, attention scores);
      full saves the input of every block and the working set of one. `logits_bytes_per_sample` are separate because
      only one pipeline stage holds them.
    * `parameters` include frozen ones, adapters, embeddings and tables. `embedding_parameters` of them do no matmul.
      `trainable_parameters` are the adapters under LoRA; `expert_adapter_parameters` of these are on routed experts and
      split like them. `frozen_parameter_bytes` is the storage of all frozen parameters (0 if all are trained).
    * `sequential_steps` is the length of a recurrence that cannot run in parallel (1 otherwise).
    * `fixed_state_gib` is set for explicit work only: it replaces states and activations. Any number of accelerators can
      share a step of such work, because its batch is unknown.
    * `table_parameters` are rows of embedding tables that are sharded over all devices, with sparse gradients that are
      never reduced. Every unit exchanges `exchanged_bytes_per_unit` of rows and their gradients between devices.
    * `kernels` are launched forward and backward per micro-batch (0: unknown); where there is a `shape`, they are those of
      adapters beside its blocks. `bytes_per_pass` are moved per micro-batch of any size (weights); most kinds of work do not
      count them.
    * `reference_parameter_bytes` are those of whole frozen models besides the trained one. `modelled_sigma` widens the band
      of work of which no run was measured. `decode_seconds_per_sample` is the time of one host processor to read and
      prepare a sample, 0 where the accelerator does it or it takes no time.
    * `gradient_bytes_per_sample` are those at 16 bit of the widest tensors of one block, `working_set_bytes_per_sample` all that
      one block holds while it is recomputed and run backward (both 0: unknown).
    * `selective_recomputed_share` of the linear FLOPs of the forward pass runs again under selective checkpointing, and
      attention does not (0: attention alone does).
    * `offloaded_bytes_per_sample` are the bytes at 16 bit of checkpoints that go to host memory and back (0: none do).
    * `batch_is_default` says that the user stated no batch, `amount_is_measured` that the amount of training is what other
      machines did in measured hours, so that what the two have in common cancels out.
    * `assumptions` are sentences for the user.
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
    reference_parameter_bytes: float = 0.0
    expert_adapter_parameters: float = 0.0
    fixed_state_gib: float | None = None
    min_memory_gib_per_accelerator: float = 0.0
    table_parameters: float = 0.0
    exchanged_bytes_per_unit: float = 0.0
    kernels: float = 0.0
    bytes_per_pass: float = 0.0
    shape: TransformerShape | None = None
    decode_seconds_per_sample: float = 0.0
    offloaded_bytes_per_sample: float = 0.0
    gradient_bytes_per_sample: float = 0.0
    working_set_bytes_per_sample: float = 0.0
    selective_recomputed_share: float = 0.0
    modelled_sigma: float = 0.0
    batch_is_default: bool = False
    amount_is_measured: bool = False
    assumptions: tuple[str, ...] = ()

    @property
    def flops_per_unit(self) -> float:
        """FLOPs of forward plus backward, without recomputation."""
        return self.linear_flops_per_unit + self.attention_flops_per_unit + self.head_flops_per_unit

    @property
    def total_flops(self) -> float:
        """FLOPs of the whole job."""
        return self.flops_per_unit * self.units_total

    @property
    def steps(self) -> float:
        """Optimizer steps of the whole job (at least one)."""
        return max(1.0, self.units_total / self.units_per_step)

    @property
    def samples_per_step(self) -> float:
        """Sequences, images, ... per optimizer step, which data parallelism divides."""
        return max(1.0, self.units_per_step / self.units_per_sample)
