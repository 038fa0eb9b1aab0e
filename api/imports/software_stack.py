"""What a configuration says of the software that a run uses: its class, loss, dropout of adapters, and parallelism."""

from gpuplan.api.imports.facts import Fact, FactValue, Origin, TrainingFacts
from gpuplan.api.imports.key_table import as_scalar
from gpuplan.api.imports.located_document import Located

#: Tools that train with Hugging Face's models or PyTorch's own layers, one kernel after the other.
_EAGER = frozenset(
    (
        "Hugging Face trainer arguments",
        "LLaMA-Factory",
        "axolotl",
        "torchtune",
        "LitGPT",
        "LLM Foundry",
        "accelerate",
    )
)
#: Tools that split batches and states alone unless their files say otherwise, and tools made to split models.
_SPLIT_BATCHES, _SPLIT_MODELS = {*_EAGER, "DeepSpeed", "llm.c"}, {"Megatron-LM", "NeMo", "GPT-NeoX"}
_WITHIN_A_MODEL = ("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel")
#: Tools whose loss never holds 32-bit logits: LitGPT's is computed in chunks, LLM Foundry's is flash-attn's kernel.
_CHUNKED = frozenset(("LitGPT", "LLM Foundry"))
_COMPILES = ("torch_compile", "compile")
#: Switches of kernels that replace the loss together with the head (Liger, Apple's cut cross-entropy, Unsloth).
_LINEAR_LOSS = (
    "use_liger_kernel",
    "use_liger",
    "enable_liger_kernel",
    "liger_fused_linear_cross_entropy",
    "cut_cross_entropy",
    "use_unsloth",
    "unsloth_cross_entropy_loss",
)
_DROPOUTS = ("lora_dropout", "lora.dropout", "lora_args.lora_dropout")


def state_stack(tool: str, document: Located, facts: TrainingFacts) -> None:
    """Add to `facts.stack` what `document`, read as a file of `tool`, says of the run's kernels; defaults are named as such."""
    default = Origin(default_of=tool)
    compiled = next((key for key in _COMPILES if as_scalar(document.get(key)) is True), "")
    unsloth = as_scalar(document.get("use_unsloth")) is True
    if tool in _EAGER:
        software = "fused" if unsloth else "compiled" if compiled else "eager"
        stated = "use_unsloth" if unsloth else compiled
        _state(facts, "software", software, document.at(stated) if stated else default)
    linear = next((key for key in _LINEAR_LOSS if as_scalar(document.get(key)) is True), "")
    loss = document.get("loss._component_")
    if linear:
        _state(facts, "cross_entropy", "linear", document.at(linear))
    elif isinstance(loss, str) and "Chunked" in loss:
        _state(facts, "cross_entropy", "chunked", document.at("loss._component_"))
    elif isinstance(loss, str) and "Linear" in loss:
        _state(facts, "cross_entropy", "linear", document.at("loss._component_"))
    elif tool in _CHUNKED:
        _state(facts, "cross_entropy", "chunked", default)
    key = next((key for key in _DROPOUTS if document.get(key) is not None), "")
    dropout = as_scalar(document.get(key)) if key else None
    if isinstance(dropout, int | float) and not isinstance(dropout, bool):
        _state(facts, "adapter_dropout", dropout > 0, document.at(key))


def parallelism_of(facts: TrainingFacts) -> Fact | None:
    """`training.parallelism`: what the files use, else what their tool is made for; None where neither is known."""
    used = next((name for name in _WITHIN_A_MODEL if (facts.whole(name) or 1) > 1), None)
    if used is not None:
        return Fact("any", facts.origin(used))
    if facts.format in _SPLIT_MODELS:
        return Fact("any", Origin(default_of=facts.format))
    return Fact("data", Origin(default_of=facts.format)) if facts.format in _SPLIT_BATCHES else None


def _state(facts: TrainingFacts, name: str, value: FactValue, origin: Origin) -> None:
    """State one field of `training`; what a file states replaces a default, and the first statement stays."""
    known = facts.stack.get(name)
    if known is None or (known.origin.is_default and not origin.is_default):
        facts.stack[name] = Fact(value, origin)
