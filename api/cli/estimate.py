"""`gpuplan estimate`: time and memory on one given configuration, no prices involved."""

from typing import Annotated, Any

import typer

from api.cli.documents import open_gpuplan, print_json, read_job
from api.cli.plan import AsJson, JobFile, SettingsFile
from api.cli.standard_output import console


def estimate(
    job: JobFile,
    *,
    on: Annotated[str, typer.Option("--on", metavar="ACCELERATOR", help="The accelerator, e.g. H100 or 'RTX 3090'.")],
    gpus: Annotated[int, typer.Option(min=1, help="How many of them.")],
    gpus_per_node: Annotated[
        int | None, typer.Option(min=1, help="Left out: that accelerator's usual machine.")
    ] = None,
    internode_gbps: Annotated[float | None, typer.Option(help="Gbit/s per node; left out: the usual fabric.")] = None,
    micro_batch: Annotated[int | None, typer.Option(min=1, help="Samples per device and pass.")] = None,
    layout: Annotated[str | None, typer.Option(help="e.g. fsdp,tp=2,pp=4; left out: the fastest that fits.")] = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
) -> None:
    """Time and memory of a job on given hardware."""
    given: dict[str, Any] = {
        "accelerator": on,
        "gpus": gpus,
        "gpus_per_node": gpus_per_node,
        "internode_gbps": internode_gbps,
        "micro_batch": micro_batch,
    }
    if layout is not None:
        from api.documents.estimate_request import parse_layout

        given["layout"] = parse_layout(layout)
    document = {"job": read_job(job), "on": {name: value for name, value in given.items() if value is not None}}
    answer = open_gpuplan(settings=settings).estimate(document)
    if as_json:
        print_json(answer)
        return
    from api.render.estimate import render_estimate

    console().print(render_estimate(answer))
