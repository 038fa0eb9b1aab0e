"""Sections of what a budget trains: the model that each scaling law prefers, and the frontier of size against tokens."""

from collections.abc import Sequence

from gpuplan.api.presentation.phrases import configuration
from gpuplan.api.presentation.sections import Headline, Section, Tone, notes, section, table
from gpuplan.api.presentation.text_formatting import duration, number, usd
from gpuplan.planner.model.afford import AffordableModel, AffordAnswer

_UNITS = ((1e12, "T"), (1e9, "B"), (1e6, "M"))


def afford_sections(answer: AffordAnswer) -> Sequence[Section]:
    """The answer in one line, a row per model, smallest first, and what it rests on."""
    laws = tuple(law.name for law in answer.laws)
    short = tuple(name.split()[0] for name in laws)
    titles = ("model", "tokens", "per parameter", *short, "cost", "time", "where")
    rows = [_row(model, laws) for model in answer.models]
    return (
        section("afford", "", Headline(text=_headline(answer), tone=Tone.GOOD if answer.models else Tone.BAD)),
        section("models", "", table(titles, rows, figures=tuple(range(1, len(laws) + 5)))),
        section("notes", "", notes(_sentences(answer))),
    )


def _headline(answer: AffordAnswer) -> str:
    by = "" if answer.deadline_hours is None else f" in {duration(answer.deadline_hours)}"
    within = f"{usd(answer.budget_usd)}{by}"
    preferred = [law for law in answer.laws if law.parameters is not None and law.tokens is not None]
    if not preferred:
        return f"No model can be trained for {within}"
    sizes = sorted({law.parameters or 0 for law in preferred})
    tokens = sorted({law.tokens or 0.0 for law in preferred})
    return f"{within} trains {_range(sizes)} parameters on {_range(tokens)} tokens"


def _range(values: Sequence[float]) -> str:
    """`8.3 B` or `8.3 B to 19 B`."""
    return " to ".join(amount(value) for value in dict.fromkeys((values[0], values[-1])))


def amount(value: float) -> str:
    """`8.3 B`, `2 T`."""
    unit, name = next(((unit, name) for unit, name in _UNITS if value >= unit), (1.0, ""))
    return f"{number(value / unit)} {name}".strip()


def _row(model: AffordableModel, laws: Sequence[str]) -> tuple[str, ...]:
    above = {loss.law: f"+{loss.above_best_percent:.2f} %" for loss in model.losses}
    above |= dict.fromkeys(model.preferred_by, "best")
    limit = "" if model.limited_by == "budget" else f" ({model.limited_by})"
    return (
        amount(model.parameters),
        amount(model.tokens) + limit,
        number(model.tokens_per_parameter),
        *(above.get(law, "-") for law in laws),
        usd(model.cost_usd),
        duration(model.hours),
        ", then ".join(configuration(machines) for machines in model.machines),
    )


def _sentences(answer: AffordAnswer) -> list[str]:
    sources = "; ".join(f"{law.name} is {law.source}" for law in answer.laws)
    over_trained = [model.parameters for model in answer.models if model.over_trained]
    sentences = [f"Percentages are loss above the best by that law. {sources}"] if answer.models else []
    if over_trained:
        sentences.append(f"Models up to {amount(max(over_trained))} are over-trained: more loss, and cheaper to use")
    return [*sentences, *(note[:1].upper() + note[1:] for note in answer.notes)]
