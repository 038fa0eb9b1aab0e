"""What an estimate tells people of the limits of memory."""

from rich.console import Console

from gpuplan.api.cli.sections import print_sections
from gpuplan.api.presentation.estimate import render_estimate
from gpuplan.planner.model.job import Preset, Training
from gpuplan.planner.performance import On, estimate_on
from gpuplan.planner.workload import work_of


def shown(accelerator: str, gpus: int) -> str:
    """The rendered estimate of Llama 3 8B on so many accelerators, on one wide page."""
    work = work_of(Preset(model="llama-3-8b", tokens=1e9, global_batch_tokens=1e6), Training())
    answer = estimate_on(work, Training(), On(accelerator=accelerator, gpus=gpus), goodput=0.8)
    console = Console(width=200)
    with console.capture() as capture:
        print_sections(render_estimate(answer), on=console)
    return " ".join(capture.get().split())


def test_an_estimate_shows_the_largest_micro_batch_and_the_fewest_accelerators() -> None:
    text = shown("H100", 8)
    assert "largest micro-batch 1 at this layout" in text
    assert "least accelerators 2 that fit the job with some layout" in text
    assert "a predicted peak fits where it leaves 4 % of the memory free" in text


def test_a_job_that_does_not_fit_is_told_how_many_it_needs() -> None:
    text = shown("L4", 1)
    assert "does NOT fit" in text
    assert "largest micro-batch none fits" in text
    assert "least accelerators 8 that fit the job with some layout" in text
