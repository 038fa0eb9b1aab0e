"""Jobs to plan: every kind of workload, training, price kind, constraint, objective, confidence and strategy."""

from collections.abc import Iterator
from itertools import cycle

from tests.golden.question import Document, Question, plan_question

#: Models of every class and family of presets, with how much they train on.
_MODELS: dict[str, tuple[str, str]] = {
    "gpt2": ("tokens", "10B"),
    "gpt3-1.3b": ("tokens", "26B"),
    "llama-3-8b": ("tokens", "2B"),
    "qwen2.5-7b": ("tokens", "1B"),
    "llama-3-70b": ("tokens", "500M"),
    "mixtral-8x7b": ("tokens", "1B"),
    "qwen3-30b-a3b": ("tokens", "2B"),
    "bert-large": ("tokens", "20B"),
    "roberta-base": ("tokens", "50B"),
    "t5-base": ("tokens", "34B"),
    "t5-3b": ("tokens", "4B"),
    "vit-b/16": ("samples", "90M"),
    "vit-h/14": ("samples", "10M"),
    "whisper-small": ("samples", "2M"),
    "resnet-18": ("samples", "115M"),
    "resnet-152": ("samples", "60M"),
    "vgg-16": ("samples", "90M"),
    "mnist-cnn": ("samples", "1M"),
    "unet": ("samples", "500k"),
    "stable-diffusion-1.5": ("samples", "5M"),
    "sdxl": ("samples", "1M"),
    "dcgan": ("samples", "5M"),
    "stylegan2": ("samples", "2M"),
    "lstm-lm": ("tokens", "200M"),
    "awd-lstm": ("tokens", "100M"),
    "efficientnet-b4": ("samples", "120M"),
    "swin-base": ("samples", "100M"),
    "ssd-resnet34": ("samples", "3M"),
    "mask-rcnn": ("samples", "1M"),
    "rnn-t": ("samples", "2M"),
    "gnmt": ("samples", "8M"),
    "transformer-big": ("samples", "20M"),
    "wav2vec2-base": ("samples", "3M"),
    "transformer-xl-base": ("samples", "5M"),
    "hifi-gan": ("samples", "2M"),
    "dlrm": ("samples", "4B"),
    "ncf": ("samples", "500M"),
}

_TRANSFORMER: Document = {
    "kind": "transformer",
    "layers": 24,
    "hidden_size": 2048,
    "ffn_size": 5632,
    "attention_heads": 16,
    "kv_heads": 8,
    "vocabulary_size": 50304,
    "sequence_length": 4096,
    "tokens": "3B",
    "global_batch_tokens": 1048576,
}
_EXPLICIT: Document = {"kind": "explicit", "total_flops": 3e20, "memory_gib": "40 GiB"}
_PROFILE: Document = {
    "kind": "profile",
    "model": "train:net",
    "samples": "20M",
    "global_batch_samples": 512,
    "parameters": 25.6e6,
    "flops_per_sample": 2.4e10,
    "bytes_per_sample": 3.1e8,
    "activation_bytes_per_sample": 9.5e7,
}
#: Workloads that are described, not named.
_DESCRIBED: dict[str, Document] = {
    "dense": _TRANSFORMER,
    "encoder": _TRANSFORMER | {"causal": False, "gated_mlp": False, "sequence_length": 512},
    "experts": _TRANSFORMER | {"experts": 8, "active_experts": 2, "tokens": "1B"},
    "shared-experts": _TRANSFORMER
    | {"experts": 32, "active_experts": 4, "shared_experts": 2, "expert_ffn_size": 1024, "dense_layers": 1},
    "encoder-decoder": _TRANSFORMER | {"decoder_layers": 24, "sequence_length": 1024},
    "tied-long": _TRANSFORMER | {"tied_embeddings": True, "sequence_length": 32768, "tokens": "500M"},
    "explicit": _EXPLICIT,
    "explicit-full": _EXPLICIT
    | {"min_memory_gib_per_accelerator": "12 GiB", "bytes_moved": 2e18, "parameters": "2B", "steps": "50k"},
    "profile": _PROFILE,
    "profile-sequential": _PROFILE
    | {"sequential_steps": 1001, "kernels": 69, "fused_kernels": 29, "bytes_per_pass": 1.3e6, "optimizers": 2},
    "image-size": {"kind": "preset", "model": "resnet-50", "samples": "115M", "image_size": 160},
    "sequence-length": {"kind": "preset", "model": "llama-3-8b", "tokens": "1B", "sequence_length": 32768},
    "batch": {"kind": "preset", "model": "bert-large", "tokens": "10B", "global_batch_samples": 4096},
    "hub-name": {"kind": "preset", "model": "mistralai/Mistral-7B-v0.1", "tokens": "1B"},
}

