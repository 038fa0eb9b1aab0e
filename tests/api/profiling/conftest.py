"""The interpreter with torch, and what it counts in the modules of `models_to_count`."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.profiling.counter_process import COUNTER, INTERPRETER
from gpuplan.api.profiling.tensor_shapes import read_shape

FOLDER = Path(__file__).parent
REPOSITORY = FOLDER.parents[2]

#: Each count by its name: the factory, its inputs, its targets.
REQUESTS: dict[str, tuple[str, list[str], list[str]]] = {
    "convnet": ("convnet", ["64x1x28x28"], []),
    "convnet_and_loss": ("convnet_and_loss", ["64x1x28x28"], ["64:int64"]),
    "loss without target": ("convnet_and_loss", ["64x1x28x28"], []),
    "resnet50": ("resnet50", ["16x3x224x224"], []),
    "lstm": ("lstm", ["16x1000x64"], []),
    "plain_rnn": ("plain_rnn", ["8x1000x32"], []),
    "gru_both_ways": ("gru_both_ways", ["8x1000x32"], []),
    "one step": ("plain_rnn", ["8x1x32"], []),
    "loop": ("HandWritten", ["8x100x32"], []),
    "gan": ("gan", ["16x100x1x1"], []),
    "gan_by_name": ("gan_by_name", ["16x100x1x1"], []),
    "gan_with_its_own_step": ("gan_with_its_own_step", ["16x100x1x1"], []),
    "generator": ("generator", ["16x100x1x1"], []),
    "discriminator": ("discriminator", ["16x3x64x64"], []),
    "causal_block": ("causal_block", ["8x128x512"], []),
    "long causal_block": ("causal_block", ["8x256x512"], []),
    "encoder_block": ("encoder_block", ["8x128x512"], []),
    "two_inputs": ("two_inputs", ["8x12:int64", "8x256"], []),
    "looks_at_values": ("looks_at_values", ["64x64"], []),
    "made already": ("MADE_ALREADY", ["64x64"], []),
    "lazy": ("lazy", ["4x64"], []),
    "sparse_table": ("sparse_table", ["8x12:int64"], []),
    "one_batch_only": ("one_batch_only", ["16x64"], []),
    "partly_frozen": ("partly_frozen", ["4x256"], []),
    "pairs": ("pairs", ["8x64"], []),
    "huge": ("too_large_for_any_machine", ["4x65536"], []),
    "needs": ("needs", ["4x4"], []),
    "raises": ("raises", ["4x4"], []),
    "returns_a_list_of_numbers": ("returns_a_list_of_numbers", ["4x4"], []),
    "three_modules": ("three_modules", ["4x4"], []),
    "nothing_to_train": ("nothing_to_train", ["4x4"], []),
    "stops_the_interpreter": ("stops_the_interpreter", ["4x4"], []),
    "misspelt": ("resnet51", ["4x4"], []),
    "wrong shape": ("convnet", ["16x3x28x28"], []),
    "too few inputs": ("two_inputs", ["8x12:int64"], []),
}


def request(factory: str, inputs: list[str], targets: list[str]) -> dict[str, Any]:
    """As the command asks the counter."""
    shapes = [read_shape(text, field="input") for text in inputs]
    return {
        "target": f"models_to_count:{factory}",
        "inputs": [shape.document() for shape in shapes],
        "targets": [read_shape(text, field="target").document() for text in targets],
        "batch": shapes[0].shape[0],
        "batch_axis": 0,
    }


@pytest.fixture(scope="session")
def torch_python() -> str:
    """The interpreter that `make test` sets up; never skipped, since nothing else checks the counter."""
    named = os.environ.get(INTERPRETER) or str(REPOSITORY / ".venv-torch" / "bin" / "python")
    if not Path(named).exists():
        pytest.fail(f"needs an interpreter with torch: run `make test`, or set {INTERPRETER}")
    return named


@pytest.fixture(scope="session")
def results(torch_python: str) -> dict[str, dict[str, Any]]:
    """The result of every one of `REQUESTS`, counted in one process."""
    asked = [request(*arguments) for arguments in REQUESTS.values()]
    ran = subprocess.run(
        [torch_python, "-B", str(FOLDER / "count_many.py"), str(COUNTER)],
        input=json.dumps(asked), capture_output=True, text=True, cwd=FOLDER, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    return dict(zip(REQUESTS, json.loads(ran.stdout.splitlines()[-1]), strict=True))
