"""The functions of `import gpuplan`: each asks the service that the command line asks."""

import os
from collections.abc import Mapping
from typing import Any

from gpuplan.api.python.answers import Infeasible, Plan, plan_answer
from gpuplan.api.python.estimates import Estimate, with_card
from gpuplan.api.python.explanations import Explanation
from gpuplan.api.python.jobs import AnyJob, as_json, job_document
from gpuplan.api.python.offers import Offers
from gpuplan.api.python.service import service
from gpuplan.api.schemas.argument_names import errors_at_arguments
from gpuplan.catalog.parsing.json_object import without_none
from gpuplan.catalog.runtime.errors import UnusableInput

AnyPath = str | os.PathLike[str]


def plan(
    job: AnyJob,
    *,
    frontier: bool = True,
    snapshot: str | None = None,
    prices: str | None = None,
    live: bool | None = None,
    save: bool = True,
    inventory: AnyPath | None = None,
    settings: AnyPath | None = None,
) -> Plan | Infeasible:
    """The provably cheapest way to run a job by its deadline, or why there is none.

    `frontier` adds the best trades of cost against time, which the chart of the card shows. `snapshot` is the id of older
    prices. `prices` is expected (on the day of the start; the default) or as-observed. With `live` the clouds are asked how
    likely the machines are obtained now (default: GPUPLAN_LIVE, else no). With `save` the answer is stored under its id,
    as `gpuplan plan` does. `inventory` and `settings` are files that replace GPUPLAN_INVENTORY and GPUPLAN_SETTINGS.

    Raises `UnusableInput` that names each field, and `StoreFailure` where the database cannot be read or written.
    """
    asked = service(inventory=inventory, settings=settings)
    answer = asked.plans.plan(
        job_document(job), frontier=frontier, snapshot=snapshot, prices=prices, live=live, save=save
    )
    return plan_answer(answer)


def estimate(
    job: AnyJob,
    *,
    on: str | Mapping[str, Any],
    gpus: int | None = None,
    gpus_per_node: int | None = None,
    internode_gbps: float | None = None,
    micro_batch: int | None = None,
    layout: str | Mapping[str, Any] | None = None,
    settings: AnyPath | None = None,
) -> Estimate:
    """Time and memory of a job on one given configuration; no prices are involved.

    `on` is an accelerator ("H100") beside `gpus`, or a mapping with both. `layout` is text ("fsdp,tp=2,pp=4") or a mapping;
    left out, the fastest that fits is chosen. Raises `UnusableInput` that names each field.
    """
    given = {
        "gpus": gpus,
        "gpus_per_node": gpus_per_node,
        "internode_gbps": internode_gbps,
        "micro_batch": micro_batch,
        "layout": _layout(layout),
    }
    stated = {name: as_json(value) for name, value in given.items() if value is not None}
    where = {"accelerator": on} if isinstance(on, str) else as_json(on)
    for name in stated:
        if name in where:
            raise UnusableInput.at(name, message=f"is given in `on` and as {name}=; give it once")
    document = {"job": job_document(job), "on": {**where, **stated}}
    with errors_at_arguments():
        return with_card(service(settings=settings).estimates.estimate(document))


def _layout(layout: str | Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if not isinstance(layout, str):
        return layout
    from gpuplan.api.schemas.estimate_request import parse_layout

    return parse_layout(layout)


def why(
    job: AnyJob,
    *,
    not_: str | None = None,
    with_: str | None = None,
    snapshot: str | None = None,
    inventory: AnyPath | None = None,
    settings: AnyPath | None = None,
) -> Explanation:
    """Why the plan of a job is what it is.

    `not_` asks why something was not chosen, `with_` what having it is worth: an accelerator, instance type, provider,
    region or price kind. Raises `UnusableInput` that names each field.
    """
    question = without_none(job=job_document(job), **{"not": not_, "with": with_})
    asked = service(inventory=inventory, settings=settings)
    with errors_at_arguments():
        return Explanation(asked.explanations.why(question, snapshot=snapshot))


def offers(
    *,
    provider: str | None = None,
    region: str | None = None,
    geography: str | None = None,
    accelerator: str | None = None,
    kind: str | None = None,
    instance_type: str | None = None,
    snapshot: str | None = None,
    inventory: AnyPath | None = None,
) -> Offers:
    """The catalogue of prices, filtered as by `gpuplan offers`; `region` and `instance_type` may be globs ("us-*").

    Raises `UnusableInput` that names a filter which no offer can meet.
    """
    from gpuplan.api.services.offer_listing import OfferFilter

    wanted = OfferFilter(
        provider=provider,
        region=region,
        geography=geography,
        accelerator=accelerator,
        kind=kind,
        instance_type=instance_type,
    )
    page = service(inventory=inventory).catalogue.offers(wanted, snapshot=snapshot)
    return Offers(page.rows, snapshot_id=page.snapshot_id)
