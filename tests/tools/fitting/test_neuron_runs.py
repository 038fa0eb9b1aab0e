"""AWS Neuron's runs as the scripts beside its tables state them."""

import pytest

from tools.fitting.measured_runs import Run, runs
from tools.fitting.neuron_runs import configured


@pytest.fixture(scope="module")
def by_id() -> dict[str, Run]:
    return {run.row["id"]: run for run in runs() if run.row["group"] == "aws-neuron"}


def test_no_pipeline_is_interleaved_and_one_model_recomputes_whole_blocks(by_id: dict[str, Run]) -> None:
    piped = [run for run in by_id.values() if (run.request.pipeline or 1) > 1]
    assert len(piped) >= 10
    assert {run.request.interleave for run in piped} == {1}
    recomputed = {run.row["model"] for run in by_id.values() if run.request.checkpointing == "full"}
    assert recomputed == {"gpt3-46b"}


def test_chips_hold_the_samples_of_both_cores(by_id: dict[str, Run]) -> None:
    # 1,048,576 sequences on 256 chips, 32 a core.
    assert by_id["aws-neuron-0025"].request.micro_batch == 64
    row = {"parallelism": "tp4 pp1", "model": "llama2-7b", "micro_batch": "1"}
    assert configured(row)["micro_batch"] == "1"


def test_attention_is_written_out_but_for_llama_3(by_id: dict[str, Run]) -> None:
    kernels = {run.row["model"] for run in by_id.values() if run.training.software == "compiled"}
    assert kernels == {"llama3-8b", "llama3-70b"}
    assert {run.training.framework for run in by_id.values()} == {"xla"}
