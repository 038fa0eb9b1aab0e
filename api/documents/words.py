"""The words a job document may use for training and constraints, with the spellings people use for them."""

#: Dense formats that accelerators have matrix rates for; `auto` lets the planner choose.
PRECISIONS = ("auto", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4")
PRECISION_ALIASES = {
    "float32": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "mxfp8": "fp8",
    "nvfp4": "fp4",
    "mxfp4": "fp4",
}

METHODS = ("full", "lora", "qlora")
#: Methods that train adapters of a rank beside frozen weights.
ADAPTERS = ("lora", "qlora")

OPTIMIZERS = ("adamw", "adam", "adamw_8bit", "adafactor", "lion", "lamb", "lars", "sgd", "sgd_momentum", "muon")
OPTIMIZER_ALIASES = {
    "adam_w": "adamw",
    "adamw8bit": "adamw_8bit",
    "adam8bit": "adamw_8bit",
    "adam_8bit": "adamw_8bit",
    "8bit_adam": "adamw_8bit",
    "momentum": "sgd_momentum",
}

CHECKPOINTING = ("auto", "none", "selective", "full")
STATES = ("mixed", "pure_bf16")
OFFLOAD = ("none", "optimizer", "parameters")
SOFTWARE = ("fused", "plain")

PROVIDERS = ("aws", "gcp", "azure", "local")
PROVIDER_ALIASES = {"amazon": "aws", "google": "gcp", "gcloud": "gcp", "microsoft": "azure", "own": "local"}
PARTITIONS = ("commercial", "gov", "china")

#: What people write when they want no accelerator at all.
CPU_ONLY = ("cpu", "cpus", "cpu_only", "none", "no_gpu")
