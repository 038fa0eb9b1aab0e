"""The tools: each parses nothing but its own options, calls `Services`, and gives what the command line gives as JSON."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gpuplan.api.mcp.brief_answers import brief
from gpuplan.api.mcp.tool_schemas import Detail, Document, Job, JobAgain, Running, Snapshot
from gpuplan.api.schemas.catalogue import OfferRow
from gpuplan.api.services.composition import Services
from gpuplan.api.services.offer_listing import OfferFilter
from gpuplan.api.services.price_history import HistoryFilter, read_since
from gpuplan.catalog.parsing.json_object import without_none
from gpuplan.catalog.runtime.errors import Fault, ProviderFailure, StoreFailure, UnusableInput
from gpuplan.planner.model.wire import wire

_Name = Annotated[
    str | None, Field(description="An accelerator (H100), instance type (p5.48xlarge), provider, region or price kind.")
]
_Provider = Annotated[str | None, Field(description="aws, lambda, local, ...: as in constraints.providers.")]
_Region = Annotated[str | None, Field(description="A region, or a glob: us-*.")]
_Kind = Annotated[str | None, Field(description="A price kind: on_demand, spot, reserved_1y, committed_3y, owned ...")]


Rename = Callable[[Fault], Fault]


@contextmanager
def _as_tool_errors(renamed: Rename = lambda fault: fault) -> Iterator[None]:
    """An error that the caller can fix or must wait out, as a tool error; `renamed` maps fields to the tool's
    arguments.
    """
    try:
        yield
    except UnusableInput as error:
        raise ToolError("; ".join(str(renamed(fault)) for fault in error.faults)) from None
    except (StoreFailure, ProviderFailure) as error:
        raise ToolError(f"not the request's fault, try again later: {error}") from None


def _of_job(fault: Fault) -> Fault:
    """For a plan, the document is the job itself."""
    return fault if fault.path[:1] == ("snapshot",) else Fault(("job", *fault.path), fault.message)


def _of_configuration(fault: Fault) -> Fault:
    """For an estimate, the fields of `on` are arguments of their own."""
    return Fault(fault.path[1:], fault.message) if fault.path[:1] == ("on",) and len(fault.path) > 1 else fault


class Tools:
    """The tools' functions, answering from one `Services`. Their docstrings are what agents read."""

    def __init__(self, gpuplan: Services) -> None:
        """From this one."""
        self._gpuplan = gpuplan

    def plan(
        self,
        *,
        job: Job | None = None,
        files: Annotated[
            dict[str, str] | None,
            Field(description="Instead of `job`: texts of a configuration by file name, as for `import_config`."),
        ] = None,
        frontier: Annotated[bool, Field(description="Also return the Pareto frontier of cost and time.")] = False,
        snapshot: Snapshot = None,
        prices: Annotated[
            Literal["expected", "as-observed"] | None,
            Field(description="Spot prices as expected on the day of the start (default), or as observed."),
        ] = None,
        live: Annotated[
            bool | None,
            Field(
                description="Ask the clouds how likely the machines are obtained now; takes up to three seconds more."
            ),
        ] = None,
        detail: Detail = "summary",
    ) -> Document:
        """Find the provably cheapest way to run a training job that meets its deadline, over AWS, GCP, Azure and owned
        machines.

        Returns `outcome`: `planned` with `plan` (phases list what to rent, where, how many nodes, for how long;
        `cost_usd`, `hours`, `deadline_probability`; `certificate.gap` 0 means proven optimal over the price snapshot; a
        plan with a larger gap must not be called the cheapest: it is within gap / (1 - gap) of the lowest possible
        cost; where `capacity_ladder.cheapest_if_obtained` or `changing_machines` is present, the plan has the least
        expected cost with refusals), or `infeasible` with the conflicting requirements and the smallest relaxations.
        Prices can be old: read `warnings` and `meta.price_age_days`. Nothing is bought or started. `plan.id` names the plan in other tools.
        """
        if (job is None) == (files is None):
            raise ToolError("job: give either job or files")
        with _as_tool_errors(_of_job):
            planned = job if job is not None else self._job_of(files or {})
            answer = self._gpuplan.plans.plan(planned, frontier=frontier, snapshot=snapshot, prices=prices, live=live)
        return _in_detail(answer, detail)

    def _job_of(self, files: dict[str, str]) -> Document:
        """The job of a configuration that states all that a job needs; raises `ToolError` for another."""
        with _as_tool_errors():
            read = self._gpuplan.imports.read({"files": files})
        if read.missing:
            missing = "; ".join(f"{lacking.field} is missing: {lacking.why}" for lacking in read.missing)
            raise ToolError(f"files: {missing}; give it to import_config, and plan the job that it returns")
        return read.job

    def estimate(
        self,
        *,
        job: JobAgain,
        accelerator: Annotated[str, Field(description="Such as H100, A100-80GB, TPU-v5e, MI300X.")],
        gpus: Annotated[int, Field(description="Total number of accelerators.", ge=1)],
        gpus_per_node: Annotated[
            int | None, Field(description="Default: the usual machine of that accelerator.")
        ] = None,
        internode_gbps: Annotated[float | None, Field(description="Network of a node in Gbit/s.")] = None,
        micro_batch: Annotated[int | None, Field(description="Sequences or samples per device and pass.")] = None,
        layout: Annotated[
            Document | None,
            Field(description='Parts to fix: {"tensor": 8, "pipeline": 2, "zero_stage": 1, "checkpointing": "full"}.'),
        ] = None,
    ) -> Document:
        """Estimate training time, memory and parallel layout of a job on one given configuration, without prices.

        Returns `hours` (steady) and `hours_with_goodput`, `memory` (does it fit), `mfu`, `throughput`, the chosen
        `layout`, `terms` (the parts of the step time) and `band` (80 % interval of the hours).
        """
        on = without_none(
            accelerator=accelerator,
            gpus=gpus,
            gpus_per_node=gpus_per_node,
            internode_gbps=internode_gbps,
            micro_batch=micro_batch,
            layout=layout,
        )
        with _as_tool_errors(_of_configuration):
            return _document(self._gpuplan.estimates.estimate({"job": job, "on": on}))

    def import_config(
        self,
        *,
        files: Annotated[
            dict[str, str],
            Field(description="Texts by file name: the configuration or script first, then files that it names."),
        ],
        tokens: Annotated[
            str | None, Field(description="Tokens to train on, where the files state no steps: 2B.")
        ] = None,
        samples: Annotated[str | None, Field(description="Samples of the data set: 50k.")] = None,
        gpus: Annotated[int | None, Field(description="Processes that the files were written for.", ge=1)] = None,
        by: Annotated[str | None, Field(description="The deadline: 3d.")] = None,
    ) -> Document:
        """Read a training configuration of another tool into a job for `plan`.

        Accepts files of Hugging Face, TRL, LLaMA-Factory, axolotl, torchtune, LitGPT, NeMo, Megatron-LM, DeepSpeed,
        SkyPilot, sbatch and Kubernetes. Returns `job` (plan it once `missing` is empty), `facts` with the line of each,
        what was `assumed`, `missing` and `not_understood`.
        """
        with _as_tool_errors():
            given = without_none(files=files, tokens=tokens, samples=samples, gpus=gpus, by=by)
            return _document(self._gpuplan.imports.read(given))

    def afford(
        self,
        *,
        budget: Annotated[str, Field(description="US dollars: 50k.")],
        by: Annotated[str | None, Field(description="The deadline: 2w.")] = None,
        tokens: Annotated[str | None, Field(description="The most tokens there are: 2T.")] = None,
    ) -> Document:
        """Say which dense language model a budget trains from its start, by published scaling laws and plans.

        Returns what each law prefers, and `models`, sizes against tokens with loss, cost and the job for `plan`. An
        extrapolation: repeat `notes`.
        """
        with _as_tool_errors():
            return _document(self._gpuplan.afford.afford(without_none(budget_usd=budget, deadline=by, tokens=tokens)))

    def why(
        self,
        *,
        job: JobAgain,
        not_: Annotated[_Name, Field(alias="not")] = None,
        with_: Annotated[_Name, Field(alias="with")] = None,
        snapshot: Snapshot = None,
        detail: Detail = "summary",
    ) -> Document:
        """Explain a job's plan: why something was not chosen and at which price it would be, or how much having it
        would save.

        Give `not` (why not X?), or `with` (what is X worth?), or neither for the binding requirements of the
        plan. `why.summary` has the answer in sentences; `why.about` has the figures.
        """
        asked = without_none(job=job, **{"not": not_, "with": with_})
        with _as_tool_errors():
            return _in_detail(self._gpuplan.explanations.why(asked, snapshot=snapshot), detail)

    def replan(
        self,
        *,
        running: Running,
        job: JobAgain | None = None,
        plan: Annotated[str | None, Field(description="The id of the plan that it runs by, instead of `job`.")] = None,
        since: Annotated[str | None, Field(description="When it started, as ISO time; default: now.")] = None,
        snapshot: Snapshot = None,
        detail: Detail = "summary",
    ) -> Document:
        """Advise on a running job: stay or move, what that saves, and whether it still meets the deadline."""
        asked = without_none(running=running, job=job, plan=plan, since=since)
        with _as_tool_errors():
            return _in_detail(self._gpuplan.replanning.replan(asked, snapshot=snapshot), detail)

    def offers(
        self,
        *,
        provider: _Provider = None,
        region: _Region = None,
        accelerator: Annotated[str | None, Field(description="A name or family: H100 covers all its variants.")] = None,
        kind: _Kind = None,
        instance_type: Annotated[str | None, Field(description="A name or a glob: p5.*.")] = None,
        geography: Annotated[str | None, Field(description="us, eu, uk, asia ...")] = None,
        snapshot: Snapshot = None,
        limit: Annotated[int, Field(description="Maximum number of rows.", ge=1, le=200)] = 10,
        start: Annotated[int, Field(description="`next_start` of the previous answer, for the next page.", ge=0)] = 0,
        cheapest_first: Annotated[
            bool, Field(description="Sort by price per accelerator-hour, not by place and name.")
        ] = True,
    ) -> Document:
        """List machines with accelerators and their prices per node-hour, by provider, region, accelerator or price kind.

        Returns `total` matches, `offers` (with `usd_per_hour` per node, `accelerator_count`, `observed_at`) and
        `next_start`. A list price is not what a job costs: ask `plan` for that.
        """
        wanted = OfferFilter(
            provider=provider,
            region=region,
            accelerator=accelerator,
            kind=kind,
            instance_type=instance_type,
            geography=geography,
        )
        with _as_tool_errors():
            if cheapest_first:
                page = self._gpuplan.catalogue.offers(wanted, snapshot=snapshot)
                rows = sorted(page.rows, key=_per_accelerator)[start : start + limit]
            else:
                page = self._gpuplan.catalogue.offers(wanted, snapshot=snapshot, start=start, limit=limit)
                rows = list(page.rows)
        end = start + len(rows)
        document: Document = {"snapshot_id": page.snapshot_id, "total": page.total, "offers": wire(rows)}
        return document | {"next_start": end if end < page.total else None}

    def capacity(
        self,
        *,
        machine: Annotated[str | None, Field(description="An instance type: p5.48xlarge. Or give `job`.")] = None,
        nodes: Annotated[int | None, Field(description="Machines at once.", ge=1, le=1_000)] = None,
        kind: _Kind = None,
        region: Annotated[list[str] | None, Field(description="Regions; default: all with a price.")] = None,
        job: JobAgain | None = None,
    ) -> Document:
        """Ask the clouds how likely machines are obtained now: those of a job's plan, or one instance type.

        Returns `answers`, the most likely first (`probability` is gpuplan's reading of the cloud's `published` score; say
        that it is modelled), and `not_learned` with the reason for every missing answer, such as absent credentials or
        permissions. Takes up to three seconds. Nothing is bought or started.
        """
        asked = without_none(machine=machine, nodes=nodes, kind=kind, region=region, job=job)
        with _as_tool_errors():
            return _document(self._gpuplan.capacity.read(asked))

    def costs(
        self,
        *,
        month: Annotated[str | None, Field(description="A month in UTC: 2026-11; default: the current one.")] = None,
        by: Annotated[
            Literal["team", "project", "provider", "kind"], Field(description="What costs are added up by.")
        ] = "team",
    ) -> Document:
        """Show what plans and runs cost in a month, by team, project, provider or price kind, with what is left of budgets.

        `planned_usd` is expected cost, `actual_usd` reported hours at planned prices and no bill, `expected_usd` both put
        together. Only plans that somebody adopted or reported a run of count; `assumptions` says so.
        """
        with _as_tool_errors():
            return _document(self._gpuplan.costs.of_month(month, by))

    def history(
        self,
        *,
        instance_type: Annotated[str, Field(description="As the provider names it: p5.48xlarge, a3-highgpu-8g.")],
        provider: _Provider = None,
        region: _Region = None,
        zone: Annotated[str | None, Field(description="A zone; an empty text for prices of a whole region.")] = None,
        kind: _Kind = None,
        since: Annotated[str | None, Field(description="Leave out prices that ended before: 2026-11-01.")] = None,
        limit: Annotated[int, Field(description="Maximum number of rows.", ge=1, le=500)] = 20,
        start: Annotated[int, Field(description="`next_start` of the previous answer, for the next page.", ge=0)] = 0,
    ) -> Document:
        """Show prices of one instance type over time: each price with the period in which it applied."""
        with _as_tool_errors():
            wanted = HistoryFilter(
                instance_type=instance_type,
                provider=provider,
                region=region,
                zone=zone,
                kind=kind,
                since=read_since(since),
            )
            page = self._gpuplan.price_history.prices(wanted, start=start, limit=limit)
        named: Document = {"snapshot_id": page.snapshot_id, "instance_type": page.instance_type, "total": page.total}
        return named | {"prices": wire(tuple(page.rows)), "next_start": page.next_index}


def _document(answer: object) -> Document:
    document: Document = wire(answer)
    return document


def _in_detail(answer: object, detail: str) -> Document:
    return _document(answer) if detail == "full" else brief(_document(answer))


def _per_accelerator(row: OfferRow) -> float:
    return float(row.usd_per_hour) / row.accelerator_count
