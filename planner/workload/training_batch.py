"""The batch of a job that states none: one per job, from its model and its amount of training, for every machine.

DeepSeek LLM (DeepSeek-AI 2024, section 3.1) fitted the best batch of dense language models over compute budgets C of 1e17 to
2e19 FLOPs, and confirmed it at 1e20 and in training 7B and 67B models: 0.2920 C^0.3271 tokens.
"""

_FACTOR, _EXPONENT = 0.2920, 0.3271
#: Fewest optimizer steps that a default batch leaves, so that a short run still trains.
LEAST_STEPS = 1000
#: Adapters of language models are trained with small batches, 16 to 128 sequences (Hu 2021; Dettmers 2023, table 9), also in
#: runs of a few hundred steps.
ADAPTER_SEQUENCES, LEAST_ADAPTER_SEQUENCES = 64, 16


def best_batch_tokens(active_parameters: float, tokens: float) -> float:
    """Tokens per optimizer step of a language model that trains on so many tokens (C = 6 N D)."""
    return float(_FACTOR * (6.0 * active_parameters * tokens) ** _EXPONENT)


def adapter_batch(samples: float, unit: str) -> tuple[float, str]:
    """Samples per step of adapters that train on so many of `unit`, and the reason: at least 16 sequences of tokens."""
    batch, why = float(ADAPTER_SEQUENCES), f"{ADAPTER_SEQUENCES} sequences, usual for adapters"
    if samples / LEAST_STEPS < batch:
        batch, why = samples / LEAST_STEPS, f"so that the job has {LEAST_STEPS} steps"
    if unit == "tokens" and batch < LEAST_ADAPTER_SEQUENCES:
        batch, why = (
            float(LEAST_ADAPTER_SEQUENCES),
            f"{LEAST_ADAPTER_SEQUENCES} sequences, the fewest usual for adapters",
        )
    return batch, why


def in_whole_sequences(batch_tokens: float, sequence_length: int) -> float:
    """`batch_tokens` rounded down to a power of two sequences, which usual numbers of accelerators divide; at least one."""
    return float(2 ** (max(1, int(batch_tokens / sequence_length)).bit_length() - 1) * sequence_length)
