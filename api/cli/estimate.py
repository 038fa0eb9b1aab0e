"""`gpuplan estimate`: time and memory of a job on a given configuration, without prices."""

from typing import Annotated, Any

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_answer
from gpuplan.api.cli.plan import AsJson, JobOrWords, SettingsFile, stated_job
from gpuplan.api.presentation.estimate import render_comparison, render_estimate
from gpuplan.api.schemas.estimate_request import parse_layout
from gpuplan.api.services.estimates import EstimateService
from gpuplan.api.services.service_context import Document
from gpuplan.catalog.model.mig_slices import find_card_or_slice
from gpuplan.catalog.parsing.json_object import without_none
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.estimate import Estimate
from gpuplan.planner.model.wire import wire


def estimate(
    job: JobOrWords = None,
    *,
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="ACCELERATOR",
            help="The accelerator, e.g. H100, or several to compare: A100,H100,B200. A MIG slice: A100-80GB-SXM:3g.40gb.",
        ),
    ],
    gpus: Annotated[str, typer.Option(metavar="COUNT", help="Number of accelerators, or several: 8,16.")],
    gpus_per_node: Annotated[int | None, typer.Option(min=1, help="Default: that of its usual machine.")] = None,
    internode_gbps: Annotated[float | None, typer.Option(help="Gbit/s per node. Default: the usual fabric.")] = None,
    micro_batch: Annotated[int | None, typer.Option(min=1, help="Samples per device per pass.")] = None,
    layout: Annotated[str | None, typer.Option(help="e.g. fsdp,tp=2,pp=4. Default: the fastest that fits.")] = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
) -> None:
    """Estimate a job's time and memory on given hardware, without prices."""
    stated = without_none(
        gpus_per_node=gpus_per_node,
        internode_gbps=internode_gbps,
        micro_batch=micro_batch,
        layout=None if layout is None else parse_layout(layout),
    )
    document, service = stated_job(job), open_gpuplan(settings=settings).estimates
    configurations = [
        {"accelerator": name.strip(), "gpus": count} | stated for name in on.split(",") for count in _counts(gpus)
    ]
    if len(configurations) == 1:
        answer = service.estimate({"job": document, "on": configurations[0]})
        document_of_answer: Any = wire(answer)
    else:
        compared = [_compared(service, document, configuration) for configuration in configurations]
        document_of_answer = {
            "estimates": [
                {"on": label, "refused": answer} if isinstance(answer, str) else wire(answer)
                for label, answer in compared
            ]
        }
    print_answer(
        document_of_answer,
        lambda _: render_estimate(answer) if len(configurations) == 1 else render_comparison(compared),
        as_json=as_json,
    )


def _compared(service: EstimateService, job: Document, on: Document) -> tuple[str, Estimate | str]:
    """The configuration's name, and its estimate or why it cannot run the job. Raises `UnusableInput` for a faulty job."""
    card, mig_slice = find_card_or_slice(str(on["accelerator"]), path=("on", "accelerator"))
    label = f"{on['gpus']} x {card.name if mig_slice is None else mig_slice.name}"
    try:
        return label, service.estimate({"job": job, "on": on})
    except UnusableInput as refusal:
        if any(fault.path[:1] == ("job",) for fault in refusal.faults):
            raise
        return label, "; ".join(fault.message for fault in refusal.faults)


def _counts(text: str) -> list[int]:
    """The numbers in a text such as `8,16`. Raises `UnusableInput` at gpus."""
    counts = [int(part) if part.strip().isdecimal() else 0 for part in text.split(",")]
    if min(counts) < 1:
        raise UnusableInput.at("gpus", message=f"{text!r} is not accepted; give a number from 1, or several: 8,16")
    return counts
