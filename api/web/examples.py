"""Example jobs that fill in the form."""

from gpuplan.catalog.parsing.json_object import JsonObject

EXAMPLES: dict[str, tuple[str, JsonObject]] = {
    "llama-3-8b": (
        "Llama 3 8B from scratch, 300 billion tokens in 30 days",
        {
            "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "300B"},
            "training": {"precision": "bf16"},
            "deadline": "30d",
            "constraints": {"max_nodes": "64"},
            "data": {"location": "aws:us-east-1", "dataset_gb": "1.2 TB"},
        },
    ),
    "llama-3-70b-lora": (
        "LoRA on Llama 3 70B, 500 million tokens by tomorrow",
        {
            "workload": {"kind": "preset", "model": "llama-3-70b", "tokens": "500M", "sequence_length": "4096"},
            "training": {"method": "lora", "precision": "bf16"},
            "deadline": "24h",
        },
    ),
    "qwen2.5-7b-qlora": (
        "QLoRA on Qwen 2.5 7B, as cheap as it gets",
        {
            "workload": {"kind": "preset", "model": "qwen2.5-7b", "tokens": "50M", "sequence_length": "2048"},
            "training": {"method": "qlora", "rank": "64"},
            "constraints": {"max_nodes": "1"},
        },
    ),
    "resnet-50": (
        "ResNet-50 on ImageNet, overnight for at most $500",
        {
            "workload": {"kind": "preset", "model": "resnet-50", "samples": "115.3M", "global_batch_samples": "2048"},
            "deadline": "12h",
            "budget_usd": "500",
            "data": {"location": "aws:us-east-1", "dataset_gb": "150"},
        },
    ),
    "gpt3-175b": (
        "GPT-3 175B, 300 billion tokens in 60 days, in the US or the EU",
        {
            "workload": {"kind": "preset", "model": "gpt3-175b", "tokens": "300B", "sequence_length": "2048"},
            "training": {"precision": "bf16"},
            "deadline": "60d",
            "constraints": {"geography": ["us", "eu"], "max_nodes": "256"},
        },
    ),
    "dimensions": (
        "A 1.3B transformer by its dimensions",
        {
            "name": "my-1.3b",
            "workload": {
                "kind": "transformer",
                "layers": "24",
                "hidden_size": "2048",
                "ffn_size": "8192",
                "attention_heads": "16",
                "vocabulary_size": "50257",
                "sequence_length": "2048",
                "tokens": "26B",
            },
            "deadline": "7d",
        },
    ),
}
