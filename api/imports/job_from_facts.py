"""Turns `TrainingFacts` into a job document: the one place where another tool's run becomes a gpuplan job.

The global batch is held: it is micro-batch x accumulation x processes of the file, whatever machines the plan takes.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from gpuplan.api.imports.dataset_count import DatasetSize
from gpuplan.api.imports.derived_facts import model_parallel
from gpuplan.api.imports.facts import Amount, Origin, PerWorld, TrainingFacts
from gpuplan.api.imports.software_stack import parallelism_of
from gpuplan.catalog.parsing.quantities import count
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.workload.presets import PresetRow, find_preset, presets


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the user adds to a file: sizes of the data, processes, model, deadline, budget."""

    tokens: str | None = None
    samples: str | None = None
    data: DatasetSize | None = None
    gpus: int | None = None
    model: str | None = None
    length: int | None = None
    by: str | None = None
    budget: str | None = None
    on: str | None = None
    like: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """What a job needs and no file states, with the flag that gives it."""

    field: str
    say: str
    why: str


@dataclass(slots=True, kw_only=True)
class ImportedJob:
    """The job document of facts and of what was given beside them, where each of its values comes from by dotted path, what was assumed, and what is missing."""

    facts: TrainingFacts
    given: Given
    document: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    assumed: list[str] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)

    def put(self, path: str, value: Any, origin: Origin | str) -> None:
        """Set a field of the document with its origin."""
        level = self.document
        *parents, last = path.split(".")
        for parent in parents:
            level = level.setdefault(parent, {})
        level[last] = value
        self.origins[path] = str(origin)

    def complete(self) -> dict[str, Any]:
        """The document. Raises `UnusableInput` with the flag of everything that is missing."""
        if self.missing:
            raise UnusableInput(*(Fault((one.field,), f"{one.why}; give {one.say}") for one in self.missing))
        return self.document


def job_of(facts: TrainingFacts, given: Given) -> ImportedJob:
    """The job that facts and flags describe. Raises `UnusableInput` for a run that no job describes."""
    made = ImportedJob(facts=facts, given=given)
    if facts.runtime_hours and not given.model:
        return _measured(made, given)
    preset = _workload(made, given)
    _training(made)
    _amount(made, given, preset)
    _rest(made, given)
    return made


def _measured(made: ImportedJob, given: Given) -> ImportedJob:
    made.put("workload.kind", "measured", "a run that ended")
    hours = round(made.facts.runtime_hours or 0, 3)
    made.put("workload.hours", hours, made.facts.origin("steps", "epochs"))
    for name, value, say in (
        ("on", given.on, '--on "8 x A100-80GB-SXM"'),
        ("like", given.like, "--like MODEL or a class such as --like speech"),
    ):
        if value:
            made.put(f"workload.{name}", value, f"--{name}")
        else:
            made.missing.append(Missing(field=name, say=say, why="results of a run do not state it"))
    _rest(made, given)
    return made


_DIMENSIONS = (
    "layers",
    "hidden_size",
    "ffn_size",
    "attention_heads",
    "kv_heads",
    "head_size",
    "vocabulary_size",
    "gated_mlp",
    "experts",
    "active_experts",
    "expert_ffn_size",
    "dense_layers",
    "decoder_layers",
)


def _workload(made: ImportedJob, given: Given) -> PresetRow | None:
    """Set the model: the preset of its name or dimensions, else its dimensions. Return the preset."""
    facts = made.facts
    name = given.model or facts.text("model_name")
    row = _named(name) or _alike(facts)
    if row is not None:
        made.put("workload.kind", "preset", "a known model")
        by_name = "--model" if given.model else str(facts.origin("model_name")) if _named(name) else "same dimensions"
        made.put("workload.model", row.name, f"{name or facts.files[0]}: {by_name}")
        return row
    needed = [one for one in ("layers", "hidden_size", "attention_heads") if facts.whole(one) is None]
    if needed:
        why = f"{name!r} is no known model" if name else "no model is stated"
        if facts.format == "Hugging Face model":
            why = f"no known model, and {facts.files[0]} does not state {', '.join(needed)} as one number"
        say = "--model NAME (gpuplan presets lists them), or --from its config.json"
        made.missing.append(Missing(field="model", say=say, why=why))
        return None
    if facts.layers_differ or facts.latent_attention:
        why = facts.layers_differ or "it has latent attention (MLA)"
        message = f"no plain transformer describes {facts.files[0]}: {why}; give --model NAME of a known model like it"
        raise UnusableInput.at("from", message=message)
    made.put("workload.kind", "transformer", facts.files[0])
    for one in _DIMENSIONS:
        value = facts.value(one)
        if value is not None and not (
            one == "ffn_size" and facts.whole("experts") and facts.whole("dense_layers") == 0
        ):
            made.put(f"workload.{one}", value, facts.facts[one].origin)
    if facts.value("tied") is not None:
        made.put("workload.tied_embeddings", facts.value("tied"), facts.facts["tied"].origin)
    if facts.whole("shared_experts"):
        made.put("workload.shared_experts", facts.whole("shared_experts"), facts.facts["shared_experts"].origin)
    if facts.causal is False:
        made.put("workload.causal", False, f"{facts.files[0]}: an encoder")
    if "vocabulary_size" not in facts.facts:
        made.put("workload.vocabulary_size", 50_304, "default of gpuplan: the file leaves it to the tokenizer")
        made.assumed.append("vocabulary of 50,304: the file leaves it to the tokenizer")
    return None


