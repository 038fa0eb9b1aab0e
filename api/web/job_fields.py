"""The job form as data: groups of the fields that are declared in `planner/model`."""

from dataclasses import dataclass
from functools import cache

from gpuplan.api.schemas.job_fields import WrittenField, form_fields
from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.regions import regions
from gpuplan.planner.workload.presets import presets


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A group of fields; a `folded` one is closed unless a field has a value or a fault."""

    title: str
    fields: tuple[WrittenField, ...]
    folded: bool = False
    hint: str = ""


@cache
def suggestions() -> dict[str, tuple[str, ...]]:
    """Suggestions by list name; fields also accept other valid text."""
    return {
        "presets": tuple(sorted(presets())),
        "accelerators": tuple(sorted(accelerators())),
        "places": ("local", *(f"{provider}:{region}" for provider, region in sorted(regions()))),
    }


PARTS = (
    Part(title="What to train", fields=form_fields("work")),
    Part(
        title="Or a transformer by its dimensions",
        folded=True,
        hint="Leave the model above empty. Tokens and sequence length are required.",
        fields=form_fields("dimensions"),
    ),
    Part(title="How to train it", folded=True, fields=form_fields("training")),
    Part(title="Deadline and budget", fields=form_fields("deadline")),
    Part(title="On what", fields=form_fields("machines")),
    Part(title="Region, price kinds and objective", folded=True, fields=form_fields("places")),
)

FIELDS = tuple(field for part in PARTS for field in part.fields)
#: Fields of a transformer by its dimensions; a value in any of them selects that workload.
DIMENSIONS = tuple(field.name for field in PARTS[1].fields)