_LLAMA: Document = {"kind": "preset", "model": "llama-3-8b", "tokens": "500M", "sequence_length": 4096}
_TUNING: Document = {
    "workload": _LLAMA,
    "training": {"method": "lora", "precision": "bf16"},
    "deadline": "3d",
    "constraints": {"max_nodes": 8},
}
#: Ways to train.
_TRAININGS: dict[str, Document] = {
    "full": {},
    "lora-all": {"method": "lora", "rank": 64},
    "lora-query-value": {"method": "lora", "rank": 8, "adapters_on": "query_value"},
    "qlora": {"method": "qlora", "rank": 32, "optimizer": "adamw_8bit"},
    "fp32": {"precision": "fp32"},
    "tf32": {"precision": "tf32"},
    "fp16": {"precision": "fp16"},
    "fp8": {"precision": "fp8"},
    "auto-precision": {"precision": "auto"},
    "pure-bf16": {"precision": "bf16", "states": "pure_bf16", "optimizer": "lion"},
    "adafactor": {"optimizer": "adafactor"},
    "sgd": {"optimizer": "sgd"},
    "muon": {"optimizer": "muon"},
    "adam-8bit": {"optimizer": "adam_8bit"},
    "checkpointing-none": {"activation_checkpointing": "none"},
    "checkpointing-full": {"activation_checkpointing": "full"},
    "checkpointing-selective": {"activation_checkpointing": "selective"},
    "offload-optimizer": {"offload": "optimizer"},
    "offload-parameters": {"offload": "parameters"},
    "plain": {"software": "plain"},
    "tuned": {"software": "tuned"},
    "micro-batch": {"micro_batch": 2},
    "eager": {"software": "eager"},
    "compiled": {"software": "compiled"},
    "fp32-gradients": {"precision": "bf16", "states": "fp32_gradients"},
    "chunked-cross-entropy": {"chunked_cross_entropy": True},
    "unsloth": {
        "method": "qlora",
        "activation_checkpointing": "offloaded",
        "cross_entropy": "linear",
        "adapter_dropout": False,
        "optimizer": "adamw_8bit",
    },
    "dpo": {"stage": "dpo"},
    "grpo": {"stage": "grpo", "completion_tokens": 512},
}

#: What may be chosen.
_CONSTRAINTS: dict[str, Document] = {
    "aws": {"providers": ["aws"]},
    "gcp": {"providers": ["gcp"]},
    "azure": {"providers": ["azure"]},
    "aws-azure": {"providers": ["aws", "azure"]},
    "region": {"regions": ["eu-*", "europe-*"]},
    "qualified-region": {"regions": ["azure:east*"]},
    "us": {"geography": ["us"]},
    "eu-uk": {"geography": ["eu", "uk"]},
    "asia": {"geography": ["asia"]},
    "on-demand": {"price_kinds": ["on_demand"]},
    "spot": {"price_kinds": ["spot"]},
    "reserved-1y": {"price_kinds": ["reserved_1y", "reserved_1y_all_upfront"]},
    "reserved-3y": {"price_kinds": ["reserved_3y", "reserved_3y_partial_upfront", "reserved_3y_convertible"]},
    "committed": {"price_kinds": ["committed_1y", "committed_3y"]},
    "savings-plan": {"price_kinds": ["savings_plan_1y", "savings_plan_3y"]},
    "capacity-block": {"price_kinds": ["capacity_block"]},
    "flex-start": {"price_kinds": ["flex_start", "on_demand"]},
    "calendar": {"price_kinds": ["calendar"]},
    "every-usual-kind": {"price_kinds": ["on_demand", "spot", "flex_start", "capacity_block", "calendar"]},
    "h100": {"accelerators": ["H100"]},
    "a100-l40s": {"accelerators": ["A100-80GB", "L40S"], "price_kinds": ["on_demand"]},
    "nvidia": {"vendors": ["nvidia"]},
    "google": {"vendors": ["google"]},
    "amd": {"vendors": ["amd"]},
    "types": {"instance_types": ["p4*", "g5*"]},
    "one-node": {"max_nodes": 1, "vendors": ["nvidia"]},
    "accelerators-at-most": {"max_accelerators": 4},
    "one-phase": {"max_phases": 1},
    "two-phases": {"max_phases": 2},
    "three-phases": {"max_phases": 3},
    "unverified": {"unverified_availability": True},
    "government": {"partitions": ["gov"]},
    "china": {"partitions": ["china"]},
    "carbon-budget": {"carbon_budget_kg": "20 kg"},
}