def _named(name: str) -> PresetRow | None:
    """The preset of a Hugging Face id or of another tool's name, such as llama3_1_8b."""
    dashed = name.replace("_", "-")
    release = re.sub(r"^([a-z]+[0-9])_([0-9])_", r"\1.\2-", name).replace("_", "-")
    for spelling in (name, release, dashed):
        if spelling:
            try:
                return find_preset(spelling)
            except UnusableInput:
                continue
    return None


def _alike(facts: TrainingFacts) -> PresetRow | None:
    """The preset of the same dimensions and, within 3 %, the same size."""
    total = facts.number("parameters_total")
    alike: dict[float, PresetRow] = {}
    for row in presets().values():
        same = row.layers == facts.whole("layers") and row.hidden_size == facts.whole("hidden_size")
        same = same and row.attention_heads == facts.whole("attention_heads")
        same = same and row.experts == (facts.whole("experts") or 0)
        if same and total:
            alike.setdefault(abs(row.published_parameters / total - 1), row)
    return alike[min(alike)] if alike and min(alike) < 0.03 else None


_STAGE = re.compile(r"^(dpo|orpo|kto|reward|grpo|ppo)(?: \((full|lora|qlora)\))?$")
#: Stages of which a sample is two sequences.
_PAIRS = {"dpo", "orpo", "reward"}
_OPTIMIZERS = (
    (r"lion.*8bit|8bit.*lion", "lion_8bit"),
    ("lion", "lion"),
    ("adafactor", "adafactor"),
    ("lamb", "lamb"),
    ("muon", "muon"),
    ("adam.*(8bit|4bit)|8bit.*adam", "adamw_8bit"),
    ("adam|galore|schedule_free", "adamw"),
    ("sgd", "sgd"),
    ("rmsprop", "rmsprop"),
    ("adagrad", "adagrad"),
)


#: Formats of models, which any framework may train.
_ANY_FRAMEWORK = ("Hugging Face model", "model id")


def _training(made: ImportedJob) -> None:
    facts = made.facts
    _method(made)
    if facts.format not in _ANY_FRAMEWORK:
        made.put("training.framework", facts.framework, f"{facts.files[0]}: {facts.format}")
    precision = facts.text("precision")
    short = next((one for one in ("fp8", "bf16", "fp16", "fp32") if precision.startswith((one, f"amp_{one}"))), "")
    if precision and "auto" in precision:
        made.put("training.precision", "auto", facts.origin("precision"))
    elif short:
        made.put("training.precision", short, facts.origin("precision"))
    if precision.endswith("-true") or (facts.format == "torchtune" and short == "bf16"):
        made.put("training.states", "pure_bf16", f"{facts.origin('precision')}: weights without 32-bit copies")
    optimizer = facts.text("optimizer").lower()
    known = next((ours for pattern, ours in _OPTIMIZERS if re.search(pattern, optimizer)), "")
    if known:
        made.put("training.optimizer", known, facts.origin("optimizer"))
    elif optimizer:
        made.assumed.append(f"optimizer {optimizer} is planned as adamw")
    checkpointing = facts.text("checkpointing")
    if checkpointing in {"none", "selective", "full", "offloaded"}:
        made.put("training.activation_checkpointing", checkpointing, facts.origin("checkpointing"))
    adapters = made.document["training"]["method"] != "full"
    for name, fact in facts.stack.items():
        if name != "adapter_dropout" or adapters:
            made.put(f"training.{name}", fact.value, fact.origin)
    parallelism = parallelism_of(facts)
    if parallelism is not None:
        made.put("training.parallelism", parallelism.value, parallelism.origin)
    offload = facts.text("offload")
    moved = "parameters" if "parameters" in offload else "optimizer" if "optimizer" in offload else ""
    if moved:
        made.put("training.offload", moved, facts.origin("offload"))


