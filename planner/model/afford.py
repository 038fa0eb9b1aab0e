"""The answer of `afford`: the models that a budget trains, and which of them each scaling law prefers."""

from dataclasses import dataclass
from typing import Literal

from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.model.shared import Machines, Meta, Moment, Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class LawLoss:
    """What one law expects of a model."""

    law: str
    loss: float
    """Nats per token on the text that the law was fitted on."""
    above_best_percent: float
    """Above the loss of the model that this law prefers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AffordableModel:
    """A dense model with the most tokens that the budget, the deadline and the data allow."""

    parameters: int
    layers: int
    hidden_size: int
    tokens: float
    tokens_per_parameter: float
    limited_by: Literal["budget", "deadline", "data"]
    losses: tuple[LawLoss, ...]
    preferred_by: tuple[str, ...]
    """The laws that expect the least loss of this model."""
    over_trained: bool
    """Smaller than what any law prefers: more loss, and cheaper to use."""
    extrapolated: bool
    """Beyond the largest runs that the laws were fitted on."""
    cost_usd: Usd
    hours: float
    machines: tuple[Machines, ...]
    job: JsonObject
    """The job file that `plan` takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A published law, and the model that it prefers."""

    name: str
    source: str
    parameters: int | None
    tokens: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AffordAnswer:
    """The frontier of size against tokens, smallest model first; empty where the budget trains no model of the ladder."""

    budget_usd: Usd
    deadline_hours: float | None
    tokens: float | None
    """The most that there are to train on; null where that is not a limit."""
    sequence_length: int
    start: Moment
    snapshot_id: str
    laws: tuple[Law, ...]
    models: tuple[AffordableModel, ...]
    plans_made: int
    notes: tuple[str, ...]
    meta: Meta