#: A run that changes machines on its way.
MOVES: Document = {
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "39.5B"},
    "training": {"precision": "bf16"},
    "deadline": "3d",
    "constraints": {"max_nodes": 4, "providers": ["aws"], "price_kinds": ["on_demand", "spot"]},
    "data": {"location": "aws:us-east-1", "dataset_gb": 200},
}
#: A run on spot with on-demand machines that stand by.
STANDBY: Document = {
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "2.45B"},
    "deadline": "42h",
    "constraints": {"providers": ["aws"], "accelerators": ["A100-40GB-SXM"], "max_nodes": 1},
}
SLOW_SPOT = {"spot_wait_hours": 3}


def plans() -> Iterator[Question]:
    """Every question whose answer is a plan."""
    interfaces = cycle(("cli", "http", "mcp"))
    limits = cycle(({"max_nodes": 8}, {"max_nodes": 16, "vendors": ["nvidia"]}, {"max_nodes": 4, "providers": ["gcp"]}))
    deadlines = cycle(("2d", "5d", "10d", None))
    for model, (unit, amount) in _MODELS.items():
        job: Document = {"workload": {"kind": "preset", "model": model, unit: amount}, "constraints": next(limits)}
        due = next(deadlines)
        yield plan_question(
            "presets", model.replace("/", "-"), next(interfaces), job | ({"deadline": due} if due else {})
        )
    for name, workload in _DESCRIBED.items():
        job = {"workload": workload, "deadline": "6d", "constraints": {"max_nodes": 8}}
        yield plan_question("workloads", name, next(interfaces), job, echo=True)
    for name, training in _TRAININGS.items():
        yield plan_question("training", name, next(interfaces), _TUNING | {"training": training, "deadline": "4d"})
    for name, constraints in _CONSTRAINTS.items():
        job = _TUNING | {"constraints": {"max_nodes": 8} | constraints}
        yield plan_question("constraints", name, next(interfaces), job)
    yield from _objectives(interfaces)
    yield from _strategies(interfaces)
    yield from _places_of_data(interfaces)


def _objectives(interfaces: Iterator[str]) -> Iterator[Question]:
    for objective in ("cost", "carbon", "time"):
        for confidence in (0.5, 0.8, 0.95, 0.999):
            job = _TUNING | {"objective": objective, "confidence": confidence, "deadline": "30h", "budget_usd": 400}
            yield plan_question("objectives", f"{objective}-{confidence}", next(interfaces), job)
        job = {name: value for name, value in _TUNING.items() if name != "deadline"} | {"objective": objective}
        yield plan_question("objectives", f"{objective}-any-time", next(interfaces), job | {"budget_usd": "$1k"})
    for deadline in ("4h", "12h", "P1D", "2w", "2026-11-24T08:00Z"):
        yield plan_question("objectives", f"by-{deadline}", next(interfaces), _TUNING | {"deadline": deadline})


def _strategies(interfaces: Iterator[str]) -> Iterator[Question]:
    for hours in (66, 69, 72, 76, 80, 90):
        yield plan_question("strategies", f"moves-{hours}h", next(interfaces), MOVES | {"deadline": hours})
    steady = MOVES | {"constraints": {"max_nodes": 4, "providers": ["aws", "gcp"], "price_kinds": ["on_demand"]}}
    for hours in (60, 72, 84):
        yield plan_question("strategies", f"steady-{hours}h", next(interfaces), steady | {"deadline": hours})
    for hours in (40, 42, 45, 50, 60):
        files = {"settings.json": SLOW_SPOT}
        yield plan_question(
            "strategies",
            f"standby-{hours}h",
            "cli",
            STANDBY | {"deadline": hours},
            files=files,
            arguments=["--settings", "settings.json"],
        )
    for confidence, hours in ((0.6, 42), (0.9, 42), (0.99, 54)):
        yield plan_question(
            "strategies",
            f"standby-{confidence}",
            "cli",
            STANDBY | {"confidence": confidence, "deadline": hours},
            files={"settings.json": SLOW_SPOT},
            arguments=["--settings", "settings.json"],
        )


def _places_of_data(interfaces: Iterator[str]) -> Iterator[Question]:
    for location, gb in (("aws:us-east-1", 4000), ("gcp:europe-west4", 300), ("azure:eastus", 20000)):
        job = _TUNING | {"data": {"location": location, "dataset_gb": gb}}
        yield plan_question("data", location.replace(":", "-"), next(interfaces), job)
