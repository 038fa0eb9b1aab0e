"""Errors of a command or a function name what its user types, not the parts of the question that it sends."""

import pytest

from gpuplan.api.schemas.argument_names import at_argument, errors_at_arguments
from gpuplan.catalog.runtime.errors import Fault, UnusableInput


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (("job", "training", "rank"), "training.rank"),
        (("job",), "job"),
        (("on", "accelerator"), "on"),
        (("on", "layout", "tensor"), "layout.tensor"),
        (("on",), "on"),
        (("running", "on", "instance_type"), "on"),
        (("running", "on", "price_kind"), "kind"),
        (("running", "on", "nodes"), "nodes"),
        (("running", "on"), "on"),
        (("running", "spent_usd"), "spent"),
        (("running", "done"), "done"),
        (("jobs", 0, "job", "deadline"), "jobs[0].job.deadline"),
        (("training", "rank"), "training.rank"),
        ((), ""),
    ],
)
def test_a_fault_is_at_the_argument_that_holds_the_part(path: tuple[str | int, ...], shown: str) -> None:
    assert at_argument(Fault(path, "is not accepted")).field == shown


def test_all_faults_of_an_error_are_at_arguments() -> None:
    with pytest.raises(UnusableInput, match=r"^rank: is too low; gpus: is not a number$"), errors_at_arguments():
        raise UnusableInput(Fault(("job", "rank"), "is too low"), Fault(("on", "gpus"), "is not a number"))
