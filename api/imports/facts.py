"""The facts of a training job as another tool's file states them: each value with the place that it comes from.

`TrainingFacts` is the one record that every reader of `gpuplan.api.imports.formats` fills and that
`gpuplan.api.imports.job_from_facts` turns into a job.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

#: Names of facts, in the order in which they are shown.
FACT_NAMES = (
    "parameters_total",
    "parameters_active",
    "layers",
    "decoder_layers",
    "hidden_size",
    "ffn_size",
    "attention_heads",
    "kv_heads",
    "head_size",
    "vocabulary_size",
    "gated_mlp",
    "tied",
    "experts",
    "active_experts",
    "shared_experts",
    "expert_ffn_size",
    "dense_layers",
    "max_positions",
    "stored_dtype",
    "sequence_length",
    "micro_batch",
    "gradient_accumulation",
    "stated_world_size",
    "global_batch",
    "precision",
    "optimizer",
    "method",
    "lora_rank",
    "checkpointing",
    "sharding",
    "offload",
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "expert_parallel",
    "steps",
    "epochs",
    "tokens",
    "samples",
    "dataset",
    "packing",
    "save_interval",
    "model_name",
)


@dataclass(frozen=True, slots=True)
class PerWorld:
    """A figure that follows from the number of data-parallel processes: `factor` x world / `group`, or its inverse.

    With `inverse` it is `factor` / world.
    """

    factor: float
    group: int = 1
    inverse: bool = False

    def of(self, world: float) -> float:
        """The figure for so many processes."""
        return self.factor / world if self.inverse else self.factor * world / self.group

    def __str__(self) -> str:
        if self.inverse:
            return f"{self.factor:.12g} / world"
        return f"{self.factor:.12g} x " + ("world" if self.group == 1 else f"(world / {self.group})")


@dataclass(frozen=True, slots=True)
class Amount:
    """A number or a formula with its unit, such as `128 samples` or `8 x world samples`."""

    value: float | PerWorld
    unit: str

    def __str__(self) -> str:
        value = str(self.value) if isinstance(self.value, PerWorld) else f"{self.value:.12g}"
        return f"{value} {self.unit}"

    def in_words(self) -> str:
        """As readers are told: `8 samples per process` for `8 x world samples`."""
        if not isinstance(self.value, PerWorld) or self.value.inverse:
            return str(self)
        processes = "process" if self.value.group == 1 else f"{self.value.group} processes"
        return f"{self.value.factor:.12g} {self.unit} per {processes}"


#: The value of a figure that a file leaves to another file.
AUTO = "auto"

FactValue = bool | int | float | str | PerWorld | Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a value comes from: a line of a file, the default of a framework, or other facts."""

    file: str = ""
    line: int | None = None
    default_of: str = ""
    because: str = ""

    @property
    def is_default(self) -> bool:
        """Whether the file does not state the value."""
        return bool(self.default_of)

    def __str__(self) -> str:
        if self.default_of:
            return f"default of {self.default_of}"
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place} ({self.because})" if self.because else place


@dataclass(frozen=True, slots=True)
class Fact:
    """One value and its origin."""

    value: FactValue
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """What a wrapper asks for: `nodes` machines with `per_node` accelerators each, for at most `hours`.

    `instance_type` names the machine itself, which says both.
    """

    origin: Origin
    accelerator: str | None = None
    per_node: int | None = None
    instance_type: str | None = None
    nodes: int | None = None
    hours: float | None = None


@dataclass(slots=True, kw_only=True)
class TrainingFacts:
    """What is known of one training job; a fact that is absent is not stated.

    `sha256` is the digest of the first of `files`. `missing_files` are files that it names and that are not there, `not_understood` what a reader refuses to guess,
    `layers_differ` why a plain transformer does not describe the model, `beside` parameters that `parameters_total`
    leaves out (vision towers, multi-token layers). `stack` are fields of a job's training that say which kernels run.
    """

    format: str = ""
    files: list[str] = field(default_factory=list)
    sha256: str = ""
    facts: dict[str, Fact] = field(default_factory=dict)
    machines: Machines | None = None
    missing_files: list[str] = field(default_factory=list)
    not_understood: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    layers_differ: str = ""
    beside: dict[str, float] = field(default_factory=dict)
    latent_attention: bool = False
    causal: bool | None = None
    completion_tokens: int | None = None
    stack: dict[str, Fact] = field(default_factory=dict)
    adapters_on: str = ""
    dataset_files: list[str] = field(default_factory=list)
    framework: str = "pytorch-cuda"
    training_length: int | None = None
    world_divisor: int = 1
    runtime_hours: float | None = None
    samples_per_second: float | None = None

    def put(self, name: str, value: FactValue | None, origin: Origin) -> None:
        """State a fact: what a file states replaces a default, and the first statement stays."""
        if name not in FACT_NAMES:
            raise ValueError(f"{name} is no fact")
        known = self.facts.get(name)
        weaker = known is None or known.value == AUTO or (known.origin.is_default and not origin.is_default)
        if value is not None and weaker and (known is None or value != AUTO):
            self.facts[name] = Fact(value, origin)

    def replace(self, name: str, value: FactValue, origin: Origin) -> None:
        """State a fact over what was known, for a file that decides over another."""
        self.facts[name] = Fact(value, origin)

    def value(self, name: str) -> FactValue | None:
        """The value of a fact; None if it is not known."""
        known = self.facts.get(name)
        return None if known is None else known.value

    def number(self, name: str) -> float | None:
        """The fact as a number; None if it is none."""
        value = self.value(name)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def whole(self, name: str) -> int | None:
        """The fact as a whole number; None if it is none."""
        value = self.number(name)
        return None if value is None or value != int(value) else int(value)

    def text(self, name: str) -> str:
        """The fact as text; empty if it is not known."""
        value = self.value(name)
        return "" if value is None else str(value)

    def origin(self, *names: str) -> Origin:
        """The origin of the first of these facts that is stated, else of the first that is known."""
        known = [self.facts[name].origin for name in names if name in self.facts]
        stated = [origin for origin in known if not origin.is_default]
        return (stated or known or [Origin(default_of="gpuplan")])[0]

    def in_order(self) -> Iterator[tuple[str, Fact]]:
        """Facts in the order of `FACT_NAMES`."""
        return ((name, self.facts[name]) for name in FACT_NAMES if name in self.facts)
