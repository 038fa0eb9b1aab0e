"""The job file of an import, commented with where each value comes from; and what was understood, in a few lines."""

from typing import Any

import yaml

from gpuplan.api.imports.facts import Amount, FactValue
from gpuplan.api.imports.job_from_facts import ImportedJob
from gpuplan.catalog.runtime.errors import one_line


def job_file(made: ImportedJob) -> str:
    """The job as YAML, with an origin behind each value and what is missing at the end."""
    lines = [f"# From {one_line(', '.join(made.facts.files))}: {made.facts.format}"]
    lines += _mapping(made.document, made, "", "")
    lines += [f"# Assumed: {one_line(text)}" for text in made.assumed]
    lines += [f"# Note: {one_line(text)}" for text in made.facts.notes]
    lines += [f"# Not here: {one_line(name)}" for name in made.facts.missing_files]
    lines += [f"# Not understood: {one_line(text)}" for text in made.facts.not_understood]
    lines += [f"# Missing: {one.field} ({one_line(one.why)}); give {one.say}" for one in made.missing]
    return "\n".join(lines) + "\n"


def _mapping(value: dict[str, Any], made: ImportedJob, path: str, indent: str) -> list[str]:
    lines = []
    for key, inner in value.items():
        dotted = f"{path}.{key}" if path else key
        if isinstance(inner, dict):
            lines += [f"{indent}{key}:", *_mapping(inner, made, dotted, f"{indent}  ")]
        else:
            lines.append(f"{indent}{key}: {_scalar(inner)}  # {one_line(made.origins[dotted])}")
    return lines


def _scalar(value: Any) -> str:
    if isinstance(value, float) and value == int(value) and value < 1e18:
        value = int(value)
    return yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("\n...\n").strip()


def summary(made: ImportedJob) -> list[str]:
    """What was understood, assumed and is missing, one line each."""
    facts = made.facts
    shown = ("model_name", "method", "precision", "sequence_length", "global_batch", "steps", "epochs", "dataset")
    values = [f"{name.replace('_', ' ')} {_in_words(facts.value(name))}" for name in shown if name in facts.facts]
    lines = [f"read {', '.join(facts.files)} ({facts.format}): {'; '.join(values) or 'no more than its name'}"]
    total = facts.number("parameters_total")
    if total:
        beside = "".join(f", beside it {name} {size / 1e9:.2f} B" for name, size in facts.beside.items())
        lines[0] += f"; {total / 1e9:.3f} B parameters{beside}"
    defaults = [name.replace("_", " ") for name, fact in facts.in_order() if fact.origin.is_default]
    if defaults:
        lines.append(f"not stated, by default of the framework: {', '.join(defaults)}")
    lines += [f"assumed: {text}" for text in made.assumed]
    lines += [f"note: {text}" for text in facts.notes]
    lines += [f"not here: {name}, so what it states is not known" for name in facts.missing_files]
    lines += [f"not understood: {text}" for text in facts.not_understood]
    if "workload.global_batch_tokens" in made.origins:
        lines.append("the global batch is held, whatever machines the plan takes")
    return [one_line(line) for line in lines]


def _in_words(value: FactValue | None) -> str:
    return value.in_words() if isinstance(value, Amount) else str(value)


def as_json(made: ImportedJob) -> dict[str, Any]:
    """The import as one JSON object."""
    facts = made.facts
    return {
        "format": facts.format,
        "facts": {name: {"value": _plain(fact.value), "from": str(fact.origin)} for name, fact in facts.in_order()},
        "job": made.document,
        "assumed": [*made.assumed, *facts.notes],
        "missing": [{"field": one.field, "say": one.say, "why": one.why} for one in made.missing],
        "missing_files": facts.missing_files,
        "not_understood": facts.not_understood,
    }


def _plain(value: FactValue) -> bool | int | float | str:
    return value if isinstance(value, bool | int | float | str) else str(value)
