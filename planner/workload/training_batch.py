"""The batch of a job that states none: one per job, from its model and its amount of training, for every machine.

DeepSeek LLM (DeepSeek-AI 2024, section 3.1) fitted the best batch of dense language models over compute budgets C of 1e17 to
2e19 FLOPs, and confirmed it at 1e20 and in training 7B and 67B models: 0.2920 C^0.3271 tokens.
"""

_FACTOR, _EXPONENT = 0.2920, 0.3271
#: Fewest optimizer steps that a default batch leaves, so that a short run still trains.
LEAST_STEPS = 1000
#: Adapters are trained with small batches: 16 to 128 sequences (Hu 2021; Dettmers 2023).
ADAPTER_SEQUENCES = 64


def best_batch_tokens(active_parameters: float, tokens: float) -> float:
    """Tokens per optimizer step of a language model that trains on so many tokens (C = 6 N D)."""
    return float(_FACTOR * (6.0 * active_parameters * tokens) ** _EXPONENT)


def in_whole_sequences(batch_tokens: float, sequence_length: int) -> float:
    """`batch_tokens` rounded down to a power of two sequences, which usual numbers of accelerators divide; at least one."""
    return float(2 ** (max(1, int(batch_tokens / sequence_length)).bit_length() - 1) * sequence_length)
