"""Which method a configuration states: full training, adapters, quantized adapters, or a part of the model."""

from gpuplan.api.imports.facts import Origin, TrainingFacts
from gpuplan.api.imports.key_table import as_scalar
from gpuplan.api.imports.located_document import Located

#: Keys that say whether adapters are trained.
SWITCHES = ("use_peft", "use_lora", "lora_enable", "use_peft_lora", "lora")
RANKS = ("lora_r", "lora_rank", "lora_dim", "lora_config.r", "peft_config.r")
_FOUR_BIT = ("load_in_4bit", "use_4bit_quantization", "q_lora", "use_4bit", "use_bnb_nested_quant")
_BITS = ("bits", "quantization_bit", "load_in_kbits", "quant_bits")
#: Keys under which only a part of the model trains.
_PARTS = {
    "tune_mm_mlp_adapter": "projector only",
    "freeze_backbone": "partial (backbone frozen)",
    "freeze_llm": "partial (language model frozen)",
    "freeze_language_model": "partial (language model frozen)",
}


def is_on(document: Located, *keys: str) -> str:
    """The first of the keys that is true; empty if none is."""
    return next((key for key in keys if as_scalar(document.get(key)) in (True, 1)), "")


def four_bit(document: Located) -> str:
    """The key that says that frozen weights are at 4 bit; empty if none does."""
    bits = next((key for key in _BITS if as_scalar(document.get(key)) == 4), "")
    return is_on(document, *_FOUR_BIT) or bits


def state_method(document: Located, facts: TrainingFacts, framework: str, stage: str = "") -> None:
    """State the method; `stage` (dpo, grpo, ...) stands before it, as in `dpo (qlora)`."""
    part = is_on(document, *_PARTS)
    if part:
        facts.put("method", _PARTS[part], document.at(part))
        return
    method, origin = _adapters(document, framework)
    if method != "full":
        rank = next((key for key in RANKS if document.get(key) is not None), "")
        value = as_scalar(document.get(rank)) if rank else None
        if isinstance(value, int) and 0 < value <= 65_536 and not isinstance(value, bool):
            facts.put("lora_rank", value, document.at(rank))
    if stage:
        method = stage if method == "full" and stage in ("grpo", "ppo") else f"{stage} ({method})"
    facts.put("method", method, origin)


def _adapters(document: Located, framework: str) -> tuple[str, Origin]:
    quantized = four_bit(document)
    switch = next((key for key in SWITCHES if isinstance(as_scalar(document.get(key)), bool)), "")
    mode = document.first("train_mode", "finetuning_type", "peft_type", "tuner_type", "train_type", "sft_type")
    if isinstance(mode, str) and mode.lower() in ("full", "lora", "qlora", "freeze", "oft", "galore"):
        key = next(
            k
            for k in ("train_mode", "finetuning_type", "peft_type", "tuner_type", "train_type", "sft_type")
            if document.get(k) is not None
        )
        name = {"freeze": "partial (some layers)", "oft": "partial (oft)"}.get(mode.lower(), mode.lower())
        return ("qlora" if name == "lora" and quantized else name), document.at(key)
    if as_scalar(document.get("full_finetune")) is True:
        return "full", document.at("full_finetune")
    if switch and as_scalar(document.get(switch)) is False and not is_on(document, "q_lora"):
        return "full", document.at(switch)
    if switch or is_on(document, "q_lora"):
        return ("qlora" if quantized else "lora"), document.at(quantized or switch)
    rank = next((key for key in RANKS if document.get(key) is not None), "")
    if not rank and document.get("lora_config.r") is not None:
        return ("qlora" if quantized else "lora"), document.at("lora_config")
    if rank and quantized:
        return "qlora", document.at(quantized)
    if rank:
        return "lora", Origin(default_of=f"gpuplan: {rank} is given, the method is not")
    return "full", Origin(default_of=framework)
