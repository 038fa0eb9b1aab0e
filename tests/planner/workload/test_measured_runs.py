"""Counted parameters against those of models that were measured."""

import csv
import statistics
from pathlib import Path

import pytest

from catalog.errors import UnusableInput
from planner.job import Preset, Training, Transformer
from planner.workload import find_preset, work_of

FULL = Training()
#: GPT-like families: blocks four times as wide as the model, not gated, embeddings tied.
GPT_LIKE = ("gpt-", "mpt-", "megatron", "mt-nlg")
MEASUREMENTS = ("model", "params", "layers", "hidden", "heads", "kv_heads", "vocab", "seq_len")


def distinct_models(shared_data: Path) -> list[dict[str, str]]:
    with (shared_data / "runs" / "runs_calibration.csv").open(encoding="utf-8", newline="") as file:
        rows = [{name: row[name] for name in MEASUREMENTS} for row in csv.DictReader(file)]
    complete = [row for row in rows if all(row.values())]
    return [dict(pairs) for pairs in dict.fromkeys(tuple(row.items()) for row in complete)]


def counted_parameters(row: dict[str, str]) -> float | None:
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


@pytest.mark.shared_data
def test_counted_parameters_match_those_of_measured_models(shared_data: Path) -> None:
    pairs = [(counted_parameters(row), float(row["params"])) for row in distinct_models(shared_data)]
    deviations = [abs(counted / stated - 1) for counted, stated in pairs if counted is not None]
    assert len(deviations) > 100
    assert statistics.median(deviations) <= 0.02
    # Small models at long sequences hold position embeddings that a transformer's dimensions do not state.
    assert statistics.quantiles(deviations, n=10)[-1] <= 0.10
