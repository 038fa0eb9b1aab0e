"""The words a job document may use for training and constraints, with the spellings people use for them."""

from planner.estimate.stacks import STACKS
from planner.estimate.states import MOMENT_BYTES

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

#: Those whose state the memory model knows.
OPTIMIZERS = tuple(MOMENT_BYTES)
OPTIMIZER_ALIASES = {
    "adam_w": "adamw",
    "adamw8bit": "adamw_8bit",
    "8bit_adamw": "adamw_8bit",
    "adam8bit": "adam_8bit",
    "8bit_adam": "adam_8bit",
    "sgd_momentum": "momentum",
    "sgdm": "momentum",
}

CHECKPOINTING = ("auto", "none", "selective", "full")
STATES = ("mixed", "pure_bf16")
OFFLOAD = ("none", "optimizer", "parameters")
SOFTWARE = tuple(STACKS)

PROVIDERS = ("aws", "gcp", "azure", "local")
PROVIDER_ALIASES = {"amazon": "aws", "google": "gcp", "gcloud": "gcp", "microsoft": "azure", "own": "local"}
PARTITIONS = ("commercial", "gov", "china")

#: What may be least; the others are then requirements at most.
OBJECTIVES = ("cost", "carbon", "time")
OBJECTIVE_ALIASES = {"price": "cost", "money": "cost", "co2": "carbon", "emissions": "carbon", "speed": "time"}