def _method(made: ImportedJob) -> None:
    facts = made.facts
    method = facts.text("method") or "full"
    match = _STAGE.match(method)
    if match:
        made.put("training.stage", match[1], facts.origin("method"))
        method = match[2] or "full"
    if method not in {"full", "lora", "qlora"}:
        message = f"{facts.origin('method')}: {method} is neither full, lora nor qlora, so no job describes it"
        raise UnusableInput.at("training", "method", message=message)
    made.put("training.method", method, facts.origin("method"))
    if method != "full":
        rank = facts.whole("lora_rank")
        made.put("training.rank", rank or 8, facts.origin("lora_rank") if rank else "default of PEFT")
        if facts.adapters_on:
            made.put("training.adapters_on", facts.adapters_on, facts.origin("lora_rank"))
    if match and match[1] in {"grpo", "ppo"} and facts.completion_tokens:
        made.put("training.completion_tokens", facts.completion_tokens, facts.origin("sequence_length"))


def _amount(made: ImportedJob, given: Given, preset: PresetRow | None) -> None:
    """Set sequence length, global batch and tokens."""
    facts = made.facts
    length = given.length or facts.training_length or facts.whole("sequence_length")
    stated = facts.facts.get("sequence_length")
    origin = "--length" if given.length else str(stated.origin) if stated else f"{facts.files[0]}: patches of an image"
    if length is None and preset is not None:
        length, origin = preset.sequence_length or None, "the model's own"
    if length is None:
        made.missing.append(Missing(field="sequence_length", say="--length 2048", why="no sequence length is stated"))
        return
    made.put("workload.sequence_length", length, origin)
    batch = _batch(made, given)
    if made.document.get("training", {}).get("stage") in _PAIRS:
        batch = None if batch is None else 2 * batch
    tokens, why = _tokens(made, given, length, batch)
    if tokens is None:
        made.missing.append(Missing(field="tokens", say="--tokens 2B, --samples N or --data PATH", why=why))
        return
    made.put("workload.tokens", max(tokens, float(length)), why)
    if batch:
        held = min(batch * length, max(tokens, float(length)))
        made.put("workload.global_batch_tokens", held, f"{facts.origin('global_batch')}: held, whatever the machines")


def _batch(made: ImportedJob, given: Given) -> float | None:
    """Sequences of one optimizer step; None if the file leaves it to the number of processes."""
    facts = made.facts
    stated = facts.value("global_batch")
    if not isinstance(stated, Amount):
        return None
    if stated.unit == "tokens" and not isinstance(stated.value, PerWorld):
        length = facts.whole("sequence_length") or 1
        return stated.value / length
    if not isinstance(stated.value, PerWorld):
        return float(stated.value)
    if given.gpus:
        share = given.gpus if stated.value.group > 1 else given.gpus / model_parallel(facts)
        return max(1.0, stated.value.of(share))
    made.assumed.append(
        f"global batch is {stated.in_words()}, and the file does not say how many processes there are: --gpus N states it"
    )
    return None


def _tokens(made: ImportedJob, given: Given, length: int, batch: float | None) -> tuple[float | None, str]:
    """Tokens of the whole run with their origin; None with the reason."""
    facts = made.facts
    if given.tokens:
        return _quantity(given.tokens, "tokens"), "--tokens"
    stated, steps = facts.number("tokens"), facts.number("steps")
    if stated:
        return stated, str(facts.origin("tokens"))
    if steps and batch and not given.samples and not given.data:
        return steps * batch * length, f"{facts.origin('steps')}: steps x global batch x length"
    epochs = facts.number("epochs") or 1
    if given.data is not None:
        return _tokens_of_data(made, given.data, length) * epochs, f"{given.data.name} x {epochs:g} epochs"
    rows = _quantity(given.samples, "samples") if given.samples else None
    if rows is not None:
        if not facts.value("packing"):
            made.assumed.append(f"every sample has {length} tokens, the most that one may have")
        rows *= 2 if made.document.get("training", {}).get("stage") in _PAIRS else 1
        return rows * epochs * length, f"--samples x {epochs:g} epochs x length"
    if steps and facts.value("global_batch") is None:
        return None, f"{steps:g} steps are stated, but not the batch of a step"
    if steps:
        return None, f"{steps:g} steps are stated, but not the processes of a step (--gpus N would say it)"
    return None, "the size of the data set is not stated"


def _tokens_of_data(made: ImportedJob, data: DatasetSize, length: int) -> float:
    """Tokens of a data set, once through: all of them where samples are packed, else at most `length` of a sample."""
    made.assumed.append(f"{data.name} has {data.about}: four bytes of text are one token, no tokenizer was run")
    if made.facts.value("packing"):
        return data.tokens
    most = length * (2 if made.document.get("training", {}).get("stage") in _PAIRS else 1)
    return data.samples * min(data.tokens / data.samples, most)


def _quantity(text: str, name: str) -> float:
    try:
        return count(text)
    except ValueError as error:
        raise UnusableInput.at(name, message=str(error)) from None


def _rest(made: ImportedJob, given: Given) -> None:
    if given.by:
        made.put("deadline", given.by, "--by")
    if given.budget:
        made.put("budget_usd", given.budget, "--budget")
