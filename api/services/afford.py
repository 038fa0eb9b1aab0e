"""The models that a budget trains, by scaling laws and plans of the planner."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from math import inf

from gpuplan.api.services.audited import PlannerService
from gpuplan.api.services.plans import Asked, answer_plan
from gpuplan.api.services.service_context import Document, ServiceContext, answer_meta
from gpuplan.planner.model.afford import AffordableModel, AffordAnswer, Law, LawLoss
from gpuplan.planner.model.plan import PlannedAnswer
from gpuplan.planner.model.shared import Machines, Phase
from gpuplan.planner.scaling.affordable_models import (
    LAWS,
    MOST_FITTED_PARAMETERS,
    MOST_FITTED_TOKENS,
    Affordable,
    LossLaw,
    Priced,
    Search,
)
from gpuplan.planner.scaling.dense_models import LADDER, DenseModel

_OF_MACHINES = tuple(Machines.__dataclass_fields__)


class AffordService(PlannerService):
    """Says which models a budget trains."""

    def afford(self, document: Document) -> AffordAnswer:
        """The frontier of model size against tokens, and the model that each scaling law prefers. Saves no plan."""
        with self._audited.question("afford") as entry:
            answer = self._planner.call(answer_afford, document, now=datetime.now(UTC))
            entry.outcome = "affordable" if answer.models else "nothing"
        return answer


def answer_afford(context: ServiceContext, document: Document, *, now: datetime) -> AffordAnswer:
    """Work out the answer of `AffordService.afford`; write nothing."""
    from gpuplan.api.schemas.afford_request import parse_afford
    from gpuplan.api.schemas.job import parse_job

    began = time.perf_counter()
    asked, shared = parse_afford(document)

    def job_of(model: DenseModel, tokens: float) -> Document:
        return {"workload": model.workload(tokens, asked.sequence_length), **shared}

    first = parse_job(job_of(DenseModel(layers=LADDER[0]), asked.tokens or 1e9), now=now)
    columns = context.columns_with_owned()

    def price(model: DenseModel, tokens: float) -> Priced | None:
        answer = answer_plan(context, Asked(document=_without_moves(job_of(model, tokens)), now=now))
        if not isinstance(answer, PlannedAnswer):
            return None
        return Priced(tokens=tokens, cost_usd=float(answer.plan.cost_usd.expected), plan=answer.plan)

    search = Search(price=price, budget_usd=asked.budget_usd, most_tokens=asked.tokens or inf)
    preferred = search.run()
    affordable = [one for one in search.affordable.values() if one is not None]
    return AffordAnswer(
        budget_usd=Decimal(f"{asked.budget_usd:.2f}"),
        deadline_hours=first.deadline_hours,
        tokens=asked.tokens,
        sequence_length=asked.sequence_length,
        start=first.start or now,
        snapshot_id=columns.snapshot_id,
        laws=tuple(_law(law, search.at(preferred[law]) if law in preferred else None) for law in LAWS),
        models=tuple(
            _model(one, search, preferred, job_of(one.model, one.priced.tokens))
            for one in sorted(affordable, key=lambda one: one.model.parameters)
        ),
        plans_made=search.plans_made,
        notes=_notes(affordable, [one for rung in preferred.values() if (one := search.at(rung))]),
        meta=answer_meta(columns, now, began),
    )


def _without_moves(job: Document) -> Document:
    """The job on one configuration: moves between phases save little of a size, and take most of the time to find."""
    return job | {"constraints": {"max_phases": 1} | (job.get("constraints") or {})}


def _law(law: LossLaw, best: Affordable | None) -> Law:
    return Law(
        name=law.name,
        source=law.source,
        parameters=None if best is None else best.model.parameters,
        tokens=None if best is None else best.priced.tokens,
    )


def _model(one: Affordable, search: Search, preferred: Mapping[LossLaw, int], job: Document) -> AffordableModel:
    bests = {law: search.at(rung) for law, rung in preferred.items()}
    smallest = min((best.model.parameters for best in bests.values() if best is not None), default=0)
    plan = one.priced.plan
    return AffordableModel(
        parameters=one.model.parameters,
        layers=one.model.layers,
        hidden_size=one.model.hidden_size,
        tokens=one.priced.tokens,
        tokens_per_parameter=round(one.priced.tokens / one.model.parameters, 2),
        limited_by=one.limited_by,
        losses=tuple(
            LawLoss(
                law=law.name,
                loss=round(one.loss(law), 4),
                above_best_percent=round(100 * (one.loss(law) / best.loss(law) - 1), 2),
            )
            for law, best in bests.items()
            if best is not None
        ),
        preferred_by=tuple(law.name for law, best in bests.items() if best is one),
        over_trained=one.model.parameters < smallest,
        extrapolated=one.model.parameters > MOST_FITTED_PARAMETERS or one.priced.tokens > MOST_FITTED_TOKENS,
        cost_usd=plan.cost_usd.expected,
        hours=plan.hours.expected,
        machines=tuple(_machines(phase) for phase in plan.phases),
        job=job | {"budget_usd": search.budget_usd},
    )


def _machines(phase: Phase) -> Machines:
    return Machines(**{name: getattr(phase, name) for name in _OF_MACHINES})


#: Tokens per parameter below which no run of the laws was.
_FEW_TOKENS = 1.0
_NOTHING = (
    "no model of the ladder, which begins at 43 M parameters, can be trained on a million tokens or more within the budget, "
    "the deadline and the data"
)
_EXTRAPOLATION = (
    "this is an extrapolation: the laws were fitted on models of up to 16 B parameters and 500 B tokens of one text "
    "collection, and other data, vocabularies and schedules have other losses"
)
_USE = (
    "loss is not quality at a task; a model that is used much is better smaller and trained longer than the laws prefer, "
    "because use costs in proportion to its parameters"
)
_SHAPE = (
    "models are dense decoders in the shape of Llama with a vocabulary of 32,000, each on one configuration; each token is "
    "seen once"
)
_FEW = "the data are too few for this budget: the laws prefer sizes far from any run that they were fitted on"

_LAST = "the ladder ends at 1.9 T parameters, and the laws prefer no fewer"


def _notes(affordable: list[Affordable], preferred: list[Affordable]) -> tuple[str, ...]:
    if not affordable:
        return (_NOTHING,)
    few = any(one.priced.tokens < _FEW_TOKENS * one.model.parameters for one in preferred)
    last = any(one.model.layers == LADDER[-1] for one in preferred)
    return (_EXTRAPOLATION, *([_FEW] if few else []), *([_LAST] if last else []), _USE, _SHAPE)
