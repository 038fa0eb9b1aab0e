"""Errors at the names that the user of a command or a function types."""

from collections.abc import Iterator
from contextlib import contextmanager

from gpuplan.catalog.runtime.errors import Fault, UnusableInput

#: Parts of a question by the argument that holds them, longest first; what follows the part follows the argument.
_ARGUMENTS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("running", "on", "instance_type"), ("on",)),
    (("running", "on", "price_kind"), ("kind",)),
    (("running", "spent_usd"), ("spent",)),
    (("running", "on"), ()),
    (("running",), ()),
    (("on", "accelerator"), ("on",)),
    (("on",), ()),
    (("job",), ()),
)


def at_argument(fault: Fault) -> Fault:
    """The fault of a question's part at the argument that holds the part.

    The job, the fields of a configuration and those of a run are arguments of their own: `job.training.rank` is
    `training.rank`, as where the job is the whole question; `on.gpus` is `gpus`, and `running.on.nodes` is `nodes`.
    """
    for part, argument in _ARGUMENTS:
        if fault.path[: len(part)] == part and (path := (*argument, *fault.path[len(part) :])):
            return Fault(path, fault.message)
    return fault


@contextmanager
def errors_at_arguments() -> Iterator[None]:
    """Raise `UnusableInput` with its faults at the arguments."""
    try:
        yield
    except UnusableInput as error:
        raise UnusableInput(*map(at_argument, error.faults)) from None
