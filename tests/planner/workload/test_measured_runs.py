"""Counted parameters against those of models that were measured."""

import statistics

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Preset, Training, Transformer
from gpuplan.planner.workload import find_preset, work_of
from tools.fitting.import_runs import RUNS
from tools.fitting.measured_runs import rows

FULL = Training()
#: GPT-like families: blocks four times as wide as the model, not gated, embeddings tied.
GPT_LIKE = ("gpt-", "mpt-", "megatron", "mt-nlg")
MEASUREMENTS = ("model", "params", "layers", "hidden", "heads", "kv_heads", "vocab", "seq_len")


def distinct_models() -> list[dict[str, str]]:
    measured = [{name: row[name] for name in MEASUREMENTS} for row in rows(RUNS)]
    complete = [row for row in measured if all(row.values())]
    return [dict(pairs) for pairs in dict.fromkeys(tuple(row.items()) for row in complete)]


def parameters_by_count(row: dict[str, str]) -> float | None:
    """By the row's dimensions if GPT-like, by the preset of its name otherwise; None where neither is known."""
    if row["model"].startswith(GPT_LIKE) and "oss" not in row["model"]:
        return work_of(gpt(row), FULL).parameters
    try:
        preset = find_preset(row["model"].removesuffix(" (LoRA)"))
    except UnusableInput:
        return None
    return work_of(Preset(model=preset.name, tokens=1e12), FULL).parameters


def gpt(row: dict[str, str]) -> Transformer:
    return Transformer(
        layers=int(row["layers"]),
        hidden_size=int(row["hidden"]),
        ffn_size=4 * int(row["hidden"]),
        attention_heads=int(row["heads"]),
        kv_heads=int(row["kv_heads"]),
        head_size=0,
        vocabulary_size=int(row["vocab"]),
        sequence_length=int(row["seq_len"]),
        gated_mlp=False,
        causal=True,
        tied_embeddings=True,
        tokens=1e12,
        global_batch_tokens=4e6,
    )


def test_counted_parameters_match_those_of_measured_models() -> None:
    pairs = [(parameters_by_count(row), float(row["params"])) for row in distinct_models()]
    deviations = [abs(by_dimensions / stated - 1) for by_dimensions, stated in pairs if by_dimensions is not None]
    assert len(deviations) > 100
    assert statistics.median(deviations) <= 0.02
    # Small models at long sequences hold position embeddings that a transformer's dimensions do not state.
    assert statistics.quantiles(deviations, n=10)[-1] <= 0.10
